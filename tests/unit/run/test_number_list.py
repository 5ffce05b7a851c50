"""Lists of numbers as text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.run.number_list import (
    Stretch,
    Stretches,
    at_places,
    count_numbers,
    number_list,
    parse_number_list,
    stretches,
    union,
    without,
)


@given(some.sets(some.integers(1, 60), min_size=1))
def test_what_was_written_is_read(numbers: set[int]) -> None:
    found = parse_number_list(number_list(stretches(sorted(numbers))))
    assert found is not None
    assert [number for first, last in found for number in range(first, last + 1)] == sorted(numbers)
    assert count_numbers(found) == len(numbers)
    assert all(before[1] + 1 < behind[0] for before, behind in itertools.pairwise(found))


def numbers_of(named: Iterable[Stretch]) -> list[int]:
    return [number for first, last in named for number in range(first, last + 1)]


# Stretches that follow each other may touch, as people write them.
STRETCHES = some.lists(some.tuples(some.integers(0, 3), some.integers(1, 5)), max_size=8).map(
    lambda steps: [
        (end - length + 1, end)
        for end, (_, length) in zip(itertools.accumulate(gap + length for gap, length in steps), steps, strict=True)
    ]
)


@given(STRETCHES, STRETCHES)
def test_stretches_are_sets_of_numbers(named: list[Stretch], others: list[Stretch]) -> None:
    own, other = numbers_of(named), numbers_of(others)
    assert numbers_of(without(named, others)) == sorted(set(own) - set(other))
    assert list(union(named, others)) == list(stretches(sorted({*own, *other})))
    assert list(Stretches(named)) == named == [Stretches(named)[index] for index in range(len(named))]
    there = [own[place - 1] for place in other if place <= len(own)]
    assert numbers_of(at_places(named, others)) == there


def test_as_people_write_it() -> None:
    assert parse_number_list("1-3, 7,8") == ((1, 3), (7, 7), (8, 8))


@pytest.mark.parametrize("text", ["", "0", "1,", "3-1", "1,1", "5,3", "1-3,3", "-1", "a", "1-", "1" * 30, "01"])
def test_what_is_no_list(text: str) -> None:
    assert parse_number_list(text) is None
