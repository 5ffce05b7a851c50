"""Values that a package writes down, as canonical text of a column's type: what the core writes for the same key.

Stricter than the parser of files: a package has one way to write a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, localcontext
from uuid import UUID

from headrace.model.data_type import MAXIMUM_PRECISION, DataType

_INTEGER_BITS = {"int16": 16, "int32": 32, "int64": 64}
_GREATEST_FLOAT = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_TIMESTAMP = re.compile(rf"{_DATE.pattern}[ T]{_TIME}")
_TIMESTAMP_WITH_ZONE = re.compile(rf"{_TIMESTAMP.pattern}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?")


def canonical_text(value: object, data_type: DataType) -> str:
    """Raises ValueError, with what is allowed as its text, if the type does not hold the value."""
    kind = data_type.kind
    if kind in _INTEGER_BITS:
        return _integer(value, _INTEGER_BITS[kind])
    if kind == "decimal":
        return _decimal(value, data_type.precision or 0, data_type.scale or 0)
    if kind in _TEXTS:
        return _text(value, data_type)
    plain = _PLAIN.get(kind)
    if plain is None:
        raise ValueError(f"a column of another type than {kind}")
    expected, convert = plain
    try:
        return convert(value.isoformat() if isinstance(value, date) else value)
    except (ValueError, OverflowError):
        raise ValueError(expected) from None


def default_text(value: object, data_type: DataType) -> str:
    """As `canonical_text`, also for types of which a value has several texts, and which are no keys for that reason."""
    if data_type.kind in _GREATEST_FLOAT:
        return _float(value, _GREATEST_FLOAT[data_type.kind])
    if data_type.kind == "json":
        return _json(value)
    if data_type.kind == "bytes":
        raise ValueError("null, which is the only default of bytes")
    return canonical_text(value, data_type)


def _float(value: object, greatest: float) -> str:
    number = _number(value)
    if number is None or abs(number) > greatest:
        raise ValueError(f"a number from {-greatest} to {greatest}")
    return repr(float(number))


def _json(value: object) -> str:
    try:
        json.loads(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("a text that is a JSON document") from None
    if not str(value).isprintable():
        raise ValueError("a JSON document on one line")
    return str(value)


def _integer(value: object, bits: int) -> str:
    limit = 2 ** (bits - 1)
    number = _number(value)
    if number is None or number != number.to_integral_value() or not -limit <= number < limit:
        raise ValueError(f"a whole number from {-limit} to {limit - 1}")
    return str(int(number))


def _decimal(value: object, precision: int, scale: int) -> str:
    number = _number(value)
    # More digits than any decimal has, so that nothing is rounded.
    with localcontext(prec=2 * MAXIMUM_PRECISION + 10):
        fits = (
            number is not None and number == round(number, scale) and abs(number) < Decimal(10) ** (precision - scale)
        )
        if number is None or not fits:
            raise ValueError(f"a number of type decimal({precision},{scale})")
        # Without the sign of a zero.
        return format(round(number, scale) + 0, "f")


def _number(value: object) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, Decimal)):
        value = format(value, "f") if isinstance(value, Decimal) else str(value)
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else None


def _text(value: object, data_type: DataType) -> str:
    length = data_type.length
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("a text, in quotes if it looks like a number, a date or a word of YAML")
    # Trailing blanks of a char(n) mean nothing.
    value = value.rstrip(" ") if data_type.kind == "char" else value
    if length is not None and len(value) > length:
        raise ValueError(f"a text of at most {length} characters")
    return value


def _matched(value: object, pattern: re.Pattern[str]) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise ValueError


def _bool(value: object) -> str:
    if isinstance(value, bool) or value in ("true", "false"):
        return str(value).lower()
    raise ValueError


def _date(value: object) -> str:
    return date.fromisoformat(_matched(value, _DATE)).isoformat()


def _timestamp(value: object) -> str:
    return _moment(value, _TIMESTAMP).isoformat(sep=" ")


def _timestamp_with_zone(value: object) -> str:
    """Without an offset in UTC."""
    moment = _moment(value, _TIMESTAMP_WITH_ZONE)
    in_zone = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return in_zone.astimezone(UTC).isoformat(sep=" ")


def _moment(value: object, pattern: re.Pattern[str]) -> datetime:
    """A date is its first moment."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        value = f"{value} 00:00"
    return datetime.fromisoformat(_matched(value, pattern))


def _time(value: object) -> str:
    return time.fromisoformat(_matched(value, re.compile(_TIME))).isoformat()


def _uuid(value: object) -> str:
    return str(UUID(value if isinstance(value, str) else ""))


_TEXTS = ("string", "char", "varchar")
_PLAIN: dict[str, tuple[str, Callable[[object], str]]] = {
    "bool": ("true or false", _bool),
    "date": ("a date such as 2024-01-31", _date),
    "timestamp": ("a date or a time such as 2024-01-31 23:59:59", _timestamp),
    "timestamptz": (
        "a date or a time, in UTC unless it has an offset, such as 2024-01-31 23:59:59+01:00",
        _timestamp_with_zone,
    ),
    "time": ("a time such as 23:59:59", _time),
    "uuid": ("a UUID", _uuid),
}
