"""Values of variables: what a type holds, and how a value comes to fit it without losing anything."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final

from headrace.model.rows import Rows

_EXPECTED: Final = {
    "string": "text",
    "path": "text",
    "integer": "a whole number of at most 64 bits",
    "decimal": "a number of at most 38 digits, 10 of them behind the point",
    "boolean": "true or false",
    "date": "a date",
    "timestamp": "a time without time zone",
    "list": "a list",
    "rows": "rows",
}
# Families of DuckDB's types that a variable takes. NULL has the type "NULL" there.
_SQL_FAMILIES: Final = {
    "string": r"VARCHAR|ENUM.*|UUID",
    "path": "VARCHAR",
    "integer": r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)",
    "decimal": r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|DECIMAL.*|DOUBLE|FLOAT",
    "boolean": "BOOLEAN",
    # A day and an interval are a TIMESTAMP, which may be a day all the same.
    "date": r"DATE|TIMESTAMP(_S|_MS|_NS)?",
    "timestamp": r"TIMESTAMP(_S|_MS|_NS)?|DATE",
}
_MAXIMUM_INTEGER: Final = 2**63
_DECIMAL_PLACES: Final = 10
_DECIMAL_DIGITS: Final = 38


class UnfitValueError(ValueError):
    """A value is not of the variable's type; `expected` says what would be."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def expected_of(variable_type: str, item_type: str) -> str:
    """What a variable takes, as a phrase for messages."""
    return f"a list of {item_type} values" if variable_type == "list" else _EXPECTED[variable_type]


def takes_sql_type(variable_type: str, item_type: str, sql_type: str) -> bool:
    """Whether a variable takes what an expression of that DuckDB type gives, as far as the type tells."""
    if sql_type == "NULL":
        return True
    if variable_type == "list":
        return sql_type.endswith("[]") and takes_sql_type(item_type, "", sql_type[:-2])
    pattern = _SQL_FAMILIES.get(variable_type)
    return pattern is not None and re.fullmatch(pattern, sql_type) is not None


def fitted(variable_type: str, item_type: str, value: object) -> object:
    """The value as the variable holds it; None stays None. Raises UnfitValueError."""
    if value is None:
        return None
    if variable_type == "rows":
        if isinstance(value, Rows):
            return value
    elif variable_type == "list":
        if isinstance(value, (list, tuple)):
            return [fitted(item_type, "", item) for item in value]
    else:
        found = _scalar(variable_type, value)
        if found is not None:
            return found
    raise UnfitValueError(expected_of(variable_type, item_type))


def _scalar(kind: str, value: object) -> object:
    """None if the value does not fit."""
    if kind in ("string", "path"):
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind == "integer":
        if isinstance(value, Decimal) and value == value.to_integral_value():
            value = int(value)
        return value if isinstance(value, int) and -_MAXIMUM_INTEGER <= value < _MAXIMUM_INTEGER else None
    if kind == "decimal":
        return _decimal(Decimal(value)) if isinstance(value, (int, Decimal)) else None
    if isinstance(value, datetime):
        if kind == "date" and value.tzinfo is None and value.time() == time():
            return value.date()
        return value if kind == "timestamp" and value.tzinfo is None else None
    if isinstance(value, date):
        return value if kind == "date" else datetime(value.year, value.month, value.day)
    return _from_text(kind, value) if isinstance(value, str) else None


def _decimal(value: Decimal) -> Decimal | None:
    if not value.is_finite():
        return None
    exponent = value.normalize().as_tuple().exponent
    places = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    fits = places <= _DECIMAL_PLACES and value.adjusted() < _DECIMAL_DIGITS - _DECIMAL_PLACES
    return value if fits else None


def _from_text(kind: str, text: str) -> object:
    """A day or a time as packages write it."""
    try:
        return date.fromisoformat(text) if kind == "date" else _timestamp(text)
    except ValueError:
        return None


def _timestamp(text: str) -> datetime | None:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo is None else None
