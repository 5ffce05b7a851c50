"""The rows of a table or query for a lookup, as an Arrow stream, and what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from headrace.errors import CancelledError, HeadraceError, SourceError, SqlError
from headrace.model import (
    DatabaseQuery,
    DatabaseSource,
    EmbeddedQueryError,
    LookupColumn,
    LookupTable,
    TableColumn,
    TableSource,
)
from headrace.model.arrow_rows import arrow_rows
from headrace.model.bound_query import with_variables
from headrace.model.duckdb_types import native_type
from headrace.model.embedded_query import ARROW_SETTINGS, described_by, give_values
from headrace.model.lookup import query_columns
from headrace.planning import CatalogTable
from headrace.targets.base import RowStream
from headrace.targets.duckdb.ddl import DATABASE, full_name, quote
from headrace.targets.duckdb.failures import first_paragraph, needs_trust
from headrace.targets.duckdb.sql_sessions import statement_failure

# What names and times of day mean in a query, as in the SQL of tasks.
_USE = f"USE {DATABASE}"
_MAIN = "main"


def described_table(table: CatalogTable, rows: int | None) -> LookupTable:
    """A table or view; `rows`: about as many it has."""
    columns = (TableColumn(own.name, own.type, own.native_type, own.nullable) for own in table.columns)
    return LookupTable(tuple(columns), rows, is_plain=table.kind == "table")


def described_query(cursor: duckdb.DuckDBPyConnection, path: Path, query: DatabaseQuery) -> LookupTable:
    """What a query gives. Raises SqlError if DuckDB refuses it."""
    try:
        cursor.execute(_USE)
        found = described_by(cursor, _with_values(cursor, query))
    except EmbeddedQueryError as error:
        raise SqlError("DuckDB refused", found=error.text, hint=error.hint) from None
    except duckdb.Error as error:
        raise statement_failure(error, path) from error
    return LookupTable(query_columns(found), None)


@contextmanager
def lookup_rows(
    cursor: duckdb.DuckDBPyConnection, path: Path, source: DatabaseSource, columns: Sequence[LookupColumn]
) -> Iterator[RowStream]:
    """The rows that the cursor sees. Raises SourceError for a table, SqlError for a query."""

    def rows() -> object:
        # A view may name its tables without the database.
        for setting in (_USE, *ARROW_SETTINGS):
            cursor.execute(setting)
        if isinstance(source, TableSource):
            # Of a type that Headrace has in another form, such as HUGEINT.
            wanted = [f"CAST({quote(own.name)} AS {native_type(own.type)}) AS {quote(own.name)}" for own in columns]
            rows_of = full_name(source.schema or _MAIN, source.table)
        else:
            wanted = [quote(own.name) for own in columns]
            # A comment may end the text.
            rows_of = f"({_with_values(cursor, source.query)}\n)"
        return arrow_rows(cursor, f"SELECT {', '.join(wanted)} FROM {rows_of}")

    try:
        yield RowStream(rows, cursor.interrupt)
    except duckdb.InterruptException as error:
        raise CancelledError("reading rows of a lookup was cancelled") from error
    except duckdb.Error as error:
        raise _failure(error, path, source) from error


def _failure(error: duckdb.Error, path: Path, source: DatabaseSource) -> HeadraceError:
    if isinstance(source, TableSource):
        name = f"{source.schema or _MAIN}.{source.table}"
        what = f"table {name} cannot be read"
    else:
        what = f"the query of lookup `{source.name}` failed"
    return SourceError(what, at={"file": str(path)}, found=first_paragraph(error), hint=needs_trust(error))


def _with_values(cursor: duckdb.DuckDBPyConnection, query: DatabaseQuery) -> str:
    """The text of the query, whose values the cursor knows then."""
    asked = with_variables(query)
    give_values(cursor, asked.values)
    return asked.text
