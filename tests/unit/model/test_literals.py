"""Values of a package as canonical text of a column's type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import DataType
from headrace.model.key_values import key_type
from headrace.model.literals import canonical_text, default_text


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("int16", -32768, "-32768"),
        ("int16", "0032", "32"),
        ("int32", Decimal("5.0"), "5"),
        ("decimal(5,2)", 3, "3.00"),
        ("decimal(5,2)", "-0.0", "0.00"),
        ("decimal(5,2)", Decimal("999.99"), "999.99"),
        ("decimal(38,0)", "9" * 38, "9" * 38),
        ("bool", True, "true"),
        ("bool", "false", "false"),
        ("date", date(2024, 2, 29), "2024-02-29"),
        ("date", "0001-01-01", "0001-01-01"),
        ("timestamp", date(2024, 2, 29), "2024-02-29 00:00:00"),
        ("timestamp", "2024-02-29T12:00", "2024-02-29 12:00:00"),
        ("timestamp", "2024-02-29 12:00:00.5", "2024-02-29 12:00:00.500000"),
        ("timestamptz", "2024-02-29 01:00:00+02", "2024-02-28 23:00:00+00:00"),
        ("timestamptz", date(2024, 2, 29), "2024-02-29 00:00:00+00:00"),
        ("timestamptz", "2024-02-29 01:00", "2024-02-29 01:00:00+00:00"),
        ("timestamptz", "2024-02-29 01:00:00Z", "2024-02-29 01:00:00+00:00"),
        ("time", "12:30", "12:30:00"),
        ("string", "", ""),
        ("varchar(2)", "äö", "äö"),
        ("char(3)", "a   ", "a"),
        ("uuid", "00000000-0000-0000-0000-00000000ABCD", "00000000-0000-0000-0000-00000000abcd"),
    ],
)
def test_accepted(data_type: str, value: object, expected: str) -> None:
    assert canonical_text(value, DataType.parse(data_type)) == expected


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("int16", 32768),
        ("int16", "5.5"),
        ("int16", True),
        ("int64", "1e3"),
        ("int64", " 1"),
        ("decimal(5,2)", 1000),
        ("decimal(5,2)", "0.001"),
        ("decimal(5,2)", "NaN"),
        ("bool", 1),
        ("bool", "TRUE"),
        ("date", "2024-02-30"),
        ("date", "20240229"),
        ("date", "2024-W01-1"),
        ("date", 20240229),
        ("timestamp", "2024-02-29 12:00:00+00:00"),
        ("timestamp", "2024-02-29 24:00:00"),
        ("timestamptz", "2024-02-29+01"),
        ("timestamptz", "0001-01-01 00:00:00+10:00"),
        ("time", "12"),
        ("string", 5),
        ("string", "a\0b"),
        ("varchar(2)", "abc"),
        ("uuid", "abc"),
        ("float64", "0.5"),
        ("json", "{}"),
    ],
)
def test_refused(data_type: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        canonical_text(value, DataType.parse(data_type))


@given(
    st.sampled_from(["int32", "decimal(9,3)", "date", "timestamp", "timestamptz"]),
    st.integers(0, 2**31 - 1),
)
def test_canonical_texts_are_those_of_keys(data_type: str, number: int) -> None:
    """What planning computes with keys and what a package says are the same text."""
    kind = key_type(DataType.parse(data_type))
    assert kind is not None
    key = kind.least
    for _ in range(3):
        key = kind.after(key)
    text = kind.text(key)
    assert canonical_text(text, DataType.parse(data_type)) == text
    assert kind.text(kind.parse(text)) == text
    if data_type == "int32":
        assert canonical_text(number, DataType.parse(data_type)) == str(number)


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("float64", 1, "1.0"),
        ("float64", "-0.5", "-0.5"),
        ("float32", Decimal("0.1"), "0.1"),
        ("json", '{"a": 1.10}', '{"a": 1.10}'),
        ("int16", "7", "7"),
        ("string", "", ""),
    ],
)
def test_defaults_of_any_type_have_texts(data_type: str, value: object, expected: str) -> None:
    assert default_text(value, DataType.parse(data_type)) == expected


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("float32", "1" + 39 * "0"),
        ("float64", "nan"),
        ("float64", True),
        ("json", "{"),
        ("json", "[\n]"),
        ("json", 1),
        ("bytes", "00"),
        ("int16", 40_000),
    ],
)
def test_defaults_that_are_no_values(data_type: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        default_text(value, DataType.parse(data_type))
