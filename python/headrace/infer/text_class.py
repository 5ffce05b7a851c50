"""Whether a name could be a value of a type: for headers only, values are the core's to judge."""

from __future__ import annotations

import re
from typing import Final

# Words that stand for null among values of a type.
NULL_WORDS: Final = frozenset({"NULL", "null", "N/A", "n/a", "NA", "#N/A", "\\N", "-", "?", "nil", "none"})
_TYPED: Final = re.compile(
    r"[+-]?[0-9.,]*[0-9][0-9.,]*(e[+-]?[0-9]+)?"  # numbers
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+)?(Z|[+-][0-9:]+)?"  # dates
    r"|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?"  # times
    r"|true|false"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)


def is_typed(text: str) -> bool:
    """Whether a text looks like a number, a date, a time, a truth value or a UUID."""
    return _TYPED.fullmatch(text) is not None


def is_data(text: str) -> bool:
    """Whether a text looks like a value: that, or a word that stands for null."""
    return is_typed(text) or text in NULL_WORDS
