"""Columns of a union whose types are resolved."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.data_type import DataType
from headrace.model.made_column import MadeFrom


@dataclass(frozen=True, slots=True)
class UnitedColumn:
    """A column of the rows of several sources. `columns`: for each source what it calls its own, None if it has none;
    `lacking`: the names of these sources, in whose rows it is NULL.

    `from_`: what one of them makes it from, None if all of them read it; `is_made_alike`: whether all that have it make
    it from that. `nullable`: as the layouts declare it; `may_be_null`: whether rows may have NULL, which what is made
    never is.
    """

    name: str
    type: DataType
    nullable: bool
    may_be_null: bool
    columns: tuple[str | None, ...]
    lacking: tuple[str, ...] = ()
    from_: MadeFrom | None = None
    is_made_alike: bool = False
