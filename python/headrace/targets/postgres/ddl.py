"""SQL text for PostgreSQL that depends on the plan alone. Every identifier is quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.errors import InternalError
from headrace.planning import DataFlowPlan, Partitioning, PartitionRule
from headrace.targets.postgres.bounds import for_values
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
        lines.append(f"{quote(column.target)} {column.native or native_type(column.type)}{rule}")
    return ",\n  ".join(lines)


def create_new(table: TableName, plan: DataFlowPlan, condition: str | None, tablespace: str | None) -> str:
    """CREATE TABLE of a hidden table with the columns of the plan. `condition`: of the keys of its rows."""
    where = "" if tablespace is None else f" TABLESPACE {quote(tablespace)}"
    return f"CREATE TABLE {table.sql} (\n  {column_definitions(plan)}{_bounds(condition)}\n){where}"


def create_like(
    table: TableName, pattern: TableName, plan: DataFlowPlan, condition: str | None, storage: str, *, identity: bool
) -> str:
    """CREATE TABLE of a hidden table like an existing one. `storage` stands behind the columns."""
    like = _like(pattern, plan, identity=identity)
    return f"{WHERE_THE_PATTERN_IS};\nCREATE TABLE {table.sql} (\n  {like}{_bounds(condition)}\n){storage}"


def create_like_view(table: TableName, view: TableName, plan: DataFlowPlan) -> list[str]:
    """Statements for a hidden table that can stand behind an existing view: of its very types."""
    filled = [f"ALTER COLUMN {quote(column.target)} SET NOT NULL" for column in plan.columns if not column.nullable]
    not_null = [f"ALTER TABLE {table.sql} {', '.join(filled)}"] if filled else []
    return [f"CREATE TABLE {table.sql} (LIKE {view.sql})", *not_null]


def create_parent(table: TableName, plan: DataFlowPlan) -> str:
    """CREATE TABLE of a new partitioned table."""
    planned = partitioning_of(plan)
    key = f"{planned.strategy.upper()} ({quote(planned.column)})"
    return f"CREATE TABLE {table.sql} (\n  {column_definitions(plan)}\n) PARTITION BY {key}"


def create_parent_like(table: TableName, pattern: TableName, plan: DataFlowPlan, key: str) -> str:
    """The same like an existing one. `key`: what stands behind PARTITION BY."""
    return f"CREATE TABLE {table.sql} (\n  {_like(pattern, plan, identity=False)}\n) PARTITION BY {key}"


# A commit that is reported as done must survive a crash. What somebody wants beyond that, such as standbys that have
# applied it, stays.
DURABLE: Final = (
    "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) "
    "WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)


_BEGIN_REPEATABLE: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"


def begin_unit(run_id: str, statements: Sequence[str], *, snapshot: str | None = None) -> str:
    """What a writer executes before its COPY. Its lock says, until the transaction ends, that the run has writers.
    `snapshot`: the name of one that another session has exported.
    """
    shared = f"SELECT pg_catalog.pg_advisory_xact_lock_shared({writers_lock_key(run_id)})"
    return ";\n".join([BEGIN if snapshot is None else begin_in(snapshot), shared, *statements])


def begin_in(snapshot: str) -> str:
    """Begins a transaction that sees what a snapshot does which another session has exported."""
    return f"{_BEGIN_REPEATABLE};\nSET TRANSACTION SNAPSHOT {literal(snapshot)}"


def copy_into(table: TableName, plan: DataFlowPlan, *, freeze: bool) -> str:
    """The COPY statement. `freeze`: the table is made in the same transaction, so nobody can miss its old rows."""
    return f"COPY {table.sql} ({_target_columns(plan)}) FROM STDIN (FORMAT binary{', FREEZE' if freeze else ''})"


def move_rows(table: TableName, hidden: TableName, plan: DataFlowPlan) -> str:
    """INSERT of a hidden table's rows; numbers of the source go into an identity column as they are."""
    columns = _target_columns(plan)
    return f"INSERT INTO {table.sql} ({columns}) OVERRIDING SYSTEM VALUE\nSELECT {columns} FROM {hidden.sql}"


