"""The loaded tables for the independent check, wherever they are: DuckDB has to be able to select from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from headrace import core
from headrace.tpch.verify import RECORD_TYPES, literal

_DATABASE: Final = "loaded"
# PostgreSQL's names, as DuckDB spells the same types.
_DUCKDB_NAMES: Final = (
    (re.compile(r"bigint"), "BIGINT"),
    (re.compile(r"integer"), "INTEGER"),
    (re.compile(r"date"), "DATE"),
    (re.compile(r"numeric(\(\d+,\d+\))"), r"DECIMAL\1"),
    (re.compile(r"(character|character varying)\(\d+\)"), "VARCHAR"),
)
_COLUMNS: Final = """
SELECT attname, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped
"""


class DuckdbTables:
    """`LoadedTables` of a database file, which is opened read-only."""

    def __init__(self, database: Path) -> None:
        self.place = database
        self._connection: duckdb.DuckDBPyConnection | None = None

    def open(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {literal(str(self.place))} AS {_DATABASE} (READ_ONLY)")
        self._connection = connection

    @contextmanager
    def relation(self, table: str) -> Iterator[str]:
        yield f"{_DATABASE}.{table}"

    def types(self, table: str) -> Mapping[str, str]:
        assert self._connection is not None
        rows = self._connection.execute(f"DESCRIBE {_DATABASE}.{table}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def interrupt(self) -> None:
        return None


class PostgresTables:
    """`LoadedTables` of a server on this machine: it writes each table as text into `place`, where DuckDB reads it."""

    def __init__(self, session: core.PostgresConnection, place: Path) -> None:
        self.place = place
        self._session = session

    def open(self, connection: duckdb.DuckDBPyConnection) -> None:
        return None

    @contextmanager
    def relation(self, table: str) -> Iterator[str]:
        file = self.place / f"{table}.csv"
        # As text, character(n) is without its trailing blanks, as DuckDB stores it.
        columns = ", ".join(f"{name}::text" for name in RECORD_TYPES[table])
        self._session.execute(
            f"COPY (SELECT {columns} FROM {table}) TO {literal(str(file))} (FORMAT csv, NULL '\\N', FORCE_QUOTE *)"
        )
        types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in RECORD_TYPES[table].items())
        try:
            yield (
                f"read_csv({literal(str(file))}, columns = {{{types}}}, delim = ',', header = false, quote = '\"', "
                "escape = '\"', nullstr = '\\N', auto_detect = false)"
            )
        finally:
            file.unlink()

    def types(self, table: str) -> Mapping[str, str]:
        rows = self._session.query(_COLUMNS, (table,)).rows
        return {str(name): _duckdb_name(str(found)) for name, found in rows}

    def interrupt(self) -> None:
        self._session.cancel()


def _duckdb_name(native: str) -> str:
    for pattern, name in _DUCKDB_NAMES:
        found = pattern.fullmatch(native)
        if found is not None:
            return found.expand(name)
    return native
