"""The destinations that the suite is run on, each with a client of its own to look at what was stored.

A new target is added here, with the name of its connection type, and must then pass every test of the suite.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Protocol

import duckdb

from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.null.capabilities import NULL_CAPABILITIES
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from tests.conformance.values import Case
from tests.servers import installations
from tests.servers.farm import Farm

# SQL of the canonical text of a value (see values.py); `{}` is the column.
_DUCKDB_TEXT = {
    "date": "{}::VARCHAR",
    "time": "epoch_us({})::VARCHAR",
    "timestamp": "epoch_us({})::VARCHAR",
    "timestamptz": "epoch_us({})::VARCHAR",
    "bytes": "hex({})",
    "float32": "{}::DOUBLE",
    "float64": "{}",
    "decimal": "{}",
}
_POSTGRES_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_POSTGRES_TEXT = {
    "time": _POSTGRES_MICROSECONDS,
    "timestamp": _POSTGRES_MICROSECONDS,
    "timestamptz": _POSTGRES_MICROSECONDS,
    "bytes": "upper(encode({}, 'hex'))",
    "float32": "{}::float8",
    "float64": "{}",
    "bool": "{}::text",
    # char(n) is padded there.
    "char": "{}::text",
}


# All columns of a table of rejects but the time, with their type kinds.
REJECT_COLUMNS = {
    "run_id": "string",
    "task": "string",
    "number": "int64",
    "file": "string",
    "row": "int64",
    "byte": "int64",
    "column_name": "string",
    "column_number": "int64",
    "type": "string",
    "value": "string",
    "rule": "string",
    "code": "string",
    "message": "string",
    "also": "json",
    "row_byte": "int64",
    "row_bytes": "int64",
    "original": "bytes",
}


def _select_rejects(table: str, otherwise: str) -> str:
    columns = ", ".join(
        ("md5({})" if kind == "bytes" else otherwise).format(f'"{name}"') for name, kind in REJECT_COLUMNS.items()
    )
    order = 'ORDER BY stored."number", stored.run_id'
    return f"SELECT {columns} FROM {table} AS stored WHERE rejected_at > now() - INTERVAL 1 HOUR {order}"


class Destination(Protocol):
    """One place to load into, empty at first."""

    @property
    def url(self) -> str:
        """For `--connection`."""

    # Value of `load` with which declared partitions are tables of their own; None: there are none, or not yet.
    partition_load: str

    def count(self, table: str) -> int | None:
        """Rows of a table; None if there is none."""

    def ids(self, table: str) -> list[int]:
        """The column `id` of a table or partition, in rising order."""

    def column(self, table: str, case: Case) -> list[str | None]:
        """The canonical values of a column in the order of `id`."""

    def rejects(self, table: str) -> list[tuple[str | None, ...]]:
        """A table of rejects, `REJECT_COLUMNS` as canonical texts, MD5 of bytes, ordered by number and then run."""

    def change(self, statement: str) -> None:
        """Changes what was stored, as somebody else would."""

    def ledger(self) -> list[tuple[str, int, int]]:
        """The runs in order: status, slices committed, rows in them."""

    def close(self) -> None:
        """Nothing of it is needed any more."""


class DuckdbDestination:
    """A file, read by DuckDB's own client."""

    partition_load = "view"

    def __init__(self, folder: Path, servers: Farm) -> None:
        self._path = folder / "destination.duckdb"

    @property
    def url(self) -> str:
        return f"duckdb:{self._path}"

    def count(self, table: str) -> int | None:
        if not self._path.exists():
            return None
        try:
            [(rows,)] = self._rows(f"SELECT count(*) FROM {table}")
        except duckdb.CatalogException:
            return None
        return int(str(rows))

    def ids(self, table: str) -> list[int]:
        return [int(str(row[0])) for row in self._rows(f"SELECT id FROM {table} ORDER BY id")]

    def column(self, table: str, case: Case) -> list[str | None]:
        text = _DUCKDB_TEXT.get(case.kind, "{}::VARCHAR").format(case.name)
        return [_canonical(row[0]) for row in self._rows(f"SELECT {text} FROM {table} ORDER BY id")]

    def rejects(self, table: str) -> list[tuple[str | None, ...]]:
        query = _select_rejects(table, "{}::VARCHAR")
        return [tuple(map(_canonical, row)) for row in self._rows(query)]

    def ledger(self) -> list[tuple[str, int, int]]:
        # Slice 0 stands for the task as a whole.
        rows = self._rows(
            "SELECT status, count(slice) FILTER (WHERE slice > 0), coalesce(sum(rows_loaded), 0) "
            'FROM headrace.run LEFT JOIN headrace."commit" USING (run_id) '
            "GROUP BY run_id, status, started_at ORDER BY started_at"
        )
        return [(str(status), int(str(slices)), int(str(loaded))) for status, slices, loaded in rows]

    def close(self) -> None:
        pass

    def change(self, statement: str) -> None:
        with duckdb.connect(str(self._path)) as connection:
            connection.execute(statement)

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(self._path), read_only=True) as connection:
            return connection.execute(query).fetchall()


