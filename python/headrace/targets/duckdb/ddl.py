"""SQL text for DuckDB. Every identifier is quoted; values are bound as parameters where DuckDB allows it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from headrace.model.duckdb_types import native_type
from headrace.planning import DataFlowPlan

# The name under which the user's file is attached, and under which the merged Arrow stream is registered.
DATABASE: Final = "target"
STREAM: Final = "headrace_flow"
# A temporary table for the rows of all partitions on their way.
HIDDEN: Final = "temp.headrace_rows"


def quote(identifier: str) -> str:
    """A quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal, for the places where DuckDB takes no parameters."""
    return "'" + text.replace("'", "''") + "'"


def table_name(plan: DataFlowPlan) -> str:
    """The full, quoted name of the plan's table."""
    return part_name(plan, plan.table)


def part_name(plan: DataFlowPlan, table: str) -> str:
    """The full, quoted name of a table beside that of the plan."""
    return full_name(plan.schema or "main", table)


def full_name(schema: str, table: str) -> str:
    """The full, quoted name of a table."""
    return f"{DATABASE}.{quote(schema)}.{quote(table)}"


def create_table(plan: DataFlowPlan, table: str, types: Mapping[str, str] | None = None) -> str:
    """CREATE TABLE with the columns of the plan. `types`: those of columns that have one already elsewhere."""
    known = types or {}
    columns = ",\n  ".join(
        f"{quote(column.target)} {known.get(column.target) or column.native or native_type(column.type)}"
        f"{'' if column.nullable else ' NOT NULL'}"
        for column in plan.columns
    )
    return f"CREATE TABLE {table} (\n  {columns}\n)"


def drop_table(table: str) -> str:
    """DROP TABLE."""
    return f"DROP TABLE {table}"


def delete_rows(table: str) -> str:
    """DELETE of all rows. Keeps the table's comments, constraints and the views on it, unlike DROP."""
    return f"DELETE FROM {table}"


def insert_rows(plan: DataFlowPlan, table: str) -> str:
    """INSERT of everything the registered Arrow stream delivers."""
    return insert_from(plan, table, f"FROM {STREAM}")


def insert_from(plan: DataFlowPlan, table: str, source: str) -> str:
    """INSERT of the columns of the plan. `source`: FROM and what stands behind it."""
    return f"INSERT INTO {table} ({_targets(plan)})\nSELECT {_sources(plan)} {source}"


def place_column(plan: DataFlowPlan) -> str:
    """Name of the column in which rows have their place: not that of a column of the layout."""
    taken = {name.casefold() for name in plan.source_columns}
    candidates = itertools.chain(["place"], (f"place_{number}" for number in itertools.count(2)))
    return next(name for name in candidates if name not in taken)


def create_hidden(plan: DataFlowPlan) -> str:
    """The rows of the stream, those of one place together: each partition then reads its own part of them.

    Unsorted rows that have spilled would be read once for each partition.
    """
    place = quote(place_column(plan))
    # A column of the layout may go into several of the table.
    sources = ", ".join(dict.fromkeys([quote(column.source) for column in plan.columns] + [place]))
    return f"CREATE TEMP TABLE {HIDDEN} AS\nSELECT {sources} FROM {STREAM} ORDER BY {place}"


def insert_place(plan: DataFlowPlan, table: str, place: int) -> str:
    """INSERT of the hidden rows that have a place."""
    where = f"WHERE {quote(place_column(plan))} = {place}"
    return f"INSERT INTO {table} ({_targets(plan)})\nSELECT {_sources(plan)} FROM {HIDDEN} {where}"


def create_view(schema: str, view: str, columns: Sequence[str], tables: Sequence[str]) -> str:
    """The view of tables of its schema. They are named without the database, which other clients call otherwise."""
    shown = ", ".join(quote(name) for name in columns)
    selects = "\nUNION ALL ".join(f"SELECT {shown} FROM {quote(schema)}.{quote(table)}" for table in tables)
    return f"CREATE OR REPLACE VIEW {full_name(schema, view)} AS\n{selects}"


def rename_table(table: str, name: str) -> str:
    """ALTER TABLE ... RENAME."""
    return f"ALTER TABLE {table} RENAME TO {quote(name)}"


def _targets(plan: DataFlowPlan) -> str:
    return ", ".join(quote(column.target) for column in plan.columns)


def _sources(plan: DataFlowPlan) -> str:
    return ", ".join(quote(column.source) for column in plan.columns)


def attach(path: str, *, read_only: bool, storage_version: str | None) -> str:
    """ATTACH of the user's file."""
    # Without the type DuckDB guesses from the contents, and may fetch an extension for another format.
    options = ["TYPE duckdb"]
    if read_only:
        options.append("READ_ONLY")
    if storage_version is not None:
        options.append(f"STORAGE_VERSION {literal(storage_version)}")
    return f"ATTACH {literal(path)} AS {DATABASE} ({', '.join(options)})"
