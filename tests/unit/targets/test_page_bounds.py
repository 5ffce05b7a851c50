"""Where the pages of several tables are cut, so that parts are about even."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.targets.postgres.dividing import page_bounds


def pages_between(pages: list[int], begin: int, end: int) -> int:
    return sum(min(size, end) - min(size, begin) for size in pages)


@given(st.lists(st.integers(0, 5_000), max_size=20), st.integers(1, 40))
def test_parts_have_about_as_many_pages_each(pages: list[int], parts: int) -> None:
    bounds = page_bounds(pages, parts)
    assert len(bounds) == parts
    assert bounds == sorted(bounds)
    assert bounds[0] == 0
    sizes = [pages_between(pages, *ends) for ends in pairwise([*bounds, max([0, *pages])])]
    assert sum(sizes) == sum(pages)
    # A bound is a page of each of the tables.
    assert all(abs(size - sum(pages) / parts) <= len(pages) + 1 for size in sizes)


def test_one_table_is_cut_into_equal_pieces() -> None:
    assert page_bounds([10], 4) == [0, 2, 5, 7]
    assert page_bounds([], 2) == [0, 0]
