"""Columns of a join whose references and types are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

from headrace.model.data_type import DataType

Side = Literal["left", "right"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """Two columns that are compared."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class JoinedColumn:
    """A column of joined rows. `column`: its name in the source `source`, which is that `side` of the join.

    `may_be_missing`: there are rows without that side, in which it is NULL.
    """

    from_: ClassVar[None] = None

    name: str
    type: DataType
    side: Side
    source: str
    column: str
    own_nullable: bool
    may_be_missing: bool

    @property
    def nullable(self) -> bool:
        """Whether rows may have NULL."""
        return self.own_nullable or self.may_be_missing

    @property
    def origin(self) -> tuple[Side, str]:
        """Where it stands."""
        return self.side, self.column
