"""SQL text for DuckDB. Every identifier is quoted; values are bound as parameters where DuckDB allows it."""

from __future__ import annotations

from typing import Final

from headrace.planning import DataFlowPlan
from headrace.targets.duckdb.types import native_type

# The name under which the user's file is attached, and under which the merged Arrow stream is registered.
DATABASE: Final = "target"
STREAM: Final = "headrace_flow"


def quote(identifier: str) -> str:
    """A quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal, for the places where DuckDB takes no parameters."""
    return "'" + text.replace("'", "''") + "'"


def table_name(plan: DataFlowPlan) -> str:
    """The full, quoted name of the plan's table."""
    return f"{DATABASE}.{quote(plan.schema or 'main')}.{quote(plan.table)}"


def create_table(plan: DataFlowPlan) -> str:
    """CREATE TABLE with the columns of the plan."""
    columns = ",\n  ".join(
        f"{quote(column.target)} {native_type(column.type)}{'' if column.nullable else ' NOT NULL'}"
        for column in plan.columns
    )
    return f"CREATE TABLE {table_name(plan)} (\n  {columns}\n)"


def delete_rows(plan: DataFlowPlan) -> str:
    """DELETE of all rows. Keeps the table's comments, constraints and the views on it, unlike DROP."""
    return f"DELETE FROM {table_name(plan)}"


def insert_rows(plan: DataFlowPlan) -> str:
    """INSERT of everything the registered Arrow stream delivers."""
    targets = ", ".join(quote(column.target) for column in plan.columns)
    sources = ", ".join(quote(column.source) for column in plan.columns)
    return f"INSERT INTO {table_name(plan)} ({targets})\nSELECT {sources} FROM {STREAM}"


def attach(path: str, *, read_only: bool, storage_version: str | None) -> str:
    """ATTACH of the user's file."""
    # Without the type DuckDB guesses from the contents, and may fetch an extension for another format.
    options = ["TYPE duckdb"]
    if read_only:
        options.append("READ_ONLY")
    if storage_version is not None:
        options.append(f"STORAGE_VERSION {literal(storage_version)}")
    return f"ATTACH {literal(path)} AS {DATABASE} ({', '.join(options)})"
