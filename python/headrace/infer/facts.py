"""What the core tells of a column, as data with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class First:
    """A value and where it stands: index of the file, row from 1."""

    value: str
    file: int
    row: int


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """Values of one class; all but the first two members are those of numbers (minimum and maximum of times, too)."""

    count: int
    first: First
    minimum: str | None = None
    maximum: str | None = None
    digits_before: int = 0
    digits_behind: int = 0
    plus: int = 0
    minus: int = 0
    leading_zeros: int = 0
    inexact: int = 0


@dataclass(frozen=True, slots=True)
class DateFacts:
    """Values that may be days, written alike.

    `short`: in how many the first, second, third number and the hour have one digit. `valid`: how many are days, by
    each order of year, month and day; `ranges`: the first and the last of these, None if there is none.
    """

    separator: str
    year: Literal["first", "last", "short"]
    clock: Literal["none", "minutes", "seconds"]
    between: str
    count: int
    first: First
    valid: Mapping[str, int]
    short: tuple[int, int, int, int]
    fractions: int
    ranges: Mapping[str, Sequence[str] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Facts about one column."""

    name: str
    values: int = 0
    nulls: int = 0
    empty: int = 0
    classes: Mapping[str, ClassFacts] = field(default_factory=dict)
    dates: tuple[DateFacts, ...] = ()
    blank_ends: int = 0
    ends_blank: int = 0
    least_length: int | None = None
    greatest_length: int | None = None
    least_text: str | None = None
    greatest_text: str | None = None
    others: tuple[tuple[str, int], ...] = ()
    others_complete: bool = True
    high_bytes: int = 0
    quoted: int = 0
    distinct: int | None = None
    is_exact: bool = False

    @classmethod
    def of_core(cls, data: Mapping[str, Any]) -> ColumnFacts:
        """The facts that `core.infer_columns` tells of a column."""
        classes = {name: ClassFacts(**{**own, "first": First(**own["first"])}) for name, own in data["classes"].items()}
        dates = [
            DateFacts(**{**own, "first": First(**own["first"]), "short": tuple(own["short"])}) for own in data["dates"]
        ]
        others = tuple((text, count) for text, count in data["others"])
        return cls(**{**data, "classes": classes, "dates": tuple(dates), "others": others})
