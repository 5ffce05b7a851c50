"""Values of variables as JSON, exactly; values that hold a secret are not stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from headrace.model import Rows

# In place of a value that must not be stored.
SECRET: Final = {"secret": True}


def to_stored(value: object, is_secret: Callable[[str], bool]) -> Any:
    """JSON-ready form; `SECRET` for a text, or anything with a text in it, that is one."""
    try:
        return _stored(value, is_secret)
    except _SecretError:
        return SECRET


def from_stored(stored: Any) -> object:
    """The value of `to_stored`. Raises KeyError or ValueError for anything else."""
    if isinstance(stored, Mapping):
        ((kind, text),) = stored.items()
        if kind == "rows":
            return Rows(tuple(text["columns"]), [[from_stored(value) for value in row] for row in text["rows"]])
        readers: dict[str, Callable[[str], object]] = {
            "decimal": Decimal,
            "date": date.fromisoformat,
            "timestamp": datetime.fromisoformat,
        }
        return readers[kind](text)
    if isinstance(stored, list):
        return [from_stored(item) for item in stored]
    return stored


class _SecretError(Exception):
    """The value holds a secret."""


def _stored(value: object, is_secret: Callable[[str], bool]) -> Any:
    if isinstance(value, str):
        if is_secret(value):
            raise _SecretError
        return value
    if isinstance(value, Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, list):
        return [_stored(item, is_secret) for item in value]
    if isinstance(value, Rows):
        rows = [[_stored(item, is_secret) for item in row] for row in value.rows]
        return {"rows": {"columns": list(value.columns), "rows": rows}}
    return value
