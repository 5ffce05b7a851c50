"""Type kinds and PostgreSQL's types, both ways.

What a column can hold is known by the function with which the server receives its binary values: domains, renamed types
and types of extensions come down to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headrace.model import DataType

_NATIVE: Final = {
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float32": "real",
    "float64": "double precision",
    "bool": "boolean",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with time zone",
    "string": "text",
    "char": "character",
    "varchar": "character varying",
    "bytes": "bytea",
    "uuid": "uuid",
    "json": "json",  # keeps the text; jsonb drops repeated keys
}
_FORM_OF_KIND: Final = {
    "int16": "int2",
    "int32": "int4",
    "int64": "int8",
    "decimal": "numeric",
    "float32": "float4",
    "float64": "float8",
    "bool": "bool",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "string": "text",
    "char": "text",
    "varchar": "text",
    "bytes": "bytea",
    "uuid": "uuid",
    "json": "json",
}
STORED_KINDS: Final = frozenset(_FORM_OF_KIND)

_NO_MODIFIER: Final = -1
# Bytes that the server adds to the type modifier of numeric, char and varchar (VARHDRSZ).
_MODIFIER_OFFSET: Final = 4
_FULL_FRACTION_DIGITS: Final = 6
# numeric without precision: digits before and after the point (PostgreSQL manual, "Numeric Types").
_NUMERIC_WHOLE_DIGITS: Final = 131_072
_NUMERIC_SCALE: Final = 16_383
# Of a decimal number that rows can have.
_MOST_DIGITS: Final = 38
# A modifier of these says how the server rounds.
_ROUNDED: Final = frozenset({"time_recv", "timestamp_recv", "timestamptz_recv"})


@dataclass(frozen=True)
class ServerType:
    """How a column of the server is filled: `form` is the wire's name of the receive form, `type` what it holds."""

    form: str
    type: DataType


def native_type(data_type: DataType) -> str:
    """The PostgreSQL type in which a new column of this type is stored."""
    if data_type.kind == "decimal":
        return f"numeric({data_type.precision},{data_type.scale})"
    length = "" if data_type.length is None else f"({data_type.length})"
    return _NATIVE[data_type.kind] + length


def form_of(data_type: DataType) -> str:
    """The receive form of a new column of this type."""
    return _FORM_OF_KIND[data_type.kind]


def server_type(receive: str | None, modifier: int) -> ServerType | None:
    """What a column with this receive function and type modifier can be loaded with; None: with nothing.

    `receive` and `modifier` are those of the base type of a domain. A type that would round (a timestamp of fewer than
    6 fractional digits) has no counterpart.
    """
    found = _BY_RECEIVE.get(receive or "")
    if found is None:
        return None
    form, kind_of = found
    data_type = kind_of(modifier)
    return None if data_type is None else ServerType(form, data_type)


def readable_type(receive: str | None, modifier: int) -> ServerType | None:
    """What values of such a column are read as; None: as nothing. Unlike `server_type` it has no values of its own, so
    that rounded times can be read, but it must have them all.
    """
    if receive in _ROUNDED:
        modifier = _NO_MODIFIER
    if receive == "bpcharrecv" and modifier == _NO_MODIFIER:
        return None  # trailing blanks mean nothing in it, and it does not say how many there are
    found = server_type(receive, modifier)
    return None if found is None or (found.type.precision or 0) > _MOST_DIGITS else found


def _always(kind: str) -> Callable[[int], DataType | None]:
    data_type = DataType(kind)
    return lambda _modifier: data_type


def _unrounded(kind: str) -> Callable[[int], DataType | None]:
    data_type = DataType(kind)
    return lambda modifier: data_type if modifier in (_NO_MODIFIER, _FULL_FRACTION_DIGITS) else None


def _with_length(kind: str) -> Callable[[int], DataType | None]:
    return lambda modifier: (
        DataType("string") if modifier == _NO_MODIFIER else DataType(kind, length=modifier - _MODIFIER_OFFSET)
    )


def _numeric(modifier: int) -> DataType | None:
    if modifier == _NO_MODIFIER:
        return DataType("decimal", precision=_NUMERIC_WHOLE_DIGITS + _NUMERIC_SCALE, scale=_NUMERIC_SCALE)
    packed = modifier - _MODIFIER_OFFSET
    # Precision in the upper 16 bits, scale as a signed number in the lower 11.
    precision, scale = (packed >> 16) & 0xFFFF, ((packed & 0x7FF) ^ 0x400) - 0x400
    return None if scale < 0 else DataType("decimal", precision=precision, scale=scale)


_BY_RECEIVE: Final[dict[str, tuple[str, Callable[[int], DataType | None]]]] = {
    "int2recv": ("int2", _always("int16")),
    "int4recv": ("int4", _always("int32")),
    "int8recv": ("int8", _always("int64")),
    "numeric_recv": ("numeric", _numeric),
    "float4recv": ("float4", _always("float32")),
    "float8recv": ("float8", _always("float64")),
    "boolrecv": ("bool", _always("bool")),
    "date_recv": ("date", _always("date")),
    "time_recv": ("time", _unrounded("time")),
    "timestamp_recv": ("timestamp", _unrounded("timestamp")),
    "timestamptz_recv": ("timestamptz", _unrounded("timestamptz")),
    "textrecv": ("text", _always("string")),
    "varcharrecv": ("text", _with_length("varchar")),
    "bpcharrecv": ("text", _with_length("char")),
    # The server refuses what is too long for a name or no label of the enum; it stores nothing else than was sent.
    "namerecv": ("text", _always("string")),
    "citextrecv": ("text", _always("string")),
    "enum_recv": ("text", _always("string")),
    "bytearecv": ("bytea", _always("bytes")),
    "uuid_recv": ("uuid", _always("uuid")),
    "json_recv": ("json", _always("json")),
    "jsonb_recv": ("jsonb", _always("json")),
}
