"""YAML of an own writer: the order of keys and the comments are the point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_PLAIN: Final = re.compile(r"[^\W\d][\w./()-]*(?: [\w./()-]+)*")
# Words that YAML, or a reader of an older version of it, takes for something else than text.
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scalar(value: object) -> str:
    """A value on one line: a scalar, or a mapping or list of them in braces."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {scalar(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(scalar(inner) for inner in value) + "]"
    text = str(value)
    if not isinstance(value, str) or (_PLAIN.fullmatch(text) and text.lower() not in _WORDS):
        return text
    if '"' in text and "'" not in text and "\\" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
