"""How the rows of several sources of a data flow come together, bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.model.file_source import FileSource
from headrace.model.flow_rows import FlowRows
from headrace.model.join import JoinedColumn, JoinKey
from headrace.model.union import UnitedColumn


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of two sources that meet. `name`: that of the transform; `kind`: inner, left, right or full; `columns`:
    those of the rows that come out. `inputs`: the rows that it takes, those of the sources themselves or behind
    transforms in front of it; empty stands for the former. Without `is_described` not all of its columns are known yet,
    nor were its keys looked at, because a table that a lookup in front of it reads was not. `is_beside`: rows in front
    of it go to destinations, too. `apart`: further sources of the flow, whose rows meet no others.
    """

    name: str
    kind: Literal["inner", "left", "right", "full"]
    left: FileSource
    right: FileSource
    keys: tuple[JoinKey, ...]
    columns: tuple[JoinedColumn, ...]
    inputs: tuple[FlowRows, ...] = ()
    is_described: bool = True
    is_beside: bool = False
    apart: tuple[FileSource, ...] = ()

    @property
    def brought(self) -> tuple[FileSource, ...]:
        """Those whose rows meet: the left one and the right one."""
        return self.left, self.right

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """All of the flow, in the order of their files: those apart behind the others."""
        return (*self.brought, *self.apart)

    @property
    def has_fronts(self) -> bool:
        """Whether rows pass transforms before they meet."""
        return _has_fronts(self)

    @property
    def ignoring(self) -> list[str]:
        """Names of columns that are NULL where their text is no value."""
        ignoring = {"left": self.left.layout.ignoring, "right": self.right.layout.ignoring}
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
    def are_apart(self) -> bool:
        """Whether rows of different sources come together nowhere."""
        return not self.brought

    @property
    def has_fronts(self) -> bool:
        """Whether rows pass transforms before they come together."""
        return _has_fronts(self)

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


def _has_fronts(together: Together) -> bool:
    # Where rows of a source go elsewhere, too, no destination has a say in how they are read either.
    passes = any(rows.name != own.name for rows, own in zip(together.inputs, together.brought, strict=False))
    return passes or together.is_beside
