"""Values of variables as PostgreSQL writes them, both ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from headrace.targets.postgres.connection import Connection, array, one_value
from headrace.targets.sql import not_a_value, out_of_range

Reader = Callable[[str], object]
# Of DuckDB's names of types, those that mean something else here, or nothing.
_TYPES: Final = {"VARCHAR": "text", "HUGEINT": "numeric"}
_DECIMAL: Final = re.compile(r"DECIMAL\(\d+,\d+\)")


def type_name(sql_type: str) -> str:
    """The server's name of a DuckDB type. A decimal number comes without a scale: it keeps its own."""
    if sql_type.endswith("[]"):
        return f"{type_name(sql_type[:-2])}[]"
    return "numeric" if _DECIMAL.fullmatch(sql_type) else _TYPES.get(sql_type, sql_type.lower())


def written(value: object) -> str | None:
    """A value as the server reads it."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return array([written(item) for item in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return value


# By the oid of the type, which never changes.
_READERS: Final[dict[int, Reader]] = {
    16: lambda text: text == "t",
    19: str,
    20: int,
    21: int,
    23: int,
    25: str,
    1042: str,
    1043: str,
    1082: date.fromisoformat,
    1114: datetime.fromisoformat,
    1700: _decimal,
    2950: str,
}


class RowReader:
    """Reads the rows of one result. Raises SqlError if a column has values that are none of variables."""

    def __init__(self, connection: Connection, columns: Sequence[str], types: Sequence[int]) -> None:
        self._columns = columns
        self._readers: list[Reader] = []
        for column, oid in zip(columns, types, strict=True):
            reader = _READERS.get(oid)
            if reader is None:
                name = one_value(connection, "SELECT pg_catalog.format_type($1::pg_catalog.oid, NULL)", (str(oid),))
                raise not_a_value(column, name or str(oid))
            self._readers.append(reader)

    def row(self, row: Sequence[str | None]) -> tuple[object, ...]:
        """One row."""
        return tuple(None if text is None else self._value(number, text) for number, text in enumerate(row))

    def _value(self, number: int, text: str) -> object:
        try:
            return self._readers[number](text)
        except (ValueError, ArithmeticError):
            raise out_of_range(self._columns[number], text) from None
