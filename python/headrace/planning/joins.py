"""What a join is in a plan: its files in pairs, the layouts of both sides, what the core is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from os.path import basename
from typing import Any, Final

from headrace.errors import SourceError
from headrace.model import SIDES, DataType, FileSource, FlowRows, Join, Side
from headrace.planning.run_facts import RunFacts, layout_of_run
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.together import as_declared, one_behind_the_other, refuse_common_files, source_number
from headrace.planning.wording import counted

_LISTED: Final = 3


def paired(join: Join, left: SourceSnapshot, right: SourceSnapshot, *apart: SourceSnapshot) -> SourceSnapshot:
    """The files of both sides as those of one source, left ones first; the k-th of each are a pair. Behind them those
    of sources apart.

    Raises SourceError unless they are pairs of files that can be read again, and all others are of one source.
    """
    for side in (left, right) if apart else ():  # both sides may be the same files
        refuse_common_files((side, *apart))
    for source in (left, right):
        if source.streams:
            raise SourceError(
                "a stream cannot be joined, because a row against the order is found by reading again",
                at={"file": source.streams[0]},
                found=f"a pipe of source `{source.name}`",
                hint="Write the rows to a file first.",
            )
    if len(left.files) != len(right.files):
        raise SourceError(
            f"the files of join `{join.name}` are no pairs",
            found=f"{_files(left)}; {_files(right)}",
            expected="as many files of one source as of the other, which are pairs in the order of their names",
            hint="Name the files of each source more closely, or write each side as one file.",
        )
    together = one_behind_the_other((left, right, *apart))
    notes = [*together.notes, _pairs_note(join, left, right)] if left.files else together.notes
    return replace(together, notes=notes, pairs=len(left.files))


def _files(source: SourceSnapshot) -> str:
    names = [basename(path) for path in source.paths]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = f": {', '.join(names[:_LISTED])}{more}" if names else ""
    return f"{counted(len(names), 'file')} of `{source.name}`{listed}"


def _pairs_note(join: Join, left: SourceSnapshot, right: SourceSnapshot) -> str:
    pairs = [f"{basename(own)} with {basename(theirs)}" for own, theirs in zip(left.paths, right.paths, strict=True)]
    more = f" and {counted(len(pairs) - _LISTED, 'more pair')}" if len(pairs) > _LISTED else ""
    return f"join {join.name}: {', '.join(pairs[:_LISTED])}{more}; each pair is read by one stream"


def _shown(join: Join) -> list[str]:
    """Whose rows meet."""
    if join.has_fronts:
        return [rows.shown for rows in join.inputs]
    return [own.name for own in join.brought]


@dataclass(frozen=True)
class JoinPlan:
    """The join of a data flow. `layouts`: of the left and the right files, and of those of sources apart, as the core
    reads them; `first_files`: the number of the first file of each, of one without files that of the next one.
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
    def first_apart(self) -> int:
        """How many sources meet, those in front of sources apart."""
        return len(self.join.brought)

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it takes of each source, if any of them have passed transforms."""
        return self.join.inputs if self.join.has_fronts else ()

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

    def side_of(self, file: int) -> Side:
        """The side that a file of a pair is of."""
        return SIDES[self.source_number(file)]

    def keeps(self, file: int) -> bool:
        """Whether rows of a file go on that have met none."""
        return self.join.kind in (self.side_of(file), "full")

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        """The members of a flow spec that say how rows come together; the layout of the left files is one itself."""
        join = self.join
        apart = [
            {"name": source.name, "layout": layout_of_run(layout, run), "first_file": first_file}
            for source, layout, first_file in zip(join.sources, self.layouts, self.first_files, strict=True)
        ][len(SIDES) :]
        own = {
            "name": join.name,
            "sources": [source.name for source in join.brought],
            "right": layout_of_run(self.layouts[1], run),
            "first_right_file": self.first_files[1],
            **({"apart": apart} if apart else {}),
            "kind": join.kind,
            "keys": [[key.left, key.right] for key in join.keys],
            "columns": [{"side": own.side, "column": own.column, "name": own.name} for own in join.columns],
        }
        return {"join": own}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        join = self.join
        return {
            "name": join.name,
            "type": join.kind,
            "left": join.left.name,
            "right": join.right.name,
            **({"inputs": _shown(join)} if self.inputs else {}),
            "on": {key.left: key.right for key in join.keys},
            "columns": [
                {"name": own.name, "side": own.side, "from": own.column, "type": str(own.type)} for own in join.columns
            ],
            "text": f"{join.name}: {_shown(join)[0]} {join.kind} join {_shown(join)[1]} on "
            + ", ".join(f"{key.left} = {key.right}" for key in join.keys),
        }


def plan_join(join: Join, types: Mapping[str, DataType], not_null: Collection[str], source: SourceSnapshot) -> JoinPlan:
    """With the types and the NOT NULL of the joined columns that the destination has; behind transforms as layouts have
    them.
    """

    def layout(side: Side) -> dict[str, Any]:
        side_source = join.left if side == "left" else join.right
        if join.has_fronts:
            return as_declared(side_source)
        own = [column for column in join.columns if column.side == side]
        # Where rows lack this side, a column that may not be NULL was refused.
        never_null = {column.column for column in own if column.name in not_null}
        read_as = {column.column: types.get(column.name, column.type) for column in own}
        return side_source.layout.to_core(never_null, read_as)

    layouts = (*(layout(side) for side in SIDES), *map(as_declared, join.apart))
    return JoinPlan(join, layouts, tuple(part.first_file for part in source.parts))
