"""Names of the tables beside a target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planning.table_names import highest_number, numbered_name

LONG = "a_table_with_a_name_that_is_exactly_as_long_as_postgres_permits"


def test_short_names_are_numbered() -> None:
    assert numbered_name("orders", 6, 63) == "orders_6"
    assert len(LONG) == 63
    assert numbered_name(LONG, 6, None) == f"{LONG}_6"


def test_long_names_are_cut_and_stay_different() -> None:
    first, second = numbered_name(LONG, 6, 63), numbered_name(LONG[:-1] + "x", 6, 63)
    assert first != second
    assert first.endswith("_6")
    assert len(first) == len(second) == 63


@given(st.text(min_size=1), st.integers(1, 10**17), st.integers(1, 10**17))
def test_every_name_fits_and_tells_its_number(table: str, number: int, other: int) -> None:
    names = [numbered_name(table, number, 63), numbered_name(table, other, 63)]
    assert all(len(name.encode()) <= 63 for name in names)
    assert (names[0] == names[1]) == (number == other)
    assert highest_number(table, names, 63) == max(number, other)


@pytest.mark.parametrize(
    ("names", "highest"),
    [
        ([], 0),
        (["orders_1", "orders_9", "orders_10"], 10),
        (["orders_p2024", "orders_01", "orders", "order_7", "myorders_8", "orders_"], 0),
    ],
)
def test_other_names_have_no_number(names: list[str], highest: int) -> None:
    assert highest_number("orders", names, 63) == highest
