"""Keys of partitions: text and value are inverse, and nothing lies between a key and the one after it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import DataType
from headrace.model.key_values import KeyType, key_type


def kind_of(text: str) -> KeyType:
    found = key_type(DataType.parse(text))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("data_type", "key", "after"),
    [
        ("int16", "-32768", "-32767"),
        ("int32", "-1", "0"),
        ("int64", "9223372036854775806", "9223372036854775807"),
        ("decimal(15,2)", "-0.01", "0.00"),
        ("decimal(4,4)", "0.0009", "0.0010"),
        ("decimal(38,0)", "1" + "0" * 37, "1" + "0" * 36 + "1"),
        ("decimal(38,38)", "0." + "9" * 37 + "8", "0." + "9" * 38),
        ("date", "2024-02-28", "2024-02-29"),
        ("date", "0001-01-01", "0001-01-02"),
        ("timestamp", "2024-12-31 23:59:59.999999", "2025-01-01 00:00:00"),
        ("timestamp", "2024-12-31 00:00:00", "2024-12-31 00:00:00.000001"),
        ("timestamptz", "2024-01-01 00:00:00+00:00", "2024-01-01 00:00:00.000001+00:00"),
    ],
)
def test_the_key_after(data_type: str, key: str, after: str) -> None:
    kind = kind_of(data_type)
    assert kind.text(kind.parse(key)) == key
    assert kind.text(kind.after(kind.parse(key))) == after


@pytest.mark.parametrize(
    ("data_type", "last"),
    [
        ("int16", "32767"),
        ("int32", "2147483647"),
        ("int64", "9223372036854775807"),
        ("decimal(4,2)", "99.99"),
        ("decimal(38,0)", "9" * 38),
        ("date", "9999-12-31"),
        ("timestamp", "9999-12-31 23:59:59.999999"),
    ],
)
def test_nothing_is_behind_the_last_key(data_type: str, last: str) -> None:
    kind = kind_of(data_type)
    with pytest.raises(OverflowError):
        kind.after(kind.parse(last))


@pytest.mark.parametrize("data_type", ["string", "char(1)", "float64", "uuid", "bool", "time", "json", "bytes"])
def test_types_without_a_next_value(data_type: str) -> None:
    assert key_type(DataType.parse(data_type)) is None


@given(st.integers(-(2**63), 2**63 - 2))
def test_whole_numbers(value: int) -> None:
    kind = kind_of("int64")
    assert kind.parse(kind.text(value)) == value
    assert kind.after(value) - value == 1


@given(st.integers(-(10**18), 10**18 - 2), st.integers(0, 18))
def test_decimals(unscaled: int, scale: int) -> None:
    kind = kind_of(f"decimal(18,{scale})")
    value = Decimal(unscaled).scaleb(-scale)
    text = kind.text(value)
    assert kind.parse(text) == value
    assert len(text.partition(".")[2]) == scale
    assert kind.after(value) - value == Decimal(1).scaleb(-scale)


@given(st.dates(max_value=date(9999, 12, 30)), st.datetimes(max_value=datetime(9999, 12, 31)))
def test_dates_and_timestamps(day: date, moment: datetime) -> None:
    dates, timestamps = kind_of("date"), kind_of("timestamp")
    assert dates.parse(dates.text(day)) == day < dates.after(day)
    assert timestamps.parse(timestamps.text(moment)) == moment < timestamps.after(moment)
