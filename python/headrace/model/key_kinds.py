"""Kinds of types that can be keys of partitions wherever the core places the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WHOLE_NUMBERS: Final = frozenset({"int16", "int32", "int64"})
RANGE_KINDS: Final = _WHOLE_NUMBERS | {"decimal", "date", "timestamp", "timestamptz"}
LIST_KINDS: Final = RANGE_KINDS | {"bool", "string", "varchar", "uuid"}
# How PostgreSQL hashes a column, by the operator class of its type (`HashKey` of crates/transform). Rows get the same
# partitions in every target.
HASH_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys((*_WHOLE_NUMBERS, "time"), "integer"),
    "decimal": "numeric",
    **dict.fromkeys(("float32", "float64"), "float"),
    "bool": "bool",
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
    **dict.fromkeys(("string", "varchar", "bytes", "uuid"), "bytes"),
    "char": "char",
}
HASH_KINDS: Final = frozenset(HASH_KEYS)
