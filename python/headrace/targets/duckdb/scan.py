"""Scans of tables in a DuckDB file, which is attached for reading only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import duckdb

from headrace.errors import CancelledError, SqlError, TargetBusyError, TargetError
from headrace.model import DataType
from headrace.targets.base import ClosedBehind, OpenOptions
from headrace.targets.duckdb.catalog import read_table
from headrace.targets.duckdb.connection import attach_file, connect, sql
from headrace.targets.duckdb.ddl import DATABASE, full_name
from headrace.targets.duckdb.failures import first_paragraph
from headrace.targets.scan import (
    MOST_ROWS,
    Answer,
    ScannedPart,
    ScannedTable,
    ScanTime,
    count_rows,
    not_a_query,
    plain_literal,
    split_name,
    timed,
    too_many_rows,
)
from headrace.targets.sql import interrupted

_Result = TypeVar("_Result")
# Of what loads need otherwise: all ways to make a query fast.
_SETTINGS = ("SET disabled_optimizers = ''", f"USE {DATABASE}")


class DuckdbScanSession(ClosedBehind):
    """See `ScanSession`."""

    def __init__(self, path: Path, lock_timeout_seconds: float, options: OpenOptions) -> None:
        if not path.exists():
            raise TargetError(
                "there is no such database",
                at={"file": str(path)},
                hint="Check the path; it is relative to the current folder.",
            )
        self._is_cancelled = options.is_cancelled
        self._connection = connect(options)
        try:
            attach_file(self._connection, path, lock_timeout_seconds, options)
            for setting in _SETTINGS:
                self._connection.execute(setting)
        except TargetBusyError as error:
            self._connection.close()
            error.hint = "Close the database there, or measure when that process has ended."
            raise
        except BaseException:
            self._connection.close()
            raise

    def table(self, name: str) -> ScannedTable | None:
        schema, table = split_name(name)
        found = read_table(self._connection, schema or "main", table)
        if found is None:
            return None
        columns = {column.name: column.type for column in found.columns}
        own = full_name(found.schema, found.name)
        if found.partitioning is None:
            size = self._bytes(own) if found.kind == "table" else 0
            return ScannedTable(name, own, columns, size, found.kind)
        parts = tuple(self._part(found.schema, part) for part in found.view_tables)
        known = found.partitioning
        size = sum(part.bytes for part in parts)
        return ScannedTable(name, own, columns, size, found.kind, known.strategy, known.key, parts)

    def literal(self, text: str, data_type: DataType) -> str:
        return plain_literal(text, data_type)

    def part_rows(self, table: ScannedTable) -> Sequence[int]:
        return [count_rows(self.answer, part.sql) for part in table.parts]

    def answer(self, text: str) -> Answer:
        rows = self._reading(lambda: self._rows(text))
        if len(rows) > MOST_ROWS:
            raise too_many_rows()
        return [tuple(map(_text, row)) for row in rows]

    def scan(self, text: str) -> ScanTime:
        # DuckDB works while rows are fetched.
        return self._reading(lambda: timed(lambda: self._connection.execute(text).fetchall(), counts_cpu=True))

    def close(self) -> None:
        self._connection.close()

    def _rows(self, text: str) -> list[tuple[object, ...]]:
        statements = self._connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise not_a_query()
        return self._connection.execute(text).fetchmany(MOST_ROWS + 1)

    def _reading(self, call: Callable[[], _Result]) -> _Result:
        try:
            with interrupted(self._is_cancelled, self._connection.interrupt):
                return call()
        except duckdb.InterruptException as error:
            raise CancelledError("cancelled while a query ran") from error
        except duckdb.Error as error:
            raise SqlError("DuckDB refused the query", found=first_paragraph(error)) from error

    def _part(self, schema: str, table: str) -> ScannedPart:
        own = full_name(schema, table)
        return ScannedPart(table, own, self._bytes(own))

    def _bytes(self, table: str) -> int:
        row = self._connection.execute(sql("table_bytes"), {"table": table}).fetchone()
        return 0 if row is None else int(row[0])


def _text(value: object) -> str | None:
    if value is None:
        return None
    # With an exponent it would be a float in SQL.
    return format(value, "f") if isinstance(value, Decimal) else str(value)
