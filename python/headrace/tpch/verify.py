"""Checks loaded TPC-H tables against DuckDB's own reading of the same files.

Independent of Headrace on purpose: the types are written here a second time, as the record load had them, and nothing
of the package, the layouts or the core is used. Every row must be there as often as in the files: row counts agree
and EXCEPT ALL is empty both ways.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb

from headrace.errors import CancelledError, TargetError
from headrace.model import new_instance
from headrace.tpch import text_files

_STEP_SECONDS: Final = 0.1
_MONEY: Final = "DECIMAL(15,2)"

# Columns of each table, in file order, with the type the loaded table must have.
# DuckDB has no char(n) and varchar(n): text is VARCHAR, char(n) without trailing blanks.
RECORD_TYPES: Final[dict[str, dict[str, str]]] = {
    "lineitem": {
        "l_orderkey": "BIGINT",
        "l_partkey": "INTEGER",
        "l_suppkey": "INTEGER",
        "l_linenumber": "INTEGER",
        "l_quantity": _MONEY,
        "l_extendedprice": _MONEY,
        "l_discount": _MONEY,
        "l_tax": _MONEY,
        "l_returnflag": "VARCHAR",
        "l_linestatus": "VARCHAR",
        "l_shipdate": "DATE",
        "l_commitdate": "DATE",
        "l_receiptdate": "DATE",
        "l_shipinstruct": "VARCHAR",
        "l_shipmode": "VARCHAR",
        "l_comment": "VARCHAR",
    },
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "INTEGER",
        "o_orderstatus": "VARCHAR",
        "o_totalprice": _MONEY,
        "o_orderdate": "DATE",
        "o_orderpriority": "VARCHAR",
        "o_clerk": "VARCHAR",
        "o_shippriority": "INTEGER",
        "o_comment": "VARCHAR",
    },
    "partsupp": {
        "ps_partkey": "INTEGER",
        "ps_suppkey": "INTEGER",
        "ps_availqty": "INTEGER",
        "ps_supplycost": _MONEY,
        "ps_comment": "VARCHAR",
    },
    "part": {
        "p_partkey": "INTEGER",
        "p_name": "VARCHAR",
        "p_mfgr": "VARCHAR",
        "p_brand": "VARCHAR",
        "p_type": "VARCHAR",
        "p_size": "INTEGER",
        "p_container": "VARCHAR",
        "p_retailprice": _MONEY,
        "p_comment": "VARCHAR",
    },
    "customer": {
        "c_custkey": "INTEGER",
        "c_name": "VARCHAR",
        "c_address": "VARCHAR",
        "c_nationkey": "INTEGER",
        "c_phone": "VARCHAR",
        "c_acctbal": _MONEY,
        "c_mktsegment": "VARCHAR",
        "c_comment": "VARCHAR",
    },
    "supplier": {
        "s_suppkey": "INTEGER",
        "s_name": "VARCHAR",
        "s_address": "VARCHAR",
        "s_nationkey": "INTEGER",
        "s_phone": "VARCHAR",
        "s_acctbal": _MONEY,
        "s_comment": "VARCHAR",
    },
    "nation": {
        "n_nationkey": "INTEGER",
        "n_name": "VARCHAR",
        "n_regionkey": "INTEGER",
        "n_comment": "VARCHAR",
    },
    "region": {"r_regionkey": "INTEGER", "r_name": "VARCHAR", "r_comment": "VARCHAR"},
}


@dataclass(frozen=True)
class TableCheck:
    """The comparison of one table. `wrong_types` maps a column to (found, expected)."""

    table: str
    rows_in_files: int
    rows_in_table: int
    only_in_files: int
    only_in_table: int
    wrong_types: dict[str, tuple[str, str]]

    @property
    def equal(self) -> bool:
        """Whether the table holds exactly the rows of the files, with the right types."""
        return (
            self.rows_in_files == self.rows_in_table
            and self.only_in_files == 0
            and self.only_in_table == 0
            and not self.wrong_types
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**asdict(self), "equal": self.equal}


class LoadedTables(Protocol):
    """The loaded tables as DuckDB sees them. Used by one thread at a time, but for `interrupt`."""

    @property
    def place(self) -> Path:
        """What is named in errors; beside it is room for what does not fit into memory."""

    def open(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Called once, before everything else."""

    def relation(self, table: str) -> AbstractContextManager[str]:
        """SQL of something to select the table's columns from, while inside."""

    def types(self, table: str) -> Mapping[str, str]:
        """Types of the columns by name, spelt as DuckDB does."""

    def interrupt(self) -> None:
        """Ends, from any thread, what another thread waits for, if that is not DuckDB itself."""


