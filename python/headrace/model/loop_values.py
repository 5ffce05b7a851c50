"""The values of a loop over a list: what can be one, and how many there may be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final

from headrace.model.resolver import to_text
from headrace.model.rows import Rows
from headrace.model.suggest import show_value

# Of a list in the package or on the command line. Files, rows and ranges have no such limit: they are not held at once.
MAXIMUM_VALUES: Final = 10_000


class LoopValueError(ValueError):
    """The values cannot be looped over."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(what)
        self.what = what
        self.found = found


def check_range(first: object, last: object, step: object) -> None:
    """Raises LoopValueError unless both ends are whole numbers or days, and steps lead on."""
    kinds = {_range_kind(first), _range_kind(last)}
    if kinds not in ({"number"}, {"day"}) or step == 0:
        found = f"from {show_value(first)} to {show_value(last)} by {show_value(step)}"
        raise LoopValueError("cannot be gone through", found)


def _range_kind(value: object) -> str | None:
    if isinstance(value, str):
        try:
            date.fromisoformat(value)
        except ValueError:
            return None
        return "day"
    if isinstance(value, datetime):
        return None
    if isinstance(value, date):
        return "day"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else None


def check_values(values: object) -> list[object]:
    """The values of a list; they must be single and different, because they name the turns. Raises LoopValueError."""
    if not isinstance(values, list):
        raise LoopValueError("must be a list", show_value(values))
    if len(values) > MAXIMUM_VALUES:
        raise LoopValueError(f"has more than {MAXIMUM_VALUES:,} values", show_value(values))
    texts: set[str] = set()
    for value in values:
        if value is None or isinstance(value, (list, Mapping, Rows)):
            raise LoopValueError("must hold single values", show_value(value))
        if to_text(value) in texts:
            raise LoopValueError("holds a value twice", show_value(value))
        texts.add(to_text(value))
    return list(values)


def turn_label(value: object) -> str:
    """How the turn of a value is called in the ids of tasks. Brackets end a label there."""
    return to_text(value).replace("%5", "%255").replace("[", "%5B").replace("]", "%5D")
