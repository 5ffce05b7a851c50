"""The rows of a table for a lookup, as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from headrace.errors import CancelledError, SourceError
from headrace.model import LookupColumn
from headrace.model.duckdb_types import native_type
from headrace.model.embedded_query import ARROW_SETTINGS
from headrace.targets.base import RowStream
from headrace.targets.duckdb.ddl import DATABASE, full_name, quote
from headrace.targets.duckdb.failures import first_paragraph


@contextmanager
def lookup_rows(
    cursor: duckdb.DuckDBPyConnection, path: Path, schema: str, table: str, columns: Sequence[LookupColumn]
) -> Iterator[RowStream]:
    """The rows that the cursor sees. Raises SourceError."""
    # Of a type that Headrace has in another form, such as HUGEINT.
    wanted = ", ".join(f"CAST({quote(own.name)} AS {native_type(own.type)}) AS {quote(own.name)}" for own in columns)

    def rows() -> object:
        # A view may name its tables without the database.
        for setting in (f"USE {DATABASE}", *ARROW_SETTINGS):
            cursor.execute(setting)
        capsule: object = cursor.sql(f"SELECT {wanted} FROM {full_name(schema, table)}").__arrow_c_stream__()
        return capsule

    try:
        yield RowStream(rows, cursor.interrupt)
    except duckdb.InterruptException as error:
        raise CancelledError("reading a table was cancelled") from error
    except duckdb.Error as error:
        raise SourceError(
            f"table {schema}.{table} cannot be read", at={"file": str(path)}, found=first_paragraph(error)
        ) from error
