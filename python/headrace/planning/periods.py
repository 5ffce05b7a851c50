"""Ranges of one length: which of them a key lies in, and what they are called.

A grid of ranges covers all keys of a column. Months, quarters and years are counted in months, the rest of time in
microseconds, numbers in units of their last digit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from headrace.model import DataType, PeriodUnit
from headrace.model.key_values import KeyType, KeyValue
from headrace.model.periods import UNIT_LENGTHS, UNIT_MONTHS
from headrace.planning.key_ranges import KeyRange


class Grid(ABC):
    """Ranges of one length, numbered, of a column whose keys are of type `kind`."""

    kind: KeyType

    @abstractmethod
    def number(self, key: KeyValue) -> int:
        """Of the range in which a key lies."""

    @abstractmethod
    def begin(self, number: int) -> KeyValue:
        """The first key of a range. Raises OverflowError if it lies outside of the type."""

    @abstractmethod
    def suffix(self, begin: KeyValue) -> str | None:
        """What names the range that begins there; None if its number has to do."""

    def range(self, number: int) -> KeyRange:
        """A range; what reaches over an end of the type is open there."""
        return KeyRange(self._begin(number), self._begin(number + 1))

    def _begin(self, number: int) -> KeyValue | None:
        try:
            begin = self.begin(number)
        except (OverflowError, ValueError):
            return None
        return begin if self.kind.least <= begin <= self.kind.greatest else None


@dataclass
class _Months(Grid):
    """Of `months` months, one of which begins at `origin`."""

    kind: KeyType
    months: int
    origin: int
    unit: str

    def number(self, key: KeyValue) -> int:
        return (_month_of(key) - self.origin) // self.months

    def begin(self, number: int) -> KeyValue:
        year, month = divmod(self.origin + number * self.months, 12)
        return self.kind.least.replace(year=year, month=month + 1)

    def suffix(self, begin: KeyValue) -> str:
        if self.unit == "year":
            return f"{begin.year:04}"
        part = f"q{(begin.month + 2) // 3}" if self.unit == "quarter" else f"{begin.month:02}"
        return f"{begin.year:04}_{part}"


@dataclass
class _Times(Grid):
    """Of `length` each, one of which begins at `origin`."""

    kind: KeyType
    length: timedelta
    origin: KeyValue
    unit: str

    def number(self, key: KeyValue) -> int:
        return int((key - self.origin) // self.length)

    def begin(self, number: int) -> KeyValue:
        return self.origin + number * self.length

    def suffix(self, begin: KeyValue) -> str:
        hour = f"_{begin.hour:02}" if self.unit == "hour" else ""
        return f"{begin.year:04}_{begin.month:02}_{begin.day:02}{hour}"


@dataclass
class _Numbers(Grid):
    """Of `step` each, counted in units of the last digit; one begins at `origin`."""

    kind: KeyType
    step: int
    origin: int
    scale: int
    is_decimal: bool

    def number(self, key: KeyValue) -> int:
        return (_units(key, self.scale) - self.origin) // self.step

    def begin(self, number: int) -> KeyValue:
        units = self.origin + number * self.step
        if not self.is_decimal:
            return units
        return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -self.scale))

    def suffix(self, begin: KeyValue) -> str | None:
        return None


def grid(size: str, unit: PeriodUnit | None, data_type: DataType, kind: KeyType, origin: KeyValue | None) -> Grid:
    """The grid of ranges of `size` units, or without a unit of a difference of keys. One of them begins at `origin`;
    without it, where the calendar or zero has it.
    """
    if unit is None:
        scale = data_type.scale or 0
        start = 0 if origin is None else _units(origin, scale)
        return _Numbers(kind, _units(Decimal(size), scale), start, scale, data_type.kind == "decimal")
    if unit in UNIT_MONTHS:
        return _Months(kind, int(size) * UNIT_MONTHS[unit], 0 if origin is None else _month_of(origin), unit)
    # The least key of every type of time is a Monday.
    return _Times(kind, int(size) * UNIT_LENGTHS[unit], kind.least if origin is None else origin, unit)


def _month_of(key: date) -> int:
    return key.year * 12 + key.month - 1


def _units(key: KeyValue, scale: int) -> int:
    """A number counted in units of its last digit."""
    sign, digits, exponent = Decimal(key).as_tuple()
    assert isinstance(exponent, int)  # no NaN comes here
    number = int("".join(map(str, digits)))
    units: int = number * 10 ** max(0, exponent + scale) // 10 ** max(0, -exponent - scale)
    return -units if sign else units
