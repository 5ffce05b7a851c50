"""Values keep their types on the way to a function and back."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.child.tagged_json import UnfitResultError, from_text, to_text

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.text(alphabet=st.characters(categories=["Cc"]) | st.just("\ud800"))
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.timezones())
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


def typed(value: Any) -> Any:
    """A value with the type of everything in it: 1, True, 1.0 and Decimal(1) are equal to Python."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    if isinstance(value, Decimal):
        return (Decimal, value.as_tuple())
    if isinstance(value, datetime):
        # An offset comes back, not the rules of a place.
        return (datetime, value.utcoffset(), value.replace(tzinfo=None, fold=0))
    return (type(value), value)


@settings(deadline=None)
@given(VALUES)
def test_there_and_back(value: Any) -> None:
    text = to_text(value)
    assert text.isascii() and "\n" not in text
    assert typed(from_text(text)) == typed(value)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_become_what_python_prints(value: float) -> None:
    back = from_text(to_text(value))
    assert isinstance(back, Decimal) and back == Decimal(repr(value)) and float(back) == value


def test_subclasses_and_tuples() -> None:
    class Colour(IntEnum):
        RED = 1

    class Text(str):
        def __str__(self) -> str:
            return "another"

    assert from_text(to_text((Colour.RED, Text("a"), {Text("b"): ()}))) == [1, "a", {"b": []}]


def test_long_numbers() -> None:
    assert from_text(to_text(10**5000)) == 10**5000
    assert from_text(to_text(-(2**63))) == -(2**63)


@pytest.mark.parametrize(
    ("value", "what", "place"),
    [
        (float("nan"), "the number nan", ""),
        ([1, float("-inf")], "the number -inf", "[1]"),
        (Decimal("sNaN"), "the number sNaN", ""),
        ({"a": [{"b": b""}]}, "a value of type builtins.bytes", '["a"][0]["b"]'),
        ({1: 2}, "a key of type int", ""),
        ([{None: 2}], "a key of type NoneType", "[0]"),
        (timedelta(1), "a value of type datetime.timedelta", ""),
        ({date(2026, 1, 1)}, "a value of type builtins.set", ""),
    ],
)
def test_what_no_variable_holds(value: object, what: str, place: str) -> None:
    with pytest.raises(UnfitResultError) as caught:
        to_text(value)
    assert (caught.value.what, caught.value.place) == (what, place)


def test_a_value_inside_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnfitResultError, match="inside 100 others"):
        to_text(value)


def test_a_time_that_is_none() -> None:
    class NoTime(datetime):
        def __eq__(self, _other: object) -> bool:
            return False

        __hash__ = datetime.__hash__

    with pytest.raises(UnfitResultError, match="NoTime"):
        to_text(NoTime(2026, 1, 1))
