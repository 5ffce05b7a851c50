"""Counters over time, kept in little memory however long the run was."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from headrace.run.metrics import growth

# An hour of one line a second is kept whole; of longer runs every second, fourth, ... line.
MOST_SAMPLES: Final = 4_096
NOT_KNOWN: Final = math.nan


class Curve:
    """A counter that only grows, as a function of time: linear between two samples, constant outside of them."""

    def __init__(self, times: Sequence[float], values: Sequence[float]) -> None:
        self._times = times
        self._values = values

    @property
    def begin(self) -> float | None:
        """The time of the first sample; None without any."""
        return self._times[0] if self._times else None

    @property
    def end(self) -> float | None:
        """The time of the last sample; None without any."""
        return self._times[-1] if self._times else None

    @property
    def total(self) -> float:
        """How much it has grown."""
        return self._values[-1] - self._values[0] if self._values else 0.0

    def at(self, time: float) -> float:
        """Its value then; 0 if nothing is known."""
        if not self._times:
            return 0.0
        index = bisect_right(self._times, time)
        if index == 0:
            return self._values[0]
        if index == len(self._times):
            return self._values[-1]
        before, behind = self._times[index - 1], self._times[index]
        share = (time - before) / (behind - before)
        return self._values[index - 1] + share * (self._values[index] - self._values[index - 1])

    def growth(self, edges: Sequence[float]) -> list[float]:
        """How much it grows between neighbouring edges."""
        values = [self.at(edge) for edge in edges]
        return [behind - before for before, behind in pairwise(values)]

    def moved(self, offset: float) -> Curve:
        """The same, later."""
        return Curve([time + offset for time in self._times], self._values) if offset else self


class Track:
    """Samples of several counters or levels at the same moments.

    When there are more than `most` every other one is dropped. Counters lose nothing by that but the detail.
    """

    def __init__(self, width: int, most: int = MOST_SAMPLES) -> None:
        self.times = array("d")
        self._columns = [array("d") for _ in range(width)]
        self._most = most
        self._stride = 1
        self._seen = 0
        self._last: tuple[float, tuple[float, ...]] | None = None

    def __len__(self) -> int:
        return len(self.times)

    @property
    def stride(self) -> int:
        """One of how many samples is kept."""
        return self._stride

    def add(self, time: float, values: Sequence[float | None]) -> None:
        """A sample; one that is not later than the one before is left out."""
        if self._last is not None and time <= self._last[0]:
            return
        self._last = (time, tuple(NOT_KNOWN if value is None else value for value in values))
        if self._seen % self._stride == 0:
            self._keep()
        self._seen += 1
        if len(self.times) > self._most:
            self.times = self.times[::2]
            self._columns = [column[::2] for column in self._columns]
            self._stride *= 2

    def close(self) -> None:
        """Keeps the last sample, whatever was dropped before."""
        if self._last is not None and (not self.times or self.times[-1] < self._last[0]):
            self._keep()

    def last(self, column: int) -> float | None:
        """The latest value that is known."""
        return next((value for value in reversed(self._columns[column]) if not math.isnan(value)), None)

    def levels(self, column: int) -> list[tuple[float, float]]:
        """Times and values of a level that goes up and down, where it is known."""
        pairs = zip(self.times, self._columns[column], strict=True)
        return [(time, value) for time, value in pairs if not math.isnan(value)]

    def curve(self, column: int, start: float | None = None) -> Curve:
        """A counter. One that has begun anew goes on from where it was. `start`: when it was 0."""
        times, values = array("d"), array("d")
        before: float | None = None
        total = 0.0
        for time, value in self.levels(column):
            total += value if before is None else growth(before, value)
            before = value
            if start is not None and not times and start < time:
                times.append(start)
                values.append(0.0)
            times.append(time)
            values.append(total)
        return Curve(times, values)

    def _keep(self) -> None:
        assert self._last is not None
        time, values = self._last
        self.times.append(time)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
