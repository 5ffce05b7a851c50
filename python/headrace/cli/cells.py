"""Text by the cells of a terminal that it takes: a Chinese or Japanese character takes two."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import Final

# Stands for the second cell while text is wrapped: texts that are printed have no control characters.
_SECOND_CELL: Final = "\0"
_CUT: Final = " ..."


def cells(text: str) -> int:
    """How many cells the text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text with blanks behind it, or in front of it, so that it takes `width` cells."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def cut(text: str, most: int) -> str:
    """The text, cut with a mark so that it takes `most` cells at most."""
    if cells(text) <= most:
        return text
    room, kept = most - len(_CUT), 0
    for place, character in enumerate(text):
        kept += _cells_of(character)
        if kept > room:
            return text[:place] + _CUT
    return text


def wrap(text: str, width: int, *, first: str = "", then: str = "") -> list[str]:
    """Lines of `width` cells at most, indented by `first` and `then`; words that are longer are broken."""
    if cells(text) == len(text):
        return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=then)
    wide = "".join(character + _SECOND_CELL * (_cells_of(character) - 1) for character in text)
    # A word may be broken inside of a wide character.
    lines = textwrap.wrap(wide, width - 1, initial_indent=first, subsequent_indent=then)
    return [line.replace(_SECOND_CELL, "") for line in lines]


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
