"""Who reads whose rows in a data flow: sources, transforms with their outputs, destinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.model.flow_rows import MAIN, FlowRows, rows_of
from headrace.model.flow_steps import discarded_by, input_path, inputs_of, outputs_of
from headrace.model.fronts import Fronts
from headrace.model.problems import ProblemCollector
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_transforms import TransformSpec
from headrace.model.spec_unions import UnionTransformSpec
from headrace.model.suggest import did_you_mean, one_of, quote, show_name
from headrace.model.yaml_reader import Document, DocumentPath


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads rows: a transform, or a destination. `path`: of its `input`."""

    name: str
    path: DocumentPath
    input: str


class FlowGraph:
    """Of one data flow. `fronts`: what stands in front of its join or union, or of sources apart, None with one source;
    `readers`: the destinations. Problems are noted.
    """

    def __init__(
        self,
        document: Document,
        problems: ProblemCollector,
        path: DocumentPath,
        fronts: Fronts | None,
        sources: Sequence[str],
        transforms: Mapping[str, TransformSpec],
        readers: Sequence[Reader],
    ) -> None:
        self._document = document
        self._problems = problems
        self._path = path
        self._fronts = fronts
        self._sources = sources
        self._transforms = transforms
        self._readers = readers

    def order(self) -> dict[str, TransformSpec] | None:
        """The transforms, each behind what it reads. None unless all rows arrive somewhere."""
        both = [name for name in self._sources if name in self._transforms]
        for name in both:
            self._problems.add(
                self._document,
                (*self._path, "transforms", name),
                f"a source and a transform are called `{show_name(name)}`",
                expected="different names",
                hint="Rename one of them.",
                at_key=True,
            )
        if both:
            return None
        readers = [*self._readers, *(own for name in self._transforms for own in self._readers_of(name))]
        are_there = [self._is_there(reader) for reader in readers]
        if not all(are_there) or self._goes_in_a_circle():
            return None
        order = {name: self._transforms[name] for reader in self._readers for name in self.way(reader.input)}
        are_right = self._reach_all(order) and self._meet_once() and self._reads_sources() and self._reads_all(order)
        return order if are_right and self._come_once(order) and self._pass_all_joins() else None

    def way(self, written: str) -> list[str]:
        """The transforms that rows may pass until they arrive where it is written, each behind what it reads."""
        way: dict[str, None] = {}
        pending = [(rows_of(written).name, False)]
        while pending:
            name, is_read = pending.pop()
            if is_read:
                way[name] = None
            elif name in self._transforms and name not in way:
                pending.append((name, True))
                pending += [(rows.name, False) for rows in reversed(inputs_of(self._transforms[name]))]
        return list(way)

    def _readers_of(self, name: str) -> list[Reader]:
        """A transform as the reader of each of its inputs. What a union calls sources is told where that is bound."""
        if isinstance(self._transforms[name], UnionTransformSpec):
            return []
        inputs = inputs_of(self._transforms[name])
        return [Reader(name, self._input(name, number), own.shown) for number, own in enumerate(inputs)]

    def _is_there(self, reader: Reader) -> bool:
        rows = rows_of(reader.input)
        names = (*self._sources, *self._transforms)
        if rows.name not in names:
            kind = "source or transform" if self._transforms else "source"
            self._problems.add(
                self._document,
                reader.path,
                f"there is no {kind} `{show_name(rows.name)}`",
                found=quote(reader.input),
                expected=one_of(names),
                hint=did_you_mean(rows.name, names) or f"Define the {kind}, or correct the name.",
            )
            return False
        spec = self._transforms.get(rows.name)
        outputs = (MAIN,) if spec is None else outputs_of(spec)
        if rows.output in outputs:
            return True
        shown = [FlowRows(rows.name, output).shown for output in outputs]
        name = show_name(rows.name)
        self._problems.add(
            self._document,
            reader.path,
            f"`{name}` has no output `{show_name(rows.output)}`"
            if rows.output
            else f"it is not said which output of the split `{name}` is read",
            found=quote(reader.input),
            expected=one_of(shown),
            hint=did_you_mean(reader.input, shown)
            or ("Name one of its outputs." if len(shown) > 1 else f"Write `input: {name}`."),
        )
        return False

    def _goes_in_a_circle(self) -> bool:
        found = self._circle()
        if found is None:
            return False
        last, read = found[-2:]
        number = [rows.name for rows in inputs_of(self._transforms[last])].index(read)
        fronts = self._fronts
        is_behind = fronts is None or not (fronts.are_apart or set(fronts.meetings) & set(found))
        beginning = show_name(self._sources[0] if fronts is None else fronts.together)
        self._problems.add(
            self._document,
            self._input(last, number),
            "the inputs of transforms go in a circle",
            found=" reads ".join(f"`{show_name(own)}`" for own in found),
            expected="a way from the source to the destination",
            hint=f"Let one of them read `{beginning}`." if is_behind else "Let one of them read a source.",
        )
        return True

    def _circle(self) -> list[str] | None:
        """Transforms each of which reads the next, and the first of them again."""
        done: set[str] = set()
        for start in self._transforms:
            way, pending = [start], [iter(inputs_of(self._transforms[start]))]
            while pending:
                rows = next(pending[-1], None)
                if rows is None:
                    done.add(way.pop())
                    pending.pop()
                elif rows.name in way:
                    return [*way[way.index(rows.name) :], rows.name]
                elif rows.name in self._transforms and rows.name not in done:
                    way.append(rows.name)
                    pending.append(iter(inputs_of(self._transforms[rows.name])))
        return None

    def _reach_all(self, order: Mapping[str, TransformSpec]) -> bool:
        """Whether the rows of every transform arrive at a destination."""
        unread = [own for own in self._transforms if own not in order]
        read = " and ".join(f"`{show_name(reader.input)}`" for reader in self._readers)
        one = len(self._readers) == 1
        for own in unread:
            self._problems.add(
                self._document,
                (*self._path, "transforms", own),
                f"the rows of the transform `{show_name(own)}` do not reach {'the' if one else 'a'} destination",
                found=f"the destination{' reads' if one else 's read'} {read}",
                expected="every transform on the way from the source to the destination",
                hint=f"Set `input: {show_name(own)}` where they should arrive, or remove the transform.",
                at_key=True,
            )
        return not unread

    def _meet_once(self) -> bool:
        """Whether what comes together is of different sources."""
        if self._fronts is None or self._fronts.are_apart:
            return True
        is_right, entries = True, self._fronts.entries
        for number, source in enumerate(self._fronts.brought):
            if source is None or source not in self._fronts.brought[:number]:
                continue
            is_right = False
            first, own = entries[self._fronts.brought.index(source)], entries[number]
            both = f"`{show_name(first.rows.shown)}` and `{show_name(own.rows.shown)}`"
            what = (
                f"the rows of the source `{show_name(source)}` come twice"
                if first.rows == own.rows
                else f"{both} are rows of one source, `{show_name(source)}`"
            )
            is_join = isinstance(self._transforms[own.meeting], JoinTransformSpec)
            bring = (
                f"{'join' if is_join else 'union'} `{show_name(own.meeting)}` brings"
                if first.meeting == own.meeting
                else f"joins `{show_name(first.meeting)}` and `{show_name(own.meeting)}` bring"
            )
            self._problems.add(
                self._document,
                self._input(own.meeting, own.number),
                f"{what}, and the {bring} rows of several sources together",
                expected="one input of each source",
                hint="Declare the files once more as another source."
                if is_join
                else f"Bring {both} together by a union of their own, which stands in front of this one.",
            )
        return is_right

    def _pass_all_joins(self) -> bool:
        """Whether no destination reads rows that have come out of a join, and stand in front of another one."""
        fronts, is_right = self._fronts, True
        for reader in self._readers if fronts is not None else ():
            assert fronts is not None
            inner = fronts.inner_of(rows_of(reader.input))
            if inner is None:
                continue
            is_right = False
            self._problems.add(
                self._document,
                reader.path,
                f"rows of the join `{show_name(inner)}` come to the join `{show_name(fronts.together)}`, and go "
                "nowhere else in this version",
                found=quote(reader.input),
                expected=f"rows of a source, or behind `{show_name(fronts.together)}`",
                hint="Write a data flow of its own for this destination, or `discard` what does not go on.",
            )
        return is_right

    def _come_once(self, order: Mapping[str, TransformSpec]) -> bool:
        """Whether no row comes by two inputs of a union: then every account says once what has become of it."""
        is_right = True
        places = {name: place for place, name in enumerate(order)}
        for name, own in order.items():
            # What brings sources together has one input of each of them.
            inputs = () if self._fronts is not None and name in self._fronts.meetings else inputs_of(own)
            for number, rows in enumerate(inputs):
                other = next((other for other in inputs[:number] if self._have_common_rows(rows, other, places)), None)
                if other is None:
                    continue
                is_right = False
                self._problems.add(
                    self._document,
                    self._input(name, number),
                    f"the union `{show_name(name)}` gets the same rows by `{show_name(other.shown)}` and "
                    f"`{show_name(rows.shown)}`",
                    expected="inputs that part at different outputs of one split or lookup, so that each row comes "
                    "once",
                    hint="Rows are not doubled on their way. A query over all rows can do it: `SELECT ... UNION ALL "
                    "SELECT ...`.",
                )
        return is_right

    def _have_common_rows(self, one: FlowRows, other: FlowRows, places: Mapping[str, int]) -> bool:
        """Whether a row may be in both: it leaves each transform by one output."""
        pairs, seen = [(one, other)], set[tuple[FlowRows, FlowRows]]()
        while pairs:
            pair = pairs.pop()
            if pair[0] == pair[1]:
                return True
            earlier, later = sorted(pair, key=lambda rows: places.get(rows.name, -1))
            if pair in seen or earlier.name == later.name:
                continue
            seen.add(pair)
            pairs += [(rows, earlier) for rows in inputs_of(self._transforms[later.name])]
        return False

    def _reads_sources(self) -> bool:
        """Whether the rows of all sources are read, if there are several. What a join or union names that is none, is
        told where that is bound.
        """
        if self._fronts is None or None in self._fronts.brought:
            return True
        read = {rows_of(written).name for written in self._inputs(self._transforms)}
        unread = [name for name in self._sources if name not in read]
        for name in unread:
            self._problems.add(
                self._document,
                (*self._path, "sources", name),
                f"nobody reads the rows of the source `{show_name(name)}`",
                expected="a transform or destination that reads them",
                hint=f"Set `input: {show_name(name)}` where they should arrive, name it in a `join` or `union`, or "
                "remove the source.",
                at_key=True,
            )
        return not unread

    def _reads_all(self, order: Mapping[str, TransformSpec]) -> bool:
        """Whether every output is read by somebody, or is discarded."""
        read = {rows_of(written) for written in self._inputs(order)}
        is_right = True
        for name, own in order.items():
            is_right = self._discards(name, own, read) and is_right
            discarded = set(discarded_by(own))
            unread = [rows for output in outputs_of(own) if (rows := FlowRows(name, output)) not in read]
            for rows in unread:
                if rows.output in discarded:
                    continue
                is_right = False
                self._problems.add(
                    self._document,
                    (*self._path, "transforms", name),
                    f"nobody reads the rows of `{show_name(rows.shown)}`",
                    expected="a transform or destination that reads them, or `discard`",
                    hint=f"Set `input: {show_name(rows.shown)}` where they should arrive"
                    + (f", or write `discard: [{show_name(rows.output)}]` here." if rows.output else "."),
                    at_key=True,
                )
        return is_right

    def _inputs(self, order: Mapping[str, TransformSpec]) -> Iterator[str]:
        yield from (reader.input for reader in self._readers)
        yield from (rows.shown for own in order.values() for rows in inputs_of(own))

    def _discards(self, name: str, own: TransformSpec, read: set[FlowRows]) -> bool:
        outputs = [output for output in outputs_of(own) if output]
        is_right = True
        for place, output in enumerate(discarded_by(own)):
            path: DocumentPath = (*self._path, "transforms", name, "discard", place)
            if output not in outputs:
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"`{show_name(name)}` has no output `{show_name(output)}`",
                    found=quote(output),
                    expected=one_of(outputs),
                    hint=did_you_mean(output, outputs) or "Remove it.",
                )
            elif FlowRows(name, output) in read:
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"the rows of `{show_name(name)}.{show_name(output)}` are read, and discarded, too",
                    expected="one of both",
                    hint=f"Remove `{show_name(output)}` from `discard`.",
                )
        return is_right

    def _input(self, name: str, number: int = 0) -> DocumentPath:
        return input_path(self._transforms[name], (*self._path, "transforms", name), number)
