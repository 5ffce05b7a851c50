"""Python values as packages write them, and as options of the command line write them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = str | int | bool | float | Decimal | date | datetime | os.PathLike[str] | list[object] | None
"""What a parameter may be given as. A float counts as the decimal that Python prints."""


def plain(value: object, place: str) -> object:
    """The value as a YAML document holds it: mappings, lists, texts, exact numbers, booleans and null.

    `place` is its name in messages. Raises TypeError for what no package can hold.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (float, Decimal)):
        return _exact(value, place)
    if isinstance(value, (date, os.PathLike)):
        return _text(value, place)
    if isinstance(value, Mapping):
        return {_key(key, place): plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
    raise TypeError(f"{place}: a package cannot hold a value of type {type(value).__name__}")


def option_text(name: str, value: object) -> str:
    """A value as `--set NAME=` takes it. Raises TypeError for what has no such form."""
    if isinstance(value, (list, tuple)):
        texts = [_text(item, f"{name}[{number}]") for number, item in enumerate(value)]
        unfit = [text for text in texts if "," in text or text != text.strip() or not text]
        if unfit:
            raise TypeError(f"{name}: an item of a list must not be empty, hold a comma or begin or end with a blank")
        return ",".join(texts)
    return _text(value, name)


def _text(value: object, place: str) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise TypeError(f"{place}: a time of a package has no time zone; give it as it is to be read")
        return datetime.isoformat(value, sep=" ")
    if isinstance(value, date):
        return date.isoformat(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, (float, Decimal)):
        return format(_exact(value, place), "f")
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    raise TypeError(f"{place}: no parameter takes a value of type {type(value).__name__}")


def _exact(value: float | Decimal, place: str) -> Decimal:
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if not number.is_finite():
        raise TypeError(f"{place}: {value} is no number that a package can hold")
    # Zero has no sign, and 1E+3 is written as 1000.
    return Decimal(format(number, "f")) if number else Decimal(format(abs(number), "f"))


def _key(key: object, place: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise TypeError(f"{place}: a key must be text, not {type(key).__name__}")
