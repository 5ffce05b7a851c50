"""Columns of a lookup whose references and types are resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headrace.model.data_type import DataType
from headrace.model.duckdb_types import described_type

# Stands for the type of a column whose table was not looked at yet.
NOT_DESCRIBED: Final = DataType.parse("string")


@dataclass(frozen=True, slots=True)
class LookupColumn:
    """A column of the rows of a lookup. `compares`: how its database compares texts of it, if not by their bytes."""

    name: str
    type: DataType
    nullable: bool
    compares: str | None = None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table or query that a lookup reads. `type` is None if no column of rows can hold its values;
    `compares`: see `LookupColumn`.
    """

    name: str
    type: DataType | None
    native_type: str
    nullable: bool
    compares: str | None = None


def query_columns(described: Iterable[tuple[str, str]]) -> tuple[TableColumn, ...]:
    """Those of a query, by the names and DuckDB types that it has told."""
    return tuple(TableColumn(name, described_type(native), native, True) for name, native in described)


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table or query that a lookup reads, as it is when its flow is planned. `rows`: about as many it has, None if
    nobody knows; `is_remote`: a server computes them, with memory of its own; `is_plain`: its rows stand in it alone,
    and not in others, as those of views and partitions do; `parts`: as many sessions are worth reading it side by side.
    """

    columns: tuple[TableColumn, ...]
    rows: int | None
    is_remote: bool = False
    is_plain: bool = False
    parts: int = 1

    @property
    def readable(self) -> dict[str, LookupColumn]:
        """The columns of types that rows can have."""
        return {
            own.name: LookupColumn(own.name, own.type, own.nullable, own.compares)
            for own in self.columns
            if own.type is not None
        }


@dataclass(frozen=True, slots=True)
class LookupKey:
    """A column of the rows, and the column of the lookup that it is compared with."""

    column: str
    lookup_column: str


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that rows get. `lookup_column` is where its values come from, `lookup` the name of the transform.

    `default`: canonical text of what rows get that find nothing; None for NULL, and where they are rejects, which
    `rejects_misses` says. `lookup_nullable`: whether the column of the lookup may be NULL.
    """

    name: str
    type: DataType
    lookup: str
    lookup_column: str
    lookup_nullable: bool
    default: str | None
    rejects_misses: bool = False

    @property
    def nullable(self) -> bool:
        """Whether rows may get NULL."""
        return self.lookup_nullable or (self.default is None and not self.rejects_misses)
