"""A snapshot of one destination table, taken before planning."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model import DataType
from headrace.planning.partitioning import PartitionRule


@dataclass(frozen=True)
class CatalogColumn:
    """One column as the destination's catalog describes it.

    `type` is None when the destination's type has no counterpart here (a list, an enum); `native_type` is its own
    spelling, for messages. `generated`: computed from other columns; `identity`: numbered by the table. `alters`: what
    its type does to some values that it takes, ready for a sentence; None: nothing.
    """

    name: str
    type: DataType | None
    native_type: str
    nullable: bool
    has_default: bool = False
    generated: bool = False
    identity: bool = False
    alters: str | None = None


@dataclass(frozen=True)
class CatalogPartition:
    """One partition of a table and what it takes; None if the target's rule has no counterpart here.

    `prevents_drop`: what hangs on it, as people know it, so that it cannot go.
    """

    name: str
    rule: PartitionRule | None
    prevents_drop: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogPartitioning:
    """How an existing table is partitioned. `strategy`: range, list or hash; `key`: its columns or expressions.

    `partitions` are those of the first level. `comparison`: what compares the keys, if it is not what everybody has
    (`collation any_case`), so that only the destination knows which keys are equal.
    """

    strategy: str
    key: tuple[str, ...]
    partitions: tuple[CatalogPartition, ...] = ()
    comparison: str | None = None


@dataclass(frozen=True)
class CatalogTable:
    """A table or view that exists, with its columns in table order. `schema` is resolved, never empty.

    `indexes`: unique constraints and indexes, as people know them; `referenced_by`: tables with a foreign key to it.
    `prevents_rename`: what hangs on the table itself, so that another table cannot take its place (`view daily`,
    `trigger audit`); `prevents_replace`: what forbids to exchange its rows in any way. Both as people know them, ready
    for a sentence. `checks` and `triggers`: names of CHECK constraints and of triggers that fire for inserted rows.
    `view_tables`: of a view that Headrace made, the tables it shows.
    """

    schema: str
    name: str
    columns: tuple[CatalogColumn, ...]
    kind: str = "table"
    indexes: tuple[str, ...] = ()
    referenced_by: tuple[str, ...] = ()
    prevents_rename: tuple[str, ...] = ()
    prevents_replace: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    partitioning: CatalogPartitioning | None = None
    view_tables: tuple[str, ...] = ()
