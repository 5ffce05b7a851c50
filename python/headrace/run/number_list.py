"""Numbers of rejects as text, `1-3,7`: on the command line, and beside a copy of rejects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_STRETCH: Final = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")

# First and last number.
Stretch = tuple[int, int]


def stretches(numbers: Iterable[int]) -> Iterator[Stretch]:
    """Ascending numbers, those that follow each other together."""
    first = last = None
    for number in numbers:
        if first is not None and last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last


def number_list(named: Iterable[Stretch]) -> str:
    """Stretches as text."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in named)


def parse_number_list(text: str) -> tuple[Stretch, ...] | None:
    """The stretches that a text names, ascending and apart from each other; None for a text that is no such list."""
    found: list[Stretch] = []
    for part in text.replace(" ", "").split(","):
        match = _STRETCH.fullmatch(part)
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2] or first)
        if last < first or (found and first <= found[-1][1]):
            return None
        found.append((first, last))
    return tuple(found)


def count_numbers(named: Iterable[Stretch]) -> int:
    """How many numbers there are in stretches."""
    return sum(last - first + 1 for first, last in named)
