"""Values of partition keys: from canonical text and back, and the value that follows one.

Keys of one column become values that compare as the column's values do. The ranges of the types are those of
docs/spec/text-to-types.md, so whatever the core reads fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any, Final

from headrace.model.data_type import DataType

# int, Decimal, date or datetime: those of one column are all of one type.
KeyValue = Any

_INTEGER_BITS: Final = {"int16": 16, "int32": 32, "int64": 64}
# More digits than any decimal has, so that nothing is rounded.
_DECIMAL_DIGITS: Final = 80
# As many as a value of a server can have.
_WIDE_DIGITS: Final = 150_000
_FIRST_INSTANT: Final = datetime.min.replace(tzinfo=UTC)
_LAST_INSTANT: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class KeyType:
    """How the keys of one column are read, written and counted on.

    `after` gives the least value behind a key; it raises OverflowError behind the last value of the type. `least` and
    `greatest` are the ends of the type; `ceiling` gives the least value of the type that is not below a value of a
    finer type.
    """

    parse: Callable[[str], KeyValue]
    text: Callable[[KeyValue], str]
    after: Callable[[KeyValue], KeyValue]
    least: KeyValue
    greatest: KeyValue
    ceiling: Callable[[KeyValue], KeyValue] = lambda value: value


def key_type(data_type: DataType) -> KeyType | None:
    """None for types whose values have no next one, or no order that every database shares."""
    if data_type.kind in _INTEGER_BITS:
        return _integers(2 ** (_INTEGER_BITS[data_type.kind] - 1) - 1)
    if data_type.kind == "decimal":
        return _decimals(data_type.precision or 0, data_type.scale or 0)
    if data_type.kind == "date":
        return KeyType(date.fromisoformat, date.isoformat, lambda value: value + timedelta(days=1), date.min, date.max)
    if data_type.kind == "timestamp":
        return KeyType(datetime.fromisoformat, _timestamp_text, _next_microsecond, datetime.min, datetime.max)
    if data_type.kind == "timestamptz":
        return KeyType(_instant, _timestamp_text, _next_microsecond, _FIRST_INSTANT, _LAST_INSTANT)
    return None


def _integers(maximum: int) -> KeyType:
    def after(value: int) -> int:
        if value >= maximum:
            raise OverflowError
        return value + 1

    return KeyType(int, str, after, -maximum - 1, maximum)


def _decimals(precision: int, scale: int) -> KeyType:
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def after(value: Decimal) -> Decimal:
        with localcontext(prec=_DECIMAL_DIGITS):
            following = value + unit
        if following >= limit:
            raise OverflowError
        return following

    def text(value: Decimal) -> str:
        with localcontext(prec=_DECIMAL_DIGITS):
            return format(value.quantize(unit), "f")

    def ceiling(value: Decimal) -> Decimal:
        with localcontext(prec=_WIDE_DIGITS):
            return value.quantize(unit, ROUND_CEILING)

    with localcontext(prec=_DECIMAL_DIGITS):
        greatest = limit - unit
    return KeyType(Decimal, text, after, -greatest, greatest, ceiling)


def _instant(text: str) -> datetime:
    """In UTC. What an offset moves out of the years 1 to 9999 counts as the first or the last moment of these."""
    year = text.partition("-")[0]
    if len(year) > len("9999"):
        return _LAST_INSTANT
    return _FIRST_INSTANT if year == "0000" else datetime.fromisoformat(text).astimezone(UTC)


def _next_microsecond(value: datetime) -> datetime:
    return value + timedelta(microseconds=1)


def _timestamp_text(value: datetime) -> str:
    return value.isoformat(sep=" ")