def _canonical(value: object) -> str | None:
    match value:
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case None:
            return None
        case _:
            return str(value)


class NullDestination:
    """Stores nothing: what it has seen is in the summary only."""

    partition_load = "staged"

    def __init__(self, folder: Path, servers: Farm) -> None:
        pass

    @property
    def url(self) -> str:
        return "null:"

    def count(self, table: str) -> int | None:
        return None

    def ids(self, table: str) -> list[int]:
        raise AssertionError("this destination stores nothing")

    def column(self, table: str, case: Case) -> list[str | None]:
        raise AssertionError("this destination stores nothing")

    def rejects(self, table: str) -> list[tuple[str | None, ...]]:
        raise AssertionError("this destination stores nothing")

    def change(self, statement: str) -> None:
        raise AssertionError("this destination stores nothing")

    def ledger(self) -> list[tuple[str, int, int]]:
        return []

    def close(self) -> None:
        pass


class PostgresDestination:
    """A database of its own on a real server, read by the server's psql."""

    partition_load = "staged"

    def __init__(self, folder: Path, servers: Farm, version: int = installations.DEFAULT) -> None:
        self._database = servers.shared(version).create_database()

    @property
    def url(self) -> str:
        return self._database.socket_url

    def count(self, table: str) -> int | None:
        if self._database.rows(f"SELECT to_regclass('{table}')") == [(None,)]:
            return None
        [(rows,)] = self._database.rows(f"SELECT count(*) FROM {table}")
        return int(str(rows))

    def ids(self, table: str) -> list[int]:
        return [int(str(row[0])) for row in self._database.rows(f"SELECT id FROM {table} ORDER BY id")]

    def column(self, table: str, case: Case) -> list[str | None]:
        text = _POSTGRES_TEXT.get(case.kind, "{}").format(case.name)
        values = [value for (value,) in self._database.rows(f"SELECT {text} FROM {table} ORDER BY id")]
        if not case.kind.startswith("float"):
            return values
        return [None if value is None else repr(float(value)) for value in values]

    def rejects(self, table: str) -> list[tuple[str | None, ...]]:
        query = _select_rejects(table, "{}::text")
        return self._database.rows(query.replace("INTERVAL 1 HOUR", "INTERVAL '1 hour'"))

    def change(self, statement: str) -> None:
        self._database.as_loader(statement)

    def ledger(self) -> list[tuple[str, int, int]]:
        if self._database.rows("SELECT to_regclass('headrace.run')") == [(None,)]:
            return []
        rows = self._database.rows(
            "SELECT status, count(slice) FILTER (WHERE slice > 0), coalesce(sum(rows_loaded), 0) "
            'FROM headrace.run LEFT JOIN headrace."commit" USING (run_id) '
            "GROUP BY run_id, status, started_at ORDER BY started_at"
        )
        return [(str(status), int(str(slices)), int(str(loaded))) for status, slices, loaded in rows]

    def close(self) -> None:
        self._database.drop()


# By the name of the connection type; what follows the name tells variants apart.
DESTINATIONS: dict[str, Callable[[Path, Farm], Destination]] = {
    "duckdb": DuckdbDestination,
    "null": NullDestination,
    **{f"postgres {version}": partial(PostgresDestination, version=version) for version in installations.versions()},
}

_CAPABILITIES = {"duckdb": DUCKDB_CAPABILITIES, "null": NULL_CAPABILITIES, "postgres": POSTGRES_CAPABILITIES}


def loads_of(name: str) -> tuple[str, ...]:
    """The values of `load` that a destination can execute for a table without declared partitions."""
    return _CAPABILITIES[name.split(" ")[0]].loads
