"""Numbers of rejects as text, `1-3,7`: on the command line, and beside a copy of rejects."""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

_STRETCH: Final = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")

# First and last number.
Stretch = tuple[int, int]


class Stretches(Sequence[Stretch]):
    """Stretches in 16 bytes each: there may be as many as half of the rejects."""

    def __init__(self, named: Iterable[Stretch] = ()) -> None:
        self._ends = array("q")
        for ends in named:
            self._ends.extend(ends)

    def __len__(self) -> int:
        return len(self._ends) // 2

    @overload
    def __getitem__(self, index: int) -> Stretch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Stretch]: ...
    def __getitem__(self, index: int | slice) -> Stretch | list[Stretch]:
        if isinstance(index, slice):
            return [self[item] for item in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return self._ends[2 * at], self._ends[2 * at + 1]

    def __iter__(self) -> Iterator[Stretch]:
        ends = iter(self._ends)
        return zip(ends, ends, strict=True)


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


def without(named: Iterable[Stretch], others: Iterable[Stretch]) -> Iterator[Stretch]:
    """What ascending stretches have that the ascending `others` have not."""
    rest = iter(others)
    other = next(rest, None)
    for first, last in named:
        begin = first
        while other is not None and other[0] <= last:
            if other[0] > begin:
                yield begin, other[0] - 1
            begin = max(begin, other[1] + 1)
            if other[1] > last:
                break  # it reaches into what follows
            other = next(rest, None)
        if begin <= last:
            yield begin, last


def union(*named: Iterable[Stretch]) -> Iterator[Stretch]:
    """What any of several ascending sequences of stretches has, ascending and as few stretches as possible."""
    open_first = open_last = None
    for first, last in heapq.merge(*named):
        if open_first is None or open_last is None:
            open_first, open_last = first, last
        elif first <= open_last + 1:
            open_last = max(open_last, last)
        else:
            yield open_first, open_last
            open_first, open_last = first, last
    if open_first is not None and open_last is not None:
        yield open_first, open_last


def at_places(named: Iterable[Stretch], places: Iterable[Stretch]) -> Iterator[Stretch]:
    """The numbers of ascending stretches that stand at ascending places among them, which count from 1."""
    rest = iter(places)
    place = next(rest, None)
    before = 0
    for first, last in named:
        end = before + last - first + 1
        while place is not None and place[0] <= end:
            begin = max(place[0], before + 1)
            yield first + begin - before - 1, first + min(place[1], end) - before - 1
            if place[1] > end:
                break
            place = next(rest, None)
        before = end


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