def insert_query(table: TableName, plan: DataFlowPlan, query: str, alias: str, lengths: Mapping[str, int]) -> str:
    """INSERT of the rows of a query into a hidden table. `lengths`: of columns of the table that hold no longer texts:
    SQL would cut blanks at the end of what is too long, and say nothing.
    """
    sources = []
    for column in plan.columns:
        source, length = f"{alias}.{quote(column.source)}", lengths.get(column.target)
        if length is not None:
            marked = f"pg_catalog.textcat({source}::pg_catalog.text, '.')"
            source = (
                f"CASE WHEN pg_catalog.length({source}::pg_catalog.text) > {length} THEN {marked} ELSE {source} END"
            )
        sources.append(source)
    return (
        f"INSERT INTO {table.sql} ({_target_columns(plan)}) OVERRIDING SYSTEM VALUE\n"
        f"SELECT {', '.join(sources)} FROM (\n{query}\n) AS {alias}"
    )


def count_moved(table: TableName, hidden: TableName, plan: DataFlowPlan) -> str:
    """The same, into a partitioned table: replies with each partition's name and the rows that it took."""
    return (
        f"WITH moved AS ({move_rows(table, hidden, plan)}\nRETURNING tableoid)\n"
        "SELECT (SELECT relname FROM pg_catalog.pg_class WHERE oid = moved.tableoid), pg_catalog.count(*)\n"
        "FROM moved GROUP BY tableoid"
    )


def attach(table: TableName, partition: TableName, rule: PartitionRule) -> str:
    """ALTER TABLE ... ATTACH PARTITION."""
    return attach_as(table, partition, for_values(rule))


def attach_as(table: TableName, partition: TableName, bound: str) -> str:
    """The same with what stands behind the partition's name."""
    return f"ALTER TABLE {table.sql} ATTACH PARTITION {partition.sql} {bound}"


def detach(table: TableName, partition: TableName) -> str:
    """ALTER TABLE ... DETACH PARTITION."""
    return f"ALTER TABLE {table.sql} DETACH PARTITION {partition.sql}"


def drop_bounds(table: TableName) -> str:
    """ALTER TABLE that takes the condition of its keys away from a table that is a partition by now."""
    return f"ALTER TABLE {table.sql} DROP CONSTRAINT {quote(BOUNDS_CONSTRAINT)}"


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
    """Moves a hidden table into the schema of `table` and gives it that name, which must be free, unless it has it."""
    moved = TableName(table.schema, hidden.name)
    steps = [f"ALTER TABLE {hidden.sql} SET SCHEMA {quote(table.schema)}"] if hidden.schema != table.schema else []
    renames = [f"ALTER TABLE {moved.sql} RENAME TO {quote(table.name)}"] if moved.name != table.name else []
    return [*steps, *renames]


def _target_columns(plan: DataFlowPlan) -> str:
    return ", ".join(quote(column.target) for column in plan.columns)


def _like(pattern: TableName, plan: DataFlowPlan, *, identity: bool) -> str:
    copied = [item for item in _LIKE if item != "CONSTRAINTS" or plan.options.check_constraints]
    return f"LIKE {pattern.sql} " + " ".join(f"INCLUDING {item}" for item in [*copied, *["IDENTITY"] * identity])


def _bounds(condition: str | None) -> str:
    return "" if condition is None else f",\n  CONSTRAINT {quote(BOUNDS_CONSTRAINT)} CHECK ({condition})"


def partitioning_of(plan: DataFlowPlan) -> Partitioning:
    """How the table of a plan is divided that has partitions."""
    if plan.partitioning is None:
        raise InternalError(f"table {plan.table} is not partitioned")
    return plan.partitioning
