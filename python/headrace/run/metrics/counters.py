"""Counters that were written down and are read again."""

from __future__ import annotations


def growth(before: float, value: float) -> float:
    """By how much a counter has grown. One that is much less than before has begun anew; one that is a little less was
    rounded, or is the difference of two that were not read at the same moment.
    """
    return value if value < before / 2 else max(0.0, value - before)
