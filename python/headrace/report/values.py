"""Members of documents that may be damaged: what is not there, or of another kind, is None or empty."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

Document = Mapping[str, Any]
# Later values would not be exact, and no counter of a run comes near.
_LARGEST: Final = 2.0**63


def member(data: object, *path: str) -> Any:
    """What stands at the end of a path of names."""
    # What comes from JSON is a dict; asking for a Mapping takes several times as long, and there are millions.
    for name in path:
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def number(data: object, *path: str) -> float | None:
    """A finite number."""
    value = member(data, *path)
    if type(value) is not float and type(value) is not int:
        return None
    # Neither infinite, nor too large for a float, nor not a number.
    return float(value) if -_LARGEST < value < _LARGEST else None


def whole(data: object, *path: str) -> int | None:
    """A whole number."""
    value = number(data, *path)
    return None if value is None else int(value)


def text(data: object, *path: str) -> str | None:
    """A text that is not empty."""
    value = member(data, *path)
    return value if isinstance(value, str) and value else None


def documents(data: object, *path: str) -> list[Document]:
    """The documents of a list."""
    value = member(data, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def document(data: object, *path: str) -> Document:
    """A document, or an empty one."""
    value = member(data, *path)
    return value if isinstance(value, dict) else {}


def numbers(data: object, *path: str) -> dict[str, float]:
    """The members of a document that are numbers."""
    found = {str(name): number(value) for name, value in document(data, *path).items()}
    return {name: value for name, value in found.items() if value is not None}


def texts(data: object, *path: str) -> list[str]:
    """The texts of a list."""
    value = member(data, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def moment(data: object, *path: str) -> datetime | None:
    """A time of day with its zone."""
    value = text(data, *path)
    try:
        found = None if value is None else datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if found is None else found.replace(tzinfo=found.tzinfo or UTC)
