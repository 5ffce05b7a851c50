"""Which texts of the two sides are the same value, and which are not."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model import DataType
from headrace.planning import OutputColumn
from headrace.run.comparison import Difference, compare_columns
from headrace.targets import TableAggregates


def differences(type_text: str, aggregate: str, source: str | None, target: str | None) -> tuple[Difference, ...]:
    """One column of which only this aggregate and the NULLs are known."""
    names = ("sum", "min", "max", "min_length", "max_length", "total_length")
    found: dict[str, Any] = {"name": "s", "rows": 3, "nulls": 1, **dict.fromkeys(names), aggregate: source}
    column = OutputColumn("s", "t", DataType.parse(type_text), nullable=True)
    [comparison] = compare_columns([column], [found], TableAggregates(3, {"t": {"nulls": "1", aggregate: target}}))
    assert comparison.compared == ("nulls", aggregate)
    return comparison.differences


SAME = [
    ("int32", "sum", "12", "12.00"),
    ("int32", "min", "-0", "0"),
    ("int32", "max", "1000000", "1e+06"),
    ("decimal(15,2)", "sum", "-0.50", "-0.5"),
    ("decimal(38,38)", "max", "0." + "9" * 38, "9" * 38 + "E-38"),
    ("float32", "min", "0.10000000149011612", "0.10000000149011612"),
    ("float64", "max", "100000000000000000000", "1e+20"),
    ("float64", "max", "NaN", "nan"),
    ("float64", "max", "inf", "Infinity"),
    ("float64", "min", "-0", "0"),
    ("date", "min", "2026-01-30", "2026-01-30"),
    ("date", "min", "2026-01-30", "2026-01-30 00:00:00"),
    ("time", "max", "23:59:59.500000", "23:59:59.5"),
    ("timestamp", "min", "2026-01-30 00:00:00", "2026-01-30 00:00:00"),
    ("timestamptz", "max", "2026-01-30 01:00:00.120000+00:00", "2026-01-30 01:00:00.12"),
    ("timestamptz", "min", "0000-12-31 23:00:00+00:00", "0001-12-31 23:00:00 BC"),
    ("timestamptz", "min", "0000-12-31 23:00:00.500000+00:00", "0001-12-31 (BC) 23:00:00.5"),
    ("timestamptz", "min", "0000-12-31 00:00:00+00:00", "0001-12-31 00:00:00 BC"),
    ("timestamptz", "max", "10000-01-01 00:59:59+00:00", "10000-01-01 00:59:59"),
    ("varchar(5)", "total_length", "17", "17"),
    ("int64", "sum", None, None),
]
DIFFERENT = [
    ("int32", "sum", "12", "12.01"),
    ("int64", "sum", "9223372036854775807", "9223372036854775806"),
    ("decimal(38,0)", "max", "9" * 38, "1e38"),
    ("float64", "max", "0.1", "0.10000000000000002"),
    ("float64", "max", "inf", "NaN"),
    ("date", "min", "2026-01-30", "2026-01-30 00:00:01"),
    ("date", "min", "2026-01-30", "2026-01-03"),
    ("time", "max", "23:59:59.500000", "23:59:59.050000"),
    ("time", "min", "00:00:10", "00:00:01"),
    ("timestamp", "min", "2026-01-30 00:00:00.100000", "2026-01-30 00:00:00.01"),
    ("timestamptz", "min", "0001-12-31 23:00:00+00:00", "0001-12-31 23:00:00 BC"),
    ("timestamptz", "min", "0000-12-31 23:00:00+00:00", "0001-12-31 22:00:00 BC"),
    ("string", "min_length", "1", "10"),
    ("int32", "min", None, "0"),
    ("int32", "min", "0", None),
    ("decimal(9,2)", "max", "1.00", "NaN"),
]


@pytest.mark.parametrize(("type_text", "aggregate", "source", "target"), SAME)
def test_the_same_value_in_two_notations(type_text: str, aggregate: str, source: str, target: str) -> None:
    assert differences(type_text, aggregate, source, target) == ()


@pytest.mark.parametrize(("type_text", "aggregate", "source", "target"), DIFFERENT)
def test_different_values_are_reported_as_they_are_written(
    type_text: str, aggregate: str, source: str, target: str
) -> None:
    assert differences(type_text, aggregate, source, target) == (Difference("t", aggregate, source, target),)


def test_nulls_are_compared_for_every_type() -> None:
    column = OutputColumn("s", "t", DataType.parse("uuid"), nullable=True)
    source = [{"name": "s", "rows": 3, "nulls": 1}]
    [comparison] = compare_columns([column], source, TableAggregates(3, {"t": {"nulls": "2"}}))
    assert comparison.differences == (Difference("t", "nulls", "1", "2"),)
