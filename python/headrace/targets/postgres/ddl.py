"""SQL text for PostgreSQL that depends on the plan alone. Every identifier is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.planning import DataFlowPlan, KeyBounds
from headrace.targets.postgres.connection import BEGIN
from headrace.targets.postgres.names import TableName, literal, quote, short_name, writers_lock_key
from headrace.targets.postgres.types import native_type

# The constraint that spares ATTACH PARTITION the scan; dropped behind it.
BOUNDS_CONSTRAINT = "headrace_bounds"
# What LIKE copies besides names, types and NOT NULL. Indexes are made after the load.
_LIKE = ("DEFAULTS", "GENERATED", "STORAGE", "COMPRESSION", "CONSTRAINTS", "COMMENTS")

# In the statement (or transaction) of a table or index that is like another one: not where the user has new ones made.
WHERE_THE_PATTERN_IS: Final = "SET LOCAL default_tablespace = ''"


def column_definitions(plan: DataFlowPlan) -> str:
    """The columns of a new table, one per line.

    From version 18 on the server names NOT NULL constraints, after the hidden table if we did not.
    """
    lines = []
    for column in plan.columns:
        name = f"{plan.table}_{column.target}_not_null"
        named = f"CONSTRAINT {quote(name)} " if name == short_name(name) else ""
        rule = "" if column.nullable else f" {named}NOT NULL"
        lines.append(f"{quote(column.target)} {native_type(column.type)}{rule}")
    return ",\n  ".join(lines)


def create_new(table: TableName, plan: DataFlowPlan, bounds: KeyBounds | None) -> str:
    """CREATE TABLE of a hidden table with the columns of the plan."""
    return f"CREATE TABLE {table.sql} (\n  {column_definitions(plan)}{_bounds(plan, bounds)}\n)"


def create_like(
    table: TableName, pattern: TableName, plan: DataFlowPlan, bounds: KeyBounds | None, storage: str, *, identity: bool
) -> str:
    """CREATE TABLE of a hidden table like an existing one. `storage` stands behind the columns."""
    copied = [item for item in _LIKE if item != "CONSTRAINTS" or plan.options.check_constraints]
    including = " ".join(f"INCLUDING {item}" for item in [*copied, *["IDENTITY"] * identity])
    like = f"CREATE TABLE {table.sql} (\n  LIKE {pattern.sql} {including}{_bounds(plan, bounds)}\n){storage}"
    return f"{WHERE_THE_PATTERN_IS};\n{like}"


def create_like_view(table: TableName, view: TableName, plan: DataFlowPlan) -> list[str]:
    """Statements for a hidden table that can stand behind an existing view: of its very types."""
    filled = [f"ALTER COLUMN {quote(column.target)} SET NOT NULL" for column in plan.columns if not column.nullable]
    not_null = [f"ALTER TABLE {table.sql} {', '.join(filled)}"] if filled else []
    return [f"CREATE TABLE {table.sql} (LIKE {view.sql})", *not_null]


def create_parent(table: TableName, plan: DataFlowPlan) -> str:
    """CREATE TABLE of a new table that is partitioned by ranges of the plan's partition column."""
    key = quote(plan.partition_column or "")
    return f"CREATE TABLE {table.sql} (\n  {column_definitions(plan)}\n) PARTITION BY RANGE ({key})"


# A commit that is reported as done must survive a crash. What somebody wants beyond that, such as standbys that have
# applied it, stays.
DURABLE: Final = (
    "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) "
    "WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)


def begin_unit(run_id: str, statements: Sequence[str]) -> str:
    """What a writer executes before its COPY. Its lock says, until the transaction ends, that the run has writers."""
    shared = f"SELECT pg_catalog.pg_advisory_xact_lock_shared({writers_lock_key(run_id)})"
    return ";\n".join([BEGIN, shared, *statements])


def copy_into(table: TableName, plan: DataFlowPlan, *, freeze: bool) -> str:
    """The COPY statement. `freeze`: the table is made in the same transaction, so nobody can miss its old rows."""
    return f"COPY {table.sql} ({_target_columns(plan)}) FROM STDIN (FORMAT binary{', FREEZE' if freeze else ''})"


def move_rows(table: TableName, hidden: TableName, plan: DataFlowPlan) -> str:
    """INSERT of a hidden table's rows; numbers of the source go into an identity column as they are."""
    columns = _target_columns(plan)
    return f"INSERT INTO {table.sql} ({columns}) OVERRIDING SYSTEM VALUE\nSELECT {columns} FROM {hidden.sql}"


def attach(table: TableName, partition: TableName, bounds: KeyBounds) -> str:
    """ALTER TABLE ... ATTACH PARTITION."""
    end = "MAXVALUE" if bounds.end is None else literal(bounds.end)
    values = f"FROM ({literal(bounds.minimum)}) TO ({end})"
    return f"ALTER TABLE {table.sql} ATTACH PARTITION {partition.sql} FOR VALUES {values}"


def create_view(table: TableName, members: Sequence[TableName], columns: Sequence[str], options: str) -> str:
    """The view over the writers' tables; an existing one must have the same columns in the same order, and would lose
    its options if they were not named again.
    """
    names = ", ".join(quote(name) for name in columns)
    selects = "\nUNION ALL\n".join(f"SELECT {names} FROM {member.sql}" for member in members)
    return f"CREATE OR REPLACE VIEW {table.sql}{options} AS\n{selects}"


def vacuum(table: TableName, *, own: bool) -> str:
    """ALTER TABLE that keeps autovacuum away from a hidden table, or with `own` gives it back to the server's rule."""
    change = "RESET (autovacuum_enabled)" if own else "SET (autovacuum_enabled = off)"
    return f"ALTER TABLE {table.sql} {change}"


def take_place(hidden: TableName, table: TableName) -> list[str]:
    """Moves a hidden table into the schema of `table` and gives it that name, which must be free."""
    moved = TableName(table.schema, hidden.name)
    steps = [f"ALTER TABLE {hidden.sql} SET SCHEMA {quote(table.schema)}"] if hidden.schema != table.schema else []
    return [*steps, f"ALTER TABLE {moved.sql} RENAME TO {quote(table.name)}"]


def _target_columns(plan: DataFlowPlan) -> str:
    return ", ".join(quote(column.target) for column in plan.columns)


def _bounds(plan: DataFlowPlan, bounds: KeyBounds | None) -> str:
    if bounds is None:
        return ""
    key = quote(plan.partition_column or "")
    below = "" if bounds.end is None else f" AND {key} < {literal(bounds.end)}"
    rule = f"{key} IS NOT NULL AND {key} >= {literal(bounds.minimum)}{below}"
    return f",\n  CONSTRAINT {quote(BOUNDS_CONSTRAINT)} CHECK ({rule})"
