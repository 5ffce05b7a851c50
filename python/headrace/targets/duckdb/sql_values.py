"""Values of variables as DuckDB's client has them, both ways."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

from headrace.targets.sql import not_a_value, out_of_range

_TYPES: Final = re.compile(
    r"VARCHAR|ENUM\(.*\)|UUID|BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|DECIMAL\(.*\)|DATE|TIMESTAMP(_S|_MS)?"
    '|"NULL"|NULL',
    re.DOTALL,
)
# Its client shows an endless time as this one, and days before the year 1 as text.
_ENDLESS: Final = datetime.max


class RowReader:
    """Reads the rows of one result. Raises SqlError if a column has values that are none of variables."""

    def __init__(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._columns = columns
        for column, name in zip(columns, types, strict=True):
            if not _TYPES.fullmatch(name):
                raise not_a_value(column, name)
        self._is_time = [name.startswith(("DATE", "TIMESTAMP")) for name in types]

    def row(self, row: Sequence[object]) -> tuple[object, ...]:
        """One row."""
        return tuple(self._value(number, value) for number, value in enumerate(row))

    def _value(self, number: int, value: object) -> object:
        if isinstance(value, UUID):
            return str(value)
        if self._is_time[number] and value is not None and (not isinstance(value, date) or value == _ENDLESS):
            raise out_of_range(self._columns[number], "infinity" if value == _ENDLESS else str(value))
        return value
