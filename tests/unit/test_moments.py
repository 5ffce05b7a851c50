"""Moments of kills: spread over the run, and earlier ones if all came too late."""

from __future__ import annotations

import pytest

from tests.integration.moments import Moments


def met(moments: Moments, end: float) -> list[float]:
    """All moments of a run that ends so early."""
    found = []
    for moment in moments:
        found.append(moment)
        moments.in_time(moment < end)
    return found


def test_they_are_spread_over_the_whole_run() -> None:
    found = met(Moments(8.0, 4, first=1.0), end=9.0)
    assert [int((moment - 1.0) / 2.0) for moment in found] == [0, 1, 2, 3]


def test_earlier_ones_follow_until_one_is_in_time() -> None:
    found = met(Moments(8.0, 1, first=1.0), end=1.4)
    assert found[-1] < 1.4
    assert all(moment >= 1.4 for moment in found[:-1])


def test_a_run_that_no_moment_meets_fails() -> None:
    with pytest.raises(AssertionError, match="no moment was before the end of the run"):
        met(Moments(8.0, 3, first=1.0), end=1.0)
