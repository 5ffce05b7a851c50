"""Queries without a connection: answered by a DuckDB of their own that has no files, no network and no tables.

DuckDB is imported when the first query is described, so that packages without such queries load fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headrace.model.arrow_rows import arrow_rows
from headrace.model.duckdb_instance import new_instance

if TYPE_CHECKING:
    import duckdb

# Enough to describe any query: nothing is executed.
_DESCRIBING_BYTES: Final = 100_000_000
# Columns as the core has them: decimals and truth values in their narrow forms, uuids as bytes.
ARROW_SETTINGS: Final = (
    "SET arrow_output_version = '1.5'",
    "SET produce_arrow_string_view = true",
    "SET arrow_lossless_conversion = true",
)
_SETTINGS: Final = (*ARROW_SETTINGS, "SET TimeZone = 'UTC'")


class EmbeddedQueryError(ValueError):
    """The query cannot be answered; the text is DuckDB's own message."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """`text`: as DuckDB is asked, with `parameter` in place of each value; `written`: as the package has it.

    `values`: DuckDB type and value of each parameter. `is_ordered`: whether its rows have an order.
    """

    text: str
    written: str
    values: tuple[tuple[str, object], ...] = ()
    is_ordered: bool = False


def parameter(number: int) -> str:
    """What stands in the text for a value. Not `$1`: a statement with parameters is executed when it is described."""
    return f"getvariable('headrace_{number}')"


def described(query: EmbeddedQuery) -> Sequence[tuple[str, str]]:
    """Names and DuckDB types of the columns, in their order. Raises EmbeddedQueryError."""
    with embedded_database(query, _DESCRIBING_BYTES) as connection:
        return described_by(connection, query.text)


def described_by(connection: duckdb.DuckDBPyConnection, text: str) -> Sequence[tuple[str, str]]:
    """The same by a database that has the values. Raises EmbeddedQueryError if it is no query, and duckdb.Error."""
    import duckdb

    statements = connection.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise EmbeddedQueryError("This is not one query.", "Write SELECT, VALUES or FROM.")
    return columns_of(connection, text)


def columns_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    """Names and DuckDB types of what is known to be one query. Raises duckdb.Error."""
    rows = connection.execute(f"DESCRIBE {query}").fetchall()
    return [(str(row[0]), str(row[1]).strip('"')) for row in rows]


def give_values(connection: duckdb.DuckDBPyConnection, values: Sequence[tuple[str, object]]) -> None:
    """Makes DuckDB type and value of each parameter known to the queries of the connection. Raises duckdb.Error."""
    for number, (sql_type, value) in enumerate(values, start=1):
        connection.execute(f"SET VARIABLE headrace_{number} = CAST($1 AS {sql_type})", [value])


def row_stream(connection: duckdb.DuckDBPyConnection, query: EmbeddedQuery) -> object:
    """The capsule of an Arrow C stream with the rows; most of them are computed when they are asked for."""
    return arrow_rows(connection, query.text)


@contextmanager
def embedded_database(query: EmbeddedQuery, memory_bytes: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for the query, with its values. What DuckDB raises in the block becomes an EmbeddedQueryError."""
    import duckdb

    try:
        with bare_database(query, memory_bytes) as connection:
            yield connection
    except (duckdb.PermissionException, duckdb.CatalogException) as error:
        hint = "A query without `connection` sees no files and no tables: it computes its rows."
        raise EmbeddedQueryError(message_of(error), hint) from error
    except duckdb.Error as error:
        raise EmbeddedQueryError(message_of(error)) from error


@contextmanager
def bare_database(
    query: EmbeddedQuery,
    memory_bytes: int,
    settings: Sequence[str] = (),
    *,
    spills: bool = True,
    threads: int = 1,
    spill_folder: str | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for the query, with its values and further settings. `spills`: whether what does not fit into its
    memory may go to disk, into `spill_folder`.
    """
    connection = new_instance(
        {
            "enable_external_access": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "threads": threads,
            "async_threads": 0,
            "memory_limit": f"{memory_bytes}B",
            **({} if spills else {"temp_directory": ""}),
            **({} if spill_folder is None else {"temp_directory": spill_folder}),
        }
    )
    try:
        give_values(connection, query.values)
        for setting in (*_SETTINGS, *settings, "SET lock_configuration = true"):
            connection.execute(setting)
        yield connection
    finally:
        connection.close()


def message_of(error: object) -> str:
    """DuckDB's message without the excerpt of the statement that follows it, and without tables of its own."""
    return " ".join(str(error).split("\n\nLINE ")[0].split("\nDid you mean ")[0].split())