def verify_tables(
    loaded: LoadedTables,
    folder: Path,
    tables: Iterable[str] = tuple(RECORD_TYPES),
    *,
    memory_limit: str = "1GB",
    cancel: threading.Event | None = None,
) -> Iterator[TableCheck]:
    """Compare the loaded tables with the files in `folder`, one after the other.

    What does not fit into `memory_limit` (DuckDB's notation) goes to a temporary folder beside the tables. Raises
    TargetError when a table cannot be read, CancelledError when `cancel` was set.
    """
    cancel = threading.Event() if cancel is None else cancel
    with new_instance() as connection:
        connection.execute(f"SET memory_limit = '{memory_limit}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = {literal(f'{loaded.place}.verify.tmp')}")
        try:
            loaded.open(connection)
            for table in tables:
                yield _verify_cancellable(connection, loaded, table, folder, cancel)
        except duckdb.Error as error:
            raise TargetError(
                "the tables cannot be compared with their files",
                at={"file": str(loaded.place)},
                found=str(error),
                hint="The tables are loaded; free memory and space, and compare again.",
            ) from error


def _verify_cancellable(
    connection: duckdb.DuckDBPyConnection, loaded: LoadedTables, table: str, folder: Path, cancel: threading.Event
) -> TableCheck:
    """Compare on another thread: on the main thread DuckDB would answer to signals itself, with an error of its own."""
    with ThreadPoolExecutor(1) as worker:
        check = worker.submit(_verify_table, connection, loaded, table, folder)
        while not wait([check], _STEP_SECONDS).done:
            if cancel.is_set():
                connection.interrupt()  # again with every step: it ends one statement only
                loaded.interrupt()
        if cancel.is_set():
            raise CancelledError(f"the comparison of table {table} was cancelled")
        return check.result()


def _verify_table(connection: duckdb.DuckDBPyConnection, loaded: LoadedTables, table: str, folder: Path) -> TableCheck:
    names = ", ".join(RECORD_TYPES[table])
    connection.execute(f"CREATE TEMP TABLE expected AS SELECT {names} FROM {_read_files(table, folder)}")
    try:
        with loaded.relation(table) as relation:
            stored = f"(SELECT {names} FROM {relation})"
            return TableCheck(
                table,
                rows_in_files=_count(connection, "expected"),
                rows_in_table=_count(connection, relation),
                only_in_files=_count(connection, f"(FROM expected EXCEPT ALL {stored})"),
                only_in_table=_count(connection, f"({stored} EXCEPT ALL FROM expected)"),
                wrong_types=_wrong_types(loaded.types(table), RECORD_TYPES[table]),
            )
    finally:
        connection.execute("DROP TABLE expected")


def _read_files(table: str, folder: Path) -> str:
    """DuckDB's reader, told everything, so that it guesses nothing. Rows end with a delimiter: an empty column."""
    files = text_files(folder, table)
    columns = ", ".join(
        f"{literal(name)}: {literal(kind)}" for name, kind in [*RECORD_TYPES[table].items(), ("end_of_row", "VARCHAR")]
    )
    return (
        f"read_csv([{', '.join(literal(str(file)) for file in files)}], columns = {{{columns}}}, "
        "delim = '|', header = false, quote = '', escape = '', auto_detect = false)"
    )


def _wrong_types(found: Mapping[str, str], expected: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        name: (found.get(name, "no such column"), data_type)
        for name, data_type in expected.items()
        if found.get(name) != data_type
    }


def _count(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
    assert row is not None
    return int(row[0])


def literal(text: str) -> str:
    """A string of DuckDB and PostgreSQL."""
    return "'" + text.replace("'", "''") + "'"
