"""What a join is in a plan: its files in pairs, the layouts of its sources, what the core is told. Where a side is
another join, all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import basename
from typing import Any, Final

from headrace.errors import SourceError
from headrace.model import SIDES, DataType, FileSource, FlowRows, Join, Side
from headrace.planning.run_facts import RunFacts, layout_of_run
from headrace.planning.source_snapshot import SourceSnapshot, pair_word
from headrace.planning.together import as_declared, one_behind_the_other, refuse_common_files, source_number
from headrace.planning.wording import counted

_LISTED: Final = 3


def paired(join: Join, snapshots: Sequence[SourceSnapshot]) -> SourceSnapshot:
    """The files of all sources that meet as those of one, in their order; the k-th of each are a pair. Behind them
    those of sources apart. `snapshots`: of all of them.

    Raises SourceError unless they are pairs of files that can be read again, and all others are of one source.
    """
    brought, apart = snapshots[: len(join.brought)], snapshots[len(join.brought) :]
    for side in brought if apart else ():  # those that meet may be the same files
        refuse_common_files((side, *apart))
    for source in brought:
        if source.streams:
            raise SourceError(
                "a stream cannot be joined, because a row against the order is found by reading again",
                at={"file": source.streams[0]},
                found=f"a pipe of source `{source.name}`",
                hint="Write the rows to a file first.",
            )
    if len({len(source.files) for source in brought}) > 1:
        raise _no_pairs(join, brought)
    together = replace(one_behind_the_other(snapshots), pairs=len(brought[0].files), joined=len(brought))
    if together.pairs:
        together.notes.append(_pairs_note(join, brought))
    return together


def _no_pairs(join: Join, brought: Sequence[SourceSnapshot]) -> SourceError:
    found = "; ".join(map(_files, brought))
    if len(brought) == len(SIDES):
        return SourceError(
            f"the files of join `{join.name}` are no pairs",
            found=found,
            expected="as many files of one source as of the other, which are pairs in the order of their names",
            hint="Name the files of each source more closely, or write each side as one file.",
        )
    names = " and ".join(f"`{own.name}`" for own in (*join.inner, join))
    return SourceError(
        f"the sources of joins {names} have different numbers of files",
        found=found,
        expected="as many files of each source, which belong together in the order of their names",
        hint="Name the files of each source more closely, or write each of them as one file.",
    )


def _files(source: SourceSnapshot) -> str:
    names = [basename(path) for path in source.paths]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = f": {', '.join(names[:_LISTED])}{more}" if names else ""
    return f"{counted(len(names), 'file')} of `{source.name}`{listed}"


def _pairs_note(join: Join, brought: Sequence[SourceSnapshot]) -> str:
    pairs = [
        f"{basename(own)} with {' and '.join(map(basename, theirs))}"
        for own, *theirs in zip(*(source.paths for source in brought), strict=True)
    ]
    word = pair_word(len(brought))
    more = f" and {counted(len(pairs) - _LISTED, f'more {word}')}" if len(pairs) > _LISTED else ""
    return f"join {join.name}: {', '.join(pairs[:_LISTED])}{more}; each {word} is read by one stream"


def _shown(join: Join) -> list[str]:
    """Whose rows meet."""
    return [rows.shown for rows in join.inputs] if join.has_fronts else [own.name for own in join.sides]


def _places(join: Join) -> Iterator[str]:
    for side, own in zip(SIDES, join.sides, strict=True):
        yield from (f"{side}_{place}" for place in _places(own)) if isinstance(own, Join) else (side,)


@dataclass(frozen=True)
class JoinPlan:
    """The join of a data flow, of several ones the last. `layouts`: of the files of all sources that meet, and of those
    of sources apart, as the core reads them; `first_files`: the number of the first file of each, of one without files
    that of the next one.

    Inner joins, whose rows come to another one, are numbered behind all sources, as what stands in front of that is.
    """

    join: Join
    layouts: tuple[dict[str, Any], ...]
    first_files: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.join.name

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """All of the flow, in the order of their files."""
        return self.join.sources

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of all sources, in the order of their files."""
        return tuple(source.name for source in self.join.sources)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of all sources, and of inner joins, by their numbers."""
        return (*self.source_names, *(own.name for own in self.join.inner))

    @property
    def joins(self) -> tuple[Join, ...]:
        """All of the flow, each behind those whose rows it takes."""
        return (*self.join.inner, self.join)

    @property
    def pair_word(self) -> str:
        """What files are called that belong together."""
        return pair_word(self.first_apart)

    @property
    def first_apart(self) -> int:
        """How many sources meet, those in front of sources apart."""
        return len(self.join.brought)

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it takes of each side, if any of them have passed transforms."""
        return self.join.inputs if self.join.has_fronts else ()

    @property
    def taken(self) -> tuple[FlowRows, ...]:
        """The same of all joins."""
        return self.join.taken if self.join.has_fronts else ()

    @property
    def places(self) -> tuple[str, ...]:
        """Where the sources that meet stand, by their numbers: `left`, `right_left`."""
        return tuple(_places(self.join))

    @property
    def fronts(self) -> tuple[int, ...]:
        """The numbers of all whose rows meet: sources and inner joins."""
        behind = len(self.sources)
        return (*range(self.first_apart), *range(behind, behind + len(self.join.inner)))

    @property
    def column_names(self) -> list[str]:
        """Those of the rows that come out."""
        return [column.name for column in self.join.columns]

    @property
    def has_apart(self) -> bool:
        """Whether the flow has further sources, whose rows meet no others."""
        return bool(self.join.apart)

    def without_apart(self) -> JoinPlan:
        """The same of a flow without these."""
        own, of_sides = replace(self.join, apart=()), self.first_apart
        return JoinPlan(own, self.layouts[:of_sides], self.first_files[:of_sides])

    def source_number(self, file: int) -> int:
        """The number of the source that a file is of, from 0."""
        return source_number(self.first_files, file)

    def sides(self, join: Join) -> tuple[int, int]:
        """The numbers of what stands left and right of one of the joins."""
        left, right = (self.names.index(own.name) for own in join.sides)
        return left, right

    def entered(self, number: int) -> tuple[Join, Side] | None:
        """The join to which rows of a source or an inner join come, and as which side of it; None of sources apart."""
        found = (
            (own, side)
            for own in self.joins
            for side, theirs in zip(SIDES, self.sides(own), strict=True)
            if theirs == number
        )
        return next(found, None)

    def keeps(self, number: int) -> bool:
        """Whether rows of a source or an inner join go on that have met none."""
        entered = self.entered(number)
        return entered is not None and entered[0].kind in (entered[1], "full")

    def meeting_of(self, number: int) -> str:
        """The name of the join in front of which what rows of a source or an inner join pass stands."""
        entered = self.entered(number)
        return self.name if entered is None else entered[0].name

    def core_spec(self, run: RunFacts | None, place_of: Callable[[FlowRows], dict[str, Any]]) -> dict[str, Any]:
        """The members of a flow spec that say how rows come together; the layout of the first source is one itself.
        `place_of`: where the core finds rows.
        """
        sources = [
            {
                "name": source.name,
                **({"layout": layout_of_run(self.layouts[number], run)} if number else {}),
                "first_file": self.first_files[number],
                **({} if number < self.first_apart else {"apart": True}),
            }
            for number, source in enumerate(self.sources)
        ]
        inner = [self._core_join(own, place_of) for own in self.join.inner]
        own = {**self._core_join(self.join, place_of), "sources": sources, **({"inner": inner} if inner else {})}
        return {"join": own}

    def _core_join(self, join: Join, place_of: Callable[[FlowRows], dict[str, Any]]) -> dict[str, Any]:
        return {
            "name": join.name,
            "kind": join.kind,
            "keys": [[key.left, key.right] for key in join.keys],
            "columns": [{"side": own.side, "column": own.column, "name": own.name} for own in join.columns],
            "sides": list(self.sides(join)),
            **({"inputs": [place_of(rows) for rows in join.inputs]} if self.inputs else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form. Of several joins `inner` has those whose rows come to another one."""
        inner = [self._told(own) for own in self.join.inner]
        return {**self._told(self.join), **({"inner": inner} if inner else {})}

    def _told(self, join: Join) -> dict[str, Any]:
        left, right = _shown(join)
        return {
            "name": join.name,
            "type": join.kind,
            "left": join.left.name,
            "right": join.right.name,
            **({"inputs": [left, right]} if self.inputs else {}),
            "on": {key.left: key.right for key in join.keys},
            "columns": [
                {"name": own.name, "side": own.side, "from": own.column, "type": str(own.type)} for own in join.columns
            ],
            "text": f"{join.name}: {left} {join.kind} join {right} on "
            + ", ".join(f"{key.left} = {key.right}" for key in join.keys),
        }


def plan_join(join: Join, types: Mapping[str, DataType], not_null: Collection[str], source: SourceSnapshot) -> JoinPlan:
    """With the types and the NOT NULL of the joined columns that the destination has; behind transforms, and behind
    other joins, as layouts have them.
    """

    def layout(own: FileSource) -> dict[str, Any]:
        entered = next(side for side, theirs in zip(SIDES, join.sides, strict=True) if theirs is own)
        columns = [column for column in join.columns if column.side == entered]
        # Where rows lack this side, a column that may not be NULL was refused.
        never_null = {column.column for column in columns if column.name in not_null}
        read_as = {column.column: types.get(column.name, column.type) for column in columns}
        return own.layout.to_core(never_null, read_as)

    of_brought = map(as_declared if join.has_fronts else layout, join.brought)
    return JoinPlan(join, (*of_brought, *map(as_declared, join.apart)), tuple(part.first_file for part in source.parts))
