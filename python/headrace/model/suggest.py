"""Words for messages: how a value reads, and the allowed name nearest to a wrong one."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from headrace.errors import on_one_line
from headrace.model.rows import Rows
from headrace.model.url_logins import hide_logins

# Longest piece of a user's value shown in a message, in characters.
SHOWN_CHARACTERS = 80
# Stands where a value was cut; `redaction` looks for the beginning of a secret before it.
CUT_MARK = "... ("
# Longest list of allowed names shown in a message.
SHOWN_NAMES = 40


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that `name` was most likely meant to be, or None."""
    names = list(allowed)
    by_lower_case = {candidate.lower(): candidate for candidate in names}
    matches = difflib.get_close_matches(name.lower(), list(by_lower_case), n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def did_you_mean(name: str, allowed: Iterable[str]) -> str | None:
    """A hint with the nearest allowed name, or None when nothing is near."""
    candidate = nearest(name, allowed)
    return None if candidate is None else f"Did you mean `{candidate}`?"


def one_of(allowed: Iterable[object]) -> str:
    """Allowed values as a phrase: `a`, `a or b`, `one of a, b, c`."""
    names = [value if isinstance(value, str) else show_value(value) for value in allowed]
    if not names:
        return "nothing (none is defined)"
    if len(names) > SHOWN_NAMES:
        return f"one of {', '.join(names[:SHOWN_NAMES])}, ... ({len(names)} in all)"
    if len(names) <= 2:
        return " or ".join(names)
    return f"one of {', '.join(names)}"


def show_value(value: object) -> str:
    """A value from a package as it reads in a message: texts quoted and shortened, structures summarised."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Rows):
        return f"{len(value.rows):,} rows" if value.columns else "rows"
    if isinstance(value, Mapping):
        keys = ", ".join(str(key) for key in list(value)[:5])
        return f"a mapping with the keys {keys}" if keys else "an empty mapping"
    if isinstance(value, Sequence):
        count = len(value)
        return "an empty list" if count == 0 else f"a list of {count} value{'s' if count > 1 else ''}"
    return shorten(str(value))


def quote(text: str) -> str:
    """Text in double quotes, control characters escaped, shortened to `SHOWN_CHARACTERS`."""
    return json.dumps(shorten(text), ensure_ascii=False)


def show_name(name: str) -> str:
    """A name from a package inside a message: on one line, without control characters, shortened."""
    return on_one_line(shorten(name))


def shorten(text: str) -> str:
    """Text without logins of URLs, cut after `SHOWN_CHARACTERS`, with a mark that says so."""
    text = hide_logins(text)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}{CUT_MARK}{len(text)} characters)"
