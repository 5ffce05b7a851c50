"""A snapshot of one destination table, taken before planning."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model import DataType


@dataclass(frozen=True)
class CatalogColumn:
    """One column as the destination's catalog describes it.

    `type` is None when the destination's type has no counterpart here (a list, an enum); `native_type` is its own
    spelling, for messages.
    """

    name: str
    type: DataType | None
    native_type: str
    nullable: bool
    has_default: bool = False
    generated: bool = False


@dataclass(frozen=True)
class CatalogTable:
    """A table or view that exists, with its columns in table order. `schema` is resolved, never empty.

    `indexes`: unique constraints and indexes, as people know them; `referenced_by`: tables with a foreign key to it.
    """

    schema: str
    name: str
    columns: tuple[CatalogColumn, ...]
    kind: str = "table"
    indexes: tuple[str, ...] = ()
    referenced_by: tuple[str, ...] = ()
