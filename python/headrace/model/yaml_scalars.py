"""What a plain (unquoted) YAML scalar means.

The rule: a plain scalar is a number only if writing that number gives the same text back; everything that is not
one of `true`, `false`, `null`, `~`, nothing, such an integer or such a decimal is text. So `no`, `on`, `010`,
`1:30`, `0x1F`, `1_000`, `+1`, `1e3`, `.5`, `True` and `2024-01-01` are text, and nothing is lost or reinterpreted.
"""

from __future__ import annotations

import re
from decimal import Decimal

# Longer digit strings stay text: no setting takes them, and Python limits conversions of very long ones.
MAXIMUM_DIGITS = 38

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


def resolve_plain(text: str) -> str | int | Decimal | bool | None:
    """The value of a plain scalar. Fractional numbers are Decimal: they never pass through binary floats."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= MAXIMUM_DIGITS + 2:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return Decimal(text)
    return text
