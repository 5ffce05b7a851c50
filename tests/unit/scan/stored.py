"""A session on tables that a test describes: queries go to DuckDB in memory, or have given answers."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from headrace.errors import SqlError
from headrace.model import DataType
from headrace.targets import Answer, ScannedPart, ScannedTable, ScanTime, count_rows
from headrace.targets.scan import plain_literal

INT64, INT32, TEXT = DataType.parse("int64"), DataType.parse("int32"), DataType.parse("string")
DECIMAL, FLOAT, DATE = DataType.parse("decimal(15,2)"), DataType.parse("float64"), DataType.parse("date")
WIDE = DataType.parse("decimal(38,2)")


def table(name: str, columns: Mapping[str, DataType | None], **others: object) -> ScannedTable:
    """A table called `name` in SQL too."""
    return ScannedTable(name, f'"{name}"', columns, 1_000, **others)  # type: ignore[arg-type]


def divided(name: str, columns: Mapping[str, DataType | None], *key: str, parts: int = 2) -> ScannedTable:
    """A table in parts `name_0`, `name_1`, ..."""
    made = tuple(ScannedPart(f"{name}_{number}", f'"{name}_{number}"', 500) for number in range(parts))
    return table(name, columns, strategy="hash", key=key, parts=made)


class StoredSession:
    """A `ScanSession`; `asked` has all queries, `scanned` those that were measured."""

    def __init__(self, tables: list[ScannedTable], *statements: str) -> None:
        self._tables = {own.name: own for own in tables}
        self._connection = duckdb.connect(":memory:")
        for statement in statements:
            self._connection.execute(statement)
        # The number of the scan that fails.
        self.failing_scan: int | None = None
        self.asked: list[str] = []
        self.scanned: list[str] = []

    def table(self, name: str) -> ScannedTable | None:
        return self._tables.get(name)

    def literal(self, text: str, data_type: DataType) -> str:
        return plain_literal(text, data_type)

    def part_rows(self, table: ScannedTable) -> list[int]:
        return [count_rows(self.answer, part.sql) for part in table.parts]

    def answer(self, text: str) -> Answer:
        self.asked.append(text)
        try:
            rows = self._connection.execute(text).fetchall()
        except duckdb.Error as error:
            raise SqlError("DuckDB refused the query", found=str(error).split("\n")[0]) from error
        return [tuple(None if value is None else str(value) for value in row) for row in rows]

    def scan(self, text: str) -> ScanTime:
        self.scanned.append(text)
        if len(self.scanned) == self.failing_scan:
            raise SqlError("DuckDB refused the query", found="the table is gone")
        return ScanTime(float(len(self.scanned)), 0.5)

    def close(self) -> None:
        self._connection.close()
