"""Reads tables, and the views that loads have made, from DuckDB's catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb

from headrace.errors import TargetError
from headrace.model.duckdb_types import data_type
from headrace.planning import CatalogColumn, CatalogTable
from headrace.targets.duckdb.connection import sql
from headrace.targets.duckdb.divided_views import read_divided_view

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
    catalog = CatalogTable(
        schema=found[0],
        name=found[1],
        columns=columns,
        kind=found[2],
        indexes=tuple(row[0] for row in connection.execute(sql("indexes"), names).fetchall()),
        referenced_by=tuple(row[0] for row in connection.execute(sql("referenced_by"), names).fetchall()),
    )

    partitioning = read_divided_view(connection, schema, table) if catalog.kind == "view" else None
    if partitioning is None:
        return catalog
    parts = [_part(connection, catalog, part.name) for part in partitioning.partitions]
    return replace(
        catalog,
        columns=tuple(_in_all(column, parts) for column in catalog.columns),
        indexes=tuple(f"{index} of {part.name}" for part in parts for index in part.indexes),
        referenced_by=tuple(name for part in parts for name in part.referenced_by),
        partitioning=partitioning,
        view_tables=tuple(part.name for part in partitioning.partitions),
    )


def read_estimated_rows(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> int | None:
    """About how many rows a table has; None for a view."""
    found = connection.execute(sql("estimated_rows"), {"schema": schema, "table": table}).fetchone()
    return None if found is None else int(found[0])


def names_in_schema(connection: duckdb.DuckDBPyConnection, schema: str) -> frozenset[str]:
    """All tables and views of a schema."""
    return frozenset(row[0] for row in connection.execute(sql("names"), {"schema": schema}).fetchall())


def _part(connection: duckdb.DuckDBPyConnection, view: CatalogTable, name: str) -> CatalogTable:
    part = read_table(connection, view.schema, name)
    if part is None or part.kind != "table":
        raise TargetError(
            f"a table that view {view.name} shows does not exist",
            found=f"`{name}` is no table",
            hint=f"Drop the view: it is made anew then. Or bring `{name}` back.",
        )
    return part


def _in_all(column: CatalogColumn, parts: Sequence[CatalogTable]) -> CatalogColumn:
    """A column of a view takes NULL if it does so in every table."""
    own = [found for part in parts for found in part.columns if found.name.casefold() == column.name.casefold()]
    return replace(column, nullable=all(found.nullable for found in own))


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
