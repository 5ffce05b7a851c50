"""How even partitions are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.scan.spread import Part, Spread


def test_least_middle_and_greatest() -> None:
    spread = Spread.of([Part("c", 30, 300), Part("a", 10, 150), Part("b", 20, 150), Part("d", 0, 0)])
    assert [part.name for part in spread.parts] == ["d", "a", "b", "c"]
    assert (spread.least.name, spread.middle.name, spread.greatest.name) == ("d", "a", "c")
    assert spread.empty == 1
    assert spread.imbalance == pytest.approx(2.0)
    assert spread.imbalance_bytes == pytest.approx(2.0)


def test_one_partition() -> None:
    spread = Spread.of([Part("only", 5, 50)])
    assert spread.least is spread.middle is spread.greatest
    assert (spread.imbalance, spread.empty) == (1.0, 0)


def test_nothing_at_all() -> None:
    assert Spread.of([Part("a", 0, 0), Part("b", 0, 0)]).imbalance == 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**15)), min_size=1, max_size=96))
def test_any_spread(sizes: list[tuple[int, int]]) -> None:
    spread = Spread.of([Part(f"p{number}", rows, size) for number, (rows, size) in enumerate(sizes)])
    assert spread.least.rows <= spread.middle.rows <= spread.greatest.rows
    assert 1.0 <= spread.imbalance <= len(sizes) + 1e-9
    assert sum(part.rows <= spread.middle.rows for part in spread.parts) * 2 >= len(sizes)
