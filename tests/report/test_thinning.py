"""Series lose points, but neither their ends nor their peaks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.report.thinning import MOST_POINTS, thinned

_VALUES = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3_000)


@given(_VALUES, st.integers(4, MOST_POINTS))
def test_least_and_largest_stay(values: list[float], most: int) -> None:
    kept = thinned(values, most)
    assert kept == sorted(set(kept))
    assert len(kept) <= most
    if values:
        assert kept[0] == 0
        assert kept[-1] == len(values) - 1
        drawn = [values[place] for place in kept]
        assert (min(drawn), max(drawn)) == (min(values), max(values))


def test_few_points_stay_as_they_are() -> None:
    assert thinned([3.0, 1.0, 2.0], 600) == [0, 1, 2]
    assert thinned([], 600) == []


def test_each_peak_of_a_long_series_stays() -> None:
    values = [100.0 if number % 97 == 0 else float(number % 7) for number in range(20_000)]
    kept = thinned(values)
    assert len(kept) <= MOST_POINTS
    stretches = [kept[number] // 100 for number in range(len(kept)) if values[kept[number]] == 100.0]
    assert len(set(stretches)) > 190
