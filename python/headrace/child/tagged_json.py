"""Values of packages as JSON that keeps their types: what goes to a Python function, and what comes back.

Nothing, truth values, whole numbers, texts and lists are themselves; every other value is an object with one member
that says what it is. Floats come back as the Decimal of their shortest text, which is what Python prints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

_MAXIMUM_DEPTH: Final = 100


class UnfitResultError(Exception):
    """A value that no variable could hold. `place`: where it is, such as `["rows"][3]`."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(what)
        self.what = what
        self.place = place


def to_text(value: object) -> str:
    """The value as one line of JSON. Raises UnfitResultError."""
    return json.dumps(_packed(value, "", 0), separators=(",", ":"))


def from_text(text: str | bytes) -> Any:
    """The value that `to_text` has written."""
    return unpacked(json.loads(text))


def _packed(value: object, place: str, depth: int) -> object:
    if depth > _MAXIMUM_DEPTH:
        raise UnfitResultError(f"a value inside {_MAXIMUM_DEPTH} others", "")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        # As text, as JSON readers have limits of their own.
        return int(value) if abs(value) < 2**63 else {"integer": hex(value)}
    if isinstance(value, (list, tuple)):
        return [_packed(item, f"{place}[{number}]", depth + 1) for number, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {"mapping": {_key(key, place): _packed(value[key], f'{place}["{key}"]', depth + 1) for key in value}}
    return _tagged(value, place)


def _tagged(value: object, place: str) -> object:
    if isinstance(value, Decimal) and value.is_finite():
        return {"decimal": str(value)}
    if isinstance(value, float) and value - value == 0:
        return {"float": repr(float(value))}
    # Subclasses of other libraries may write more than datetime reads, or stand for no time at all.
    if isinstance(value, datetime) and value == value:
        return {"timestamp": datetime.isoformat(value)}
    if isinstance(value, date) and not isinstance(value, datetime):
        return {"date": date.isoformat(value)}
    if isinstance(value, (float, Decimal)):
        raise UnfitResultError(f"the number {value}", place)
    raise UnfitResultError(f"a value of type {type(value).__module__}.{type(value).__qualname__}", place)


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise UnfitResultError(f"a key of type {type(key).__qualname__}", place)
    return str.__str__(key)


def unpacked(value: Any) -> Any:
    """The value of JSON that `to_text` has written."""
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    if kind == "mapping":
        return {key: unpacked(item) for key, item in text.items()}
    return _READERS[kind](text)


_READERS: Final[dict[str, Any]] = {
    "integer": lambda text: int(text, 16),
    "decimal": Decimal,
    "float": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
}
