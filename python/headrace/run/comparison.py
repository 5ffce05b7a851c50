"""Compares what the core found in the source with what the destination says about its table, aggregate by aggregate.

Both are text. Equal values may be written differently (12.5 and 12.50, 1e+20, midnight of a day), so each kind of type
says how a text is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headrace.planning import OutputColumn
from headrace.targets import TableAggregates

# `0001-12-31 23:00:00 BC` of PostgreSQL, `0001-12-31 (BC) 23:00:00` of DuckDB.
_BEFORE_CHRIST: Final = re.compile(r"(?P<year>\d+)(?P<day>-\d\d-\d\d)(?: \(BC\))?(?P<time>.*?)(?: BC)?")
_RANGE: Final = ("min", "max")
_NUMBER: Final = ("sum", *_RANGE)
_LENGTHS: Final = ("min_length", "max_length", "total_length")
# What the core tells about a source column besides its NULLs. Sums of floats depend on the order of the rows.
_OF_KIND: Final = {
    "int16": _NUMBER,
    "int32": _NUMBER,
    "int64": _NUMBER,
    "decimal": _NUMBER,
    "float32": _RANGE,
    "float64": _RANGE,
    "date": _RANGE,
    "time": _RANGE,
    "timestamp": _RANGE,
    "timestamptz": _RANGE,
    "string": _LENGTHS,
    "char": _LENGTHS,
    "varchar": _LENGTHS,
    "json": _LENGTHS,
}


@dataclass(frozen=True)
class Difference:
    """One aggregate that differs. `column` is None for the number of rows, a value None if there is none."""

    column: str | None
    aggregate: str
    source: str | None
    target: str | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "column": self.column,
            "aggregate": self.aggregate,
            "source": self.source,
            "target": self.target,
        }


@dataclass(frozen=True)
class ColumnComparison:
    """One column: the aggregates that both sides tell, and those that differ. `column` is its name in the table."""

    column: str
    compared: tuple[str, ...]
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; the differences stand with the table."""
        return {"column": self.column, "compared": list(self.compared), "equal": not self.differences}


def compare_columns(
    columns: Sequence[OutputColumn], source: Sequence[Mapping[str, Any]], target: TableAggregates
) -> list[ColumnComparison]:
    """Each loaded column. `source` is the `columns` member of the core's result with a null sink."""
    by_name = {str(column["name"]): column for column in source}
    return [_compare(column, by_name[column.source], target.columns[column.target]) for column in columns]


def _compare(column: OutputColumn, source: Mapping[str, Any], target: Mapping[str, str | None]) -> ColumnComparison:
    kind = column.type.kind
    compared = tuple(name for name in ("nulls", *_OF_KIND.get(kind, ())) if name in target)
    differences = []
    for name in compared:
        found = None if source[name] is None else str(source[name])
        read = _exact_number if name in ("nulls", *_LENGTHS) else _READ[kind]
        if not _same(read, found, target[name]):
            differences.append(Difference(column.target, name, found, target[name]))
    return ColumnComparison(column.target, compared, tuple(differences))


def _same(read: Callable[[str], object], source: str | None, target: str | None) -> bool:
    if source is None or target is None:
        return source is target
    return read(source) == read(target)


def _exact_number(text: str) -> object:
    number = Decimal(text)
    return number if number.is_finite() else text


def _float(text: str) -> object:
    number = float(text)
    return number if number == number else "NaN"


def _moment(text: str) -> str:
    """A date, time, timestamp or instant in UTC: without the offset, final zeros of the fraction, and midnight.

    An offset can move an instant before the year 1: that is the year 0 of the core and 1 BC of databases.
    """
    text = text.removesuffix("+00:00")
    if "BC" in text and (found := _BEFORE_CHRIST.fullmatch(text)):
        text = f"{1 - int(found['year']):04}{found['day']}{found['time']}"
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return text.removesuffix(" 00:00:00")


_READ: Final[dict[str, Callable[[str], object]]] = {
    **dict.fromkeys(("int16", "int32", "int64", "decimal"), _exact_number),
    **dict.fromkeys(("float32", "float64"), _float),
    **dict.fromkeys(("date", "time", "timestamp", "timestamptz"), _moment),
}
