"""Lists of numbers as text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.run.number_list import count_numbers, number_list, parse_number_list, stretches


@given(some.sets(some.integers(1, 60), min_size=1))
def test_what_was_written_is_read(numbers: set[int]) -> None:
    found = parse_number_list(number_list(stretches(sorted(numbers))))
    assert found is not None
    assert [number for first, last in found for number in range(first, last + 1)] == sorted(numbers)
    assert count_numbers(found) == len(numbers)
    assert all(before[1] + 1 < behind[0] for before, behind in itertools.pairwise(found))


def test_as_people_write_it() -> None:
    assert parse_number_list("1-3, 7,8") == ((1, 3), (7, 7), (8, 8))


@pytest.mark.parametrize("text", ["", "0", "1,", "3-1", "1,1", "5,3", "1-3,3", "-1", "a", "1-", "1" * 30, "01"])
def test_what_is_no_list(text: str) -> None:
    assert parse_number_list(text) is None
