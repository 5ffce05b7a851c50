"""What a join is in a plan: its files in pairs, the layouts of both sides, what the core is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import basename
from typing import Any, Final

from headrace.errors import SourceError
from headrace.model import DataType, Join, Side
from headrace.planning.memory import slab_bytes
from headrace.planning.run_facts import RunFacts, layout_of_run
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.wording import counted

_LISTED: Final = 3


def paired(join: Join, left: SourceSnapshot, right: SourceSnapshot) -> SourceSnapshot:
    """The files of both sides as those of one source, left ones first; the k-th of each are a pair.

    Raises SourceError unless they are pairs of files that can be read again.
    """
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
    files, slices = len(left.files), max((int(item["number"]) for item in left.slices), default=0)
    behind = [{**item, "file": item["file"] + files, "number": item["number"] + slices} for item in right.slices]
    notes = [f"{source.name}: {note}" for source in (left, right) for note in source.notes]
    return replace(
        left,
        files=[*left.files, *right.files],
        slices=[*left.slices, *behind],
        notes=[*notes, _pairs_note(join, left, right)],
        pairs=files,
        sides_may_be_empty=(left.may_be_empty, right.may_be_empty),
    )


def _files(source: SourceSnapshot) -> str:
    names = [basename(path) for path in source.paths]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{counted(len(names), 'file')} of `{source.name}`: {', '.join(names[:_LISTED])}{more}"


def _pairs_note(join: Join, left: SourceSnapshot, right: SourceSnapshot) -> str:
    pairs = [f"{basename(own)} with {basename(theirs)}" for own, theirs in zip(left.paths, right.paths, strict=True)]
    more = f" and {counted(len(pairs) - _LISTED, 'more pair')}" if len(pairs) > _LISTED else ""
    return f"join {join.name}: {', '.join(pairs[:_LISTED])}{more}; each pair is read by one stream"


@dataclass(frozen=True)
class JoinPlan:
    """The join of a data flow. `right_layout`: that of the right files, as the core reads it; `first_right_file`: the
    number of left ones.
    """

    join: Join
    right_layout: dict[str, Any]
    first_right_file: int

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.join.name

    def side_of(self, file: int) -> Side:
        """The side that a file is of."""
        return "left" if file < self.first_right_file else "right"

    def source_of(self, file: int) -> str:
        """The name of the source that a file is of."""
        return self.join.left.name if self.side_of(file) == "left" else self.join.right.name

    def keeps(self, file: int) -> bool:
        """Whether rows of a file go on that have met none."""
        return self.join.kind in (self.side_of(file), "full")

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        """The member `join` of a flow spec."""
        join = self.join
        return {
            "name": join.name,
            "sources": [join.left.name, join.right.name],
            "right": layout_of_run(self.right_layout, run),
            "first_right_file": self.first_right_file,
            "kind": join.kind,
            "keys": [[key.left, key.right] for key in join.keys],
            "columns": [{"side": own.side, "column": own.column, "name": own.name} for own in join.columns],
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        join = self.join
        return {
            "name": join.name,
            "type": join.kind,
            "left": join.left.name,
            "right": join.right.name,
            "on": {key.left: key.right for key in join.keys},
            "columns": [
                {"name": own.name, "side": own.side, "from": own.column, "type": str(own.type)} for own in join.columns
            ],
            "text": f"{join.name}: {join.left.name} {join.kind} join {join.right.name} on "
            + ", ".join(f"{key.left} = {key.right}" for key in join.keys),
        }


@dataclass(frozen=True)
class SideLayouts:
    """The layouts of both sides as the core reads them."""

    left: dict[str, Any]
    right: dict[str, Any]


def side_layouts(join: Join, types: Mapping[str, DataType], not_null: Collection[str]) -> SideLayouts:
    """With the types and the NOT NULL of the joined columns that the destination has."""

    def layout(side: Side) -> dict[str, Any]:
        own = [column for column in join.columns if column.side == side]
        # Where rows lack this side, a column that may not be NULL was refused.
        never_null = {column.column for column in own if column.name in not_null}
        read_as = {column.column: types.get(column.name, column.type) for column in own}
        source = join.left if side == "left" else join.right
        return source.layout.to_core(never_null, read_as)

    return SideLayouts(layout("left"), layout("right"))


def joined_slab_bytes(join: Join, block_bytes: int, added: Sequence[DataType]) -> int:
    """Worst case of the typed columns of one block of either side, and of the joined rows that come of it."""
    wider = (*(column.type for column in join.columns), *added)
    return max(
        slab_bytes(
            source.layout.columns,
            block_bytes,
            rewrites=source.layout.rewritten_blocks,
            fills=source.layout.short_rows == "fill",
            row_width=source.layout.shortest_row_bytes,
            added=wider,
        )
        for source in join.sources
    )
