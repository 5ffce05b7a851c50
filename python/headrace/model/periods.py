"""Lengths of the ranges that `every` declares, and where they begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from headrace.model.key_values import KeyValue
from headrace.model.partition import PeriodUnit

# Months, quarters and years are counted in months, the rest of time in seconds.
UNIT_MONTHS: Final[Mapping[str, int]] = {"month": 1, "quarter": 3, "year": 12}
UNIT_LENGTHS: Final[Mapping[str, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def begins_unit(key: KeyValue, unit: PeriodUnit) -> bool:
    """Whether a key is the first one of an hour, a day (of weeks too), a month, a quarter or a year."""
    is_moment = isinstance(key, datetime)
    if unit == "hour":
        return is_moment and (key.minute, key.second, key.microsecond) == (0, 0, 0)
    if is_moment and (key.hour, key.minute, key.second, key.microsecond) != (0, 0, 0, 0):
        return False
    return unit not in UNIT_MONTHS or (key.day == 1 and (key.month - 1) % UNIT_MONTHS[unit] == 0)


def periods_between(first: KeyValue, end: KeyValue, size: str, unit: PeriodUnit | None) -> Fraction:
    """How many ranges of `size` units, or without a unit of a difference of keys, lie between two keys.

    With a unit both keys begin one.
    """
    if unit is None:
        return (Fraction(end) - Fraction(first)) / Fraction(size)
    if unit in UNIT_MONTHS:
        months = 12 * (end.year - first.year) + end.month - first.month
        return Fraction(months, int(size) * UNIT_MONTHS[unit])
    microsecond = timedelta(microseconds=1)
    return Fraction((end - first) // microsecond, int(size) * UNIT_LENGTHS[unit] // microsecond)
