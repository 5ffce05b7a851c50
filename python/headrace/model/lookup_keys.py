"""Which types of two columns can be one key: each has a way to be compared. As `Family` of crates/transform has it."""

from __future__ import annotations

from typing import Final

from headrace.model.data_type import DataType

_WHOLE_NUMBERS: Final = frozenset({"int16", "int32", "int64"})
_TEXTS: Final = frozenset({"string", "char", "varchar"})
# A document has many texts, and a float is rarely the one that is meant.
_NO_KEYS: Final = frozenset({"float32", "float64", "json"})


def key_family(data_type: DataType) -> tuple[str, int] | None:
    """Values of one family are compared with one another; None for types that cannot be keys."""
    if data_type.kind in _NO_KEYS:
        return None
    if data_type.kind in _WHOLE_NUMBERS:
        return ("number", 0)
    if data_type.kind == "decimal":
        return ("number", data_type.scale or 0)
    return ("text", 0) if data_type.kind in _TEXTS else (data_type.kind, 0)


def is_text(data_type: DataType) -> bool:
    """Whether letters of its values can be compared without regard to case."""
    return data_type.kind in _TEXTS


def key_types(data_type: DataType) -> str:
    """The types that such a key can be compared with, for messages."""
    family = key_family(data_type)
    if family == ("number", 0):
        return "int16, int32, int64 or decimal(p,0)"
    if family is not None and family[0] == "number":
        return f"decimal(p,{family[1]})"
    return "string, char(n) or varchar(n)" if family == ("text", 0) else str(data_type)
