"""How values, counts and places stand in comments and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.infer.facts import First

MAXIMUM_SHOWN_CHARACTERS: Final = 40


def count(number: int, noun: str | None = None, plural: str | None = None) -> str:
    """`1,234`, or `1,234 values`."""
    text = f"{number:,}"
    if noun is None:
        return text
    return f"{text} {noun if number == 1 else plural or noun + 's'}"


def are(number: int) -> str:
    """`is` or `are`."""
    return "is" if number == 1 else "are"


def shown(value: str) -> str:
    """A value in quotes, cut, with everything escaped that could steer a terminal or end a comment."""
    cut = value[:MAXIMUM_SHOWN_CHARACTERS]
    text = "".join(_escaped(character) for character in cut)
    return f'"{text}"' if cut == value else f'"{text}..."'


def bare(value: str) -> str:
    """The same without quotes, for numbers and dates."""
    return shown(value)[1:-1]


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else repr(character)[1:-1]


def place(first: First, files: Sequence[str]) -> str:
    """`orders.csv, row 12`"""
    name = files[first.file] if first.file < len(files) else "?"
    return f"{bare_path(name)}, row {count(first.row)}"


def bare_path(path: str) -> str:
    """A path without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in path)


def first_value(first: First, files: Sequence[str]) -> str:
    """`"x" (orders.csv, row 12)`"""
    return f"{shown(first.value)} ({place(first, files)})"


def either(texts: Sequence[str], word: str = "or") -> str:
    """`a, b or c`"""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"
