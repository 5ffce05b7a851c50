"""Who reads whose rows in a data flow: sources, transforms with their outputs, destinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.model.problems import ProblemCollector
from headrace.model.spec_transforms import (
    NO_MATCH,
    OUTPUT,
    LookupTransformSpec,
    SplitTransformSpec,
    SqlTransformSpec,
    TogetherSpec,
    TransformSpec,
)
from headrace.model.suggest import did_you_mean, one_of, quote, show_name
from headrace.model.yaml_reader import Document, DocumentPath

Step = LookupTransformSpec | SqlTransformSpec | SplitTransformSpec
# The output of rows that have gone the usual way.
MAIN = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a source or transform, by one of its outputs."""

    name: str
    output: str = MAIN

    @property
    def shown(self) -> str:
        """As packages write it."""
        return f"{self.name}.{self.output}" if self.output else self.name


def rows_of(written: str) -> Rows:
    """What a setting `input` names."""
    name, _, output = written.partition(".")
    return Rows(name, output)


def outputs_of(spec: TransformSpec) -> tuple[str, ...]:
    """The outputs of a transform, in the order of their numbers."""
    if isinstance(spec, SplitTransformSpec):
        return (*spec.conditions, spec.rest)
    if isinstance(spec, LookupTransformSpec) and spec.lookup.no_match == OUTPUT:
        return (MAIN, NO_MATCH)
    return (MAIN,)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads rows: a transform, or a destination. `path`: of its `input`."""

    name: str
    path: DocumentPath
    input: str


class FlowGraph:
    """Of one data flow. `beginning`: its only source, its join, or its union; `readers`: the destinations. Problems are
    noted.
    """

    def __init__(
        self,
        document: Document,
        problems: ProblemCollector,
        path: DocumentPath,
        beginning: str,
        sources: Sequence[str],
        transforms: Mapping[str, TransformSpec],
        readers: Sequence[Reader],
    ) -> None:
        self._document = document
        self._problems = problems
        self._path = path
        self._beginning = beginning
        self._sources = sources
        self._transforms = transforms
        self._readers = readers
        self._steps: dict[str, Step] = {
            name: own for name, own in transforms.items() if not isinstance(own, TogetherSpec)
        }

    def order(self) -> dict[str, Step] | None:
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
        readers = [*self._readers, *(Reader(name, self._input(name), own.input) for name, own in self._steps.items())]
        are_there = [self._is_there(reader) for reader in readers]
        if not all(are_there) or self._goes_in_a_circle():
            return None
        order: dict[str, Step] = {}
        for reader in self._readers:
            for rows in self.way(reader.input):
                order.setdefault(rows.name, self._steps[rows.name])
        if not self._reach_all(order) or not self._begin_together(readers) or not self._reads_all(order):
            return None
        return order

    def way(self, written: str) -> list[Rows]:
        """The transforms that rows pass until they arrive where it is written, and their outputs."""
        way: list[Rows] = []
        rows = rows_of(written)
        while rows.name in self._steps:
            way.insert(0, rows)
            rows = rows_of(self._steps[rows.name].input)
        return way

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
        shown = [Rows(rows.name, output).shown for output in outputs]
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
        seen: set[str] = set()
        for start in self._steps:
            way: list[str] = []
            name = start
            while name in self._steps and name not in seen and name not in way:
                way.append(name)
                name = rows_of(self._steps[name].input).name
            seen.update(way)
            if name in way:
                circle = [*way[way.index(name) :], name]
                self._problems.add(
                    self._document,
                    self._input(way[-1]),
                    "the inputs of transforms go in a circle",
                    found=" reads ".join(f"`{show_name(own)}`" for own in circle),
                    expected="a way from the source to the destination",
                    hint=f"Let one of them read `{show_name(self._beginning)}`.",
                )
                return True
        return False

    def _reach_all(self, order: Mapping[str, Step]) -> bool:
        """Whether the rows of every transform arrive at a destination."""
        first = {name for reader in self._readers if (name := self._first(reader.input)) in self._transforms}
        unread = [own for own in self._transforms if own not in order and own not in first]
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

    def _begin_together(self, readers: Sequence[Reader]) -> bool:
        """Whether nobody reads a source whose rows come together with those of others."""
        is_right = True
        for reader in readers:
            name = rows_of(reader.input).name
            if name == self._beginning or name not in self._sources:
                continue
            is_right = False
            self._problems.add(
                self._document,
                reader.path,
                f"the rows of the source `{show_name(name)}` are read by `{show_name(self._beginning)}`, and here, too",
                found=quote(reader.input),
                expected=f"`{show_name(self._beginning)}`, or a transform behind it",
                hint=f"Set `input: {show_name(self._beginning)}`, or write a data flow of its own.",
            )
        return is_right

    def _first(self, written: str) -> str:
        """Where the rows come from in the end."""
        way = self.way(written)
        return rows_of(self._steps[way[0].name].input).name if way else rows_of(written).name

    def _reads_all(self, order: Mapping[str, Step]) -> bool:
        """Whether every output is read by somebody, or is discarded."""
        read = {rows_of(written) for written in self._inputs(order)}
        is_right = True
        for name, own in order.items():
            is_right = self._discards(name, own, read) and is_right
            discarded = set() if isinstance(own, SqlTransformSpec) else set(own.discard)
            unread = [rows for output in outputs_of(own) if (rows := Rows(name, output)) not in read]
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

    def _inputs(self, order: Mapping[str, Step]) -> Iterator[str]:
        yield from (reader.input for reader in self._readers)
        yield from (own.input for own in order.values())

    def _discards(self, name: str, own: Step, read: set[Rows]) -> bool:
        if isinstance(own, SqlTransformSpec):
            return True
        outputs = [output for output in outputs_of(own) if output]
        is_right = True
        for place, output in enumerate(own.discard):
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
            elif Rows(name, output) in read:
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"the rows of `{show_name(name)}.{show_name(output)}` are read, and discarded, too",
                    expected="one of both",
                    hint=f"Remove `{show_name(output)}` from `discard`.",
                )
        return is_right

    def _input(self, name: str) -> DocumentPath:
        return (*self._path, "transforms", name, "input")
