"""How the rows of several sources of a data flow come together, bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.model.file_source import FileSource
from headrace.model.flow_rows import FlowRows
from headrace.model.join import SIDES, JoinedColumn, JoinKey
from headrace.model.union import UnitedColumn


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of two sources that meet; each of them may be another join, whose rows go on into this one. `name`: that of
    the transform; `kind`: inner, left, right or full; `columns`: those of the rows that come out. `inputs`: the rows
    that it takes, those of the sources themselves or behind transforms in front of it; empty stands for the former.
    Without `is_described` not all of its columns are known yet, nor were its keys looked at, because a table that a
    lookup in front of it reads was not. Of the last join of a flow, `is_beside`: rows in front of it go to
    destinations, too; `apart`: further sources of the flow, whose rows meet no others.
    """

    name: str
    kind: Literal["inner", "left", "right", "full"]
    left: FileSource | Join
    right: FileSource | Join
    keys: tuple[JoinKey, ...]
    columns: tuple[JoinedColumn, ...]
    inputs: tuple[FlowRows, ...] = ()
    is_described: bool = True
    is_beside: bool = False
    apart: tuple[FileSource, ...] = ()

    @property
    def sides(self) -> tuple[FileSource | Join, FileSource | Join]:
        """What stands left and right."""
        return self.left, self.right

    @property
    def brought(self) -> tuple[FileSource, ...]:
        """The sources whose rows meet, here or in an inner join: those of the left side before those of the right."""
        return tuple(own for side in self.sides for own in (side.brought if isinstance(side, Join) else (side,)))

    @property
    def needed(self) -> tuple[FileSource, ...]:
        """Sources without whose rows none come out, because all joins on their way are inner ones."""
        if self.kind != "inner":
            return ()
        return tuple(own for side in self.sides for own in (side.needed if isinstance(side, Join) else (side,)))

    @property
    def taken(self) -> tuple[FlowRows, ...]:
        """The rows that it takes, or an inner join does."""
        return tuple(rows for own in (*self.inner, self) for rows in own.inputs)

    @property
    def inner(self) -> tuple[Join, ...]:
        """The joins whose rows come to this one, each behind those whose rows it takes."""
        return tuple(own for side in self.sides if isinstance(side, Join) for own in (*side.inner, side))

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """All of the flow, in the order of their files: those apart behind the others."""
        return (*self.brought, *self.apart)

    @property
    def has_fronts(self) -> bool:
        """Whether rows pass transforms before they meet, or another join."""
        passes = any(rows.name != own.name for rows, own in zip(self.inputs, self.sides, strict=False))
        return passes or bool(self.inner) or self.is_beside

    @property
    def ignoring(self) -> list[str]:
        """Names of columns that are NULL where their text is no value."""
        own = [side.ignoring if isinstance(side, Join) else side.layout.ignoring for side in self.sides]
        ignoring = dict(zip(SIDES, own, strict=True))
        return [column.name for column in self.columns if column.column in ignoring[column.side]]


@dataclass(frozen=True, slots=True)
class Union:
    """Rows of several sources that go one way on. `name`: that of the transform; `columns`: those of the rows that come
    out; `brought`: the sources of these. `inputs`, `is_described`, `is_beside`, `apart`: see `Join`. Where all sources
    are apart, it has no name: nothing comes out of it, and it says which these are.
    """

    name: str
    brought: tuple[FileSource, ...]
    columns: tuple[UnitedColumn, ...]
    inputs: tuple[FlowRows, ...] = ()
    is_described: bool = True
    is_beside: bool = False
    apart: tuple[FileSource, ...] = ()

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """All of the flow, in the order of their files: those apart behind the others."""
        return (*self.brought, *self.apart)

    @property
    def taken(self) -> tuple[FlowRows, ...]:
        """The rows that it takes."""
        return self.inputs

    @property
    def are_apart(self) -> bool:
        """Whether rows of different sources come together nowhere."""
        return not self.brought

    @property
    def has_fronts(self) -> bool:
        """Whether rows pass transforms before they come together."""
        # Where rows of a source go elsewhere, too, no destination has a say in how they are read either.
        passes = any(rows.name != own.name for rows, own in zip(self.inputs, self.brought, strict=False))
        return passes or self.is_beside

    @property
    def ignoring(self) -> list[str]:
        """Names of columns that are NULL, in the rows of any source, where their text is no value."""
        ignoring = [source.layout.ignoring for source in self.brought]
        return [
            column.name
            for column in self.columns
            if any(own in known for own, known in zip(column.columns, ignoring, strict=True))
        ]


# How the rows of several sources come together.
Together = Join | Union


def number_without_apart(number: int | None, brought: int, apart: int) -> int | None:
    """The number of what rows are of in a flow without the sources apart, of which there are so many behind those
    `brought` together: inner joins are numbered behind all sources.
    """
    return number if number is None or number < brought else number - apart
