"""Reads a table's columns from DuckDB's catalog."""

from __future__ import annotations

import duckdb

from headrace.errors import TargetError
from headrace.planning import CatalogColumn, CatalogTable
from headrace.targets.duckdb.connection import sql
from headrace.targets.duckdb.types import data_type

LEDGER_SCHEMA = "headrace"


def read_table(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> CatalogTable | None:
    """The table or view as it is now, None if it does not exist. Raises TargetError if the schema does not."""
    found = connection.execute(sql("table_kind"), {"schema": schema, "table": table}).fetchone()
    if found is None:
        require_schema(connection, schema)
        return None
    rows = connection.execute(sql("columns"), {"schema": schema, "table": table}).fetchall()
    columns = tuple(
        CatalogColumn(
            name=name,
            type=data_type(native, precision, scale),
            native_type=native,
            nullable=nullable,
            has_default=has_default,
            generated=generated,
        )
        for _, name, native, precision, scale, nullable, has_default, generated in rows
    )
    names = {"schema": schema, "table": table}
    return CatalogTable(
        schema=found[0],
        name=found[1],
        columns=columns,
        kind=found[2],
        indexes=tuple(row[0] for row in connection.execute(sql("indexes"), names).fetchall()),
        referenced_by=tuple(row[0] for row in connection.execute(sql("referenced_by"), names).fetchall()),
    )


def require_schema(connection: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Raises TargetError unless the attached file has the schema."""
    query = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'target' ORDER BY 1"
    schemas = [row[0] for row in connection.execute(query).fetchall()]
    if schema.casefold() not in (name.casefold() for name in schemas):
        raise missing_schema(schema, schemas)


def missing_schema(schema: str, schemas: list[str]) -> TargetError:
    """The error for a schema that does not exist. Schemas are the administrator's; they are not created silently."""
    return TargetError(
        f"the database has no schema `{schema}`",
        expected=f"one of: {', '.join(name for name in schemas if name != LEDGER_SCHEMA)}",
        hint=f'Create it first: CREATE SCHEMA "{schema}"',
    )


def refuse_ledger_schema(schema: str) -> None:
    """Raises TargetError for a destination inside the ledger's own schema."""
    if schema.casefold() == LEDGER_SCHEMA:
        raise TargetError(f"schema `{schema}` belongs to the ledger and takes no tables", hint="Choose another schema.")
