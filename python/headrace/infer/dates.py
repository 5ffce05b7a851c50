"""Patterns of columns whose values may be days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.infer.facts import ClassFacts, DateFacts

# Where year, month and day stand, by the name of the order.
_ORDERS: Final = {"ymd": ("y", "M", "d"), "dmy": ("d", "M", "y"), "mdy": ("M", "d", "y")}
ISO_UNPADDED: Final = "yyyy-M-d"


def patterns(facts: DateFacts) -> list[str]:
    """The patterns by which every value is a day."""
    return [_pattern(facts, order) for order in _ORDERS if facts.valid[order] == facts.count]


def counted_patterns(facts: DateFacts) -> list[tuple[str, int]]:
    """The patterns by which some values are days, and how many."""
    return [(_pattern(facts, order), facts.valid[order]) for order in _ORDERS if facts.valid[order]]


def extremes(facts: DateFacts, pattern: str) -> tuple[str, str] | None:
    """The first and the last day, read by a pattern that all values fit."""
    for order in _ORDERS:
        found = facts.ranges.get(order)
        if found is not None and _pattern(facts, order) == pattern:
            first, last = found
            return first, last
    return None


def unpadded_extremes(columns_dates: Sequence[DateFacts], padded: ClassFacts | None) -> tuple[str, str] | None:
    """Those of a column of `2024-1-2`; `padded`: values with both zeros."""
    found = [text for one in columns_dates for text in one.ranges.get("ymd") or ()]
    if padded is not None and padded.minimum is not None and padded.maximum is not None:
        found += [padded.minimum, padded.maximum]

    def day(text: str) -> tuple[int, ...]:
        return tuple(int(number) for number in text.split("-"))

    return (min(found, key=day), max(found, key=day)) if found else None


def is_unpadded_iso(dates: Sequence[DateFacts]) -> bool:
    """Whether all are `2024-1-2`, as ISO dates are but for zeros."""
    return all((one.year, one.separator, one.clock) == ("first", "-", "none") for one in dates)


def _pattern(facts: DateFacts, order: str) -> str:
    year = "yy" if facts.year == "short" else "yyyy"
    parts = [
        year if part == "y" else part * (1 if facts.short[place] else 2) for place, part in enumerate(_ORDERS[order])
    ]
    return facts.separator.join(parts) + _clock(facts)


def _clock(facts: DateFacts) -> str:
    if facts.clock == "none":
        return ""
    between = "'T'" if facts.between == "T" else facts.between
    hour = "H" if facts.short[3] else "HH"
    seconds = ":ss" if facts.clock == "seconds" else ""
    return f"{between}{hour}:mm{seconds}{'.FFFFFF' if facts.fractions else ''}"
