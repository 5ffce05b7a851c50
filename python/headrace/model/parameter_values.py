"""Values of parameters: from a text of the command line, or from the YAML of a package, by declared type."""

from __future__ import annotations

import os
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from headrace.model.home import HOME_HINT, URL_HINT, begins_with_home, is_url_with_login
from headrace.model.spec import ParameterSpec
from headrace.model.suggest import did_you_mean, one_of, show_value

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(rf"{_DATE.pattern}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?")
MAXIMUM_DECIMAL_DIGITS = 38

_EXPECTED = {
    "string": "text",
    "integer": "a whole number such as 8",
    "decimal": f"a number such as 0.05, of at most {MAXIMUM_DECIMAL_DIGITS} digits",
    "boolean": "true or false",
    "date": "a date such as 2024-01-31",
    "timestamp": "a time such as 2024-01-31 23:59:59",
    "path": "a path",
    "list": "values separated by commas",
}


class ParameterValueError(ValueError):
    """A text or YAML value does not fit the declaration."""

    def __init__(self, found: str, expected: str, hint: str | None = None) -> None:
        super().__init__(expected)
        self.found = found
        self.expected = expected
        self.hint = hint


def value_from_text(spec: ParameterSpec, text: str, folder: Path) -> object:
    """The typed value of a text; relative paths start at `folder`. Raises ParameterValueError."""
    if spec.type != "list":
        return _checked(spec, _scalar_from_text(spec.type, text, folder), folder)
    return [_checked(spec, _scalar_from_text(spec.items, item, folder), folder) for item in split_list(text)]


def split_list(text: str) -> list[str]:
    """The items of a comma-separated list, without blanks around them; an empty text is an empty list."""
    if not text.strip():
        return []
    items = [item.strip() for item in text.split(",")]
    if "" in items:
        raise ParameterValueError(show_value(text), "no empty item between two commas")
    return items


def value_from_yaml(spec: ParameterSpec, value: object, folder: Path) -> object:
    """The typed value of a default; relative paths start at `folder`. Raises ParameterValueError."""
    if spec.type != "list":
        return _checked(spec, _scalar_from_yaml(spec.type, value, folder), folder)
    if not isinstance(value, list):
        raise ParameterValueError(show_value(value), "a list such as [a, b]")
    return [_checked(spec, _scalar_from_yaml(spec.items, item, folder), folder) for item in value]


def value_from_package(spec: ParameterSpec, value: object, folder: Path) -> object:
    """The typed value of one that a package around gives, of the type already or text. Raises ParameterValueError."""
    fits = {"date": date, "timestamp": datetime}.get(spec.type)
    if fits is not None and type(value) is fits:
        return _checked(spec, value, folder)
    return value_from_yaml(spec, value, folder)


def allowed_values(spec: ParameterSpec, folder: Path) -> list[object]:
    """The typed values of `one_of`. Raises ParameterValueError."""
    kind = spec.items if spec.type == "list" else spec.type
    return [_scalar_from_yaml(kind, value, folder) for value in spec.one_of or []]


def _checked(spec: ParameterSpec, value: object, folder: Path) -> object:
    if spec.one_of is not None:
        allowed = allowed_values(spec, folder)
        if value not in allowed:
            hint = did_you_mean(value, map(str, allowed)) if isinstance(value, str) else None
            raise ParameterValueError(show_value(value), one_of(allowed), hint)
    return value


def _scalar_from_text(kind: str, text: str, folder: Path) -> object:
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "decimal" and _DECIMAL.fullmatch(text) and sum(map(str.isdigit, text)) <= MAXIMUM_DECIMAL_DIGITS:
        return Decimal(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "date" and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass  # such as 2024-02-30
    if kind == "timestamp" and (_TIMESTAMP.fullmatch(text) or _DATE.fullmatch(text)):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    if kind == "path" and begins_with_home(text):
        raise ParameterValueError(show_value(text), _EXPECTED[kind], HOME_HINT)
    if kind == "path" and is_url_with_login(text):
        raise ParameterValueError("a URL with a user or a password", _EXPECTED[kind], URL_HINT)
    if kind == "path" and text and "\0" not in text:
        return os.path.abspath(folder / text)
    if kind == "string":
        return text
    raise ParameterValueError(show_value(text), _EXPECTED[kind])


def _scalar_from_yaml(kind: str, value: object, folder: Path) -> object:
    if isinstance(value, str) and kind in ("string", "date", "timestamp", "path"):
        return _scalar_from_text(kind, value, folder)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "decimal" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return Decimal(value)
    raise ParameterValueError(show_value(value), _EXPECTED[kind])
