"""Values of variables go through the journal exactly, and secrets not at all."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import Rows
from headrace.run.control.stored_values import SECRET, from_stored, to_stored

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27),
    st.dates(),
    st.datetimes(),
)
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(SCALARS, min_size=width, max_size=width), max_size=4).map(
        lambda rows: Rows(tuple(f"c{number}" for number in range(width)), rows)
    )
)


def through_json(value: object) -> object:
    text = json.dumps(to_stored(value, lambda text: False), ensure_ascii=False).encode("utf-8", "backslashreplace")
    return from_stored(json.loads(text))


@given(st.one_of(SCALARS, st.lists(SCALARS), ROWS))
def test_round_trip(value: object) -> None:
    found = through_json(value)
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, Decimal):
        assert isinstance(found, Decimal) and found.as_tuple() == value.as_tuple()


@pytest.mark.parametrize("value", ["pw", ["a", "pw"], Rows(("c",), [["a"], ["pw"]])])
def test_secrets(value: object) -> None:
    assert to_stored(value, lambda text: text == "pw") == SECRET


@pytest.mark.parametrize("value", [1, None, True, Decimal("1.5"), date(2026, 1, 1), datetime(2026, 1, 1, 2)])
def test_only_texts_are_secret(value: object) -> None:
    assert from_stored(to_stored(value, lambda text: True)) == value


@pytest.mark.parametrize(
    "stored", [{"other": "x"}, {"date": "x"}, {"timestamp": "x"}, {}, {"date": "2026-01-01", "b": 1}]
)
def test_what_is_no_value(stored: object) -> None:
    with pytest.raises((KeyError, ValueError)):
        from_stored(stored)
