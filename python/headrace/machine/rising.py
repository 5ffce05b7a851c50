"""Counters that never fall, whatever their sources do.

The kernel may take back a few ticks of idle and iowait time; a disk that is removed, a statistic that is reset, a
thread that has ended begin anew or are gone. A reader takes differences, and a negative one would be nonsense to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Rising:
    """Counters of one thing, by name."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._shown: dict[str, float] = {}

    def shown(self, values: Mapping[str, float | None]) -> dict[str, float | None]:
        """The values, each at least what it was before. None stays None."""
        shown: dict[str, float | None] = dict.fromkeys(values)
        for name, value in values.items():
            if value is not None:
                last = self._last.get(name)
                grown = value if last is None else self._shown[name] + max(0, value - last)
                self._last[name], self._shown[name], shown[name] = value, grown, grown
        return shown


class RisingSum(Generic[_Key]):
    """The same counters of many things, added up. `began_with_us`: things that come later count with all they have;
    otherwise they have counted since the machine has started, and only what they gain belongs to the sum.
    """

    def __init__(self, *, began_with_us: bool) -> None:
        self._began_with_us = began_with_us
        self._last: Mapping[_Key, Sequence[float]] | None = None
        self._sums: list[float] = []

    def sums(self, values: Mapping[_Key, Sequence[float]]) -> list[float]:
        """The sums, by position."""
        first = self._last is None
        known = self._last or {}
        for key, counters in values.items():
            last = known.get(key)
            if last is None:
                last = [0] * len(counters) if first or self._began_with_us else counters
            self._sums += [0] * (len(counters) - len(self._sums))
            for position, (now, before) in enumerate(zip(counters, last, strict=False)):
                # A thread's counters do not fall: this is another one, under the same number.
                anew = now if self._began_with_us else 0
                self._sums[position] += now - before if now >= before else anew
        self._last = dict(values)
        return list(self._sums)
