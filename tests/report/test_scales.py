"""Axes have round numbers, and places on them are inside of the plot."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.report.plot import Scale
from headrace.report.scales import clock, ticks, time_ticks
from headrace.report.timeline import Attempt, Timeline


@given(st.floats(1e-9, 1e15))
def test_ticks_reach_the_largest_value(largest: float) -> None:
    found = ticks(largest)
    assert found[0] == 0
    assert found[-1] >= largest * (1 - 1e-6)
    assert found[-2] < largest
    assert 2 <= len(found) <= 6


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(0.0, [0, 1]), (1.0, [0, 0.25, 0.5, 0.75, 1]), (339.0, [0, 100, 200, 300, 400]), (9.0, [0, 2.5, 5, 7.5, 10])],
)
def test_ticks_are_round(largest: float, expected: list[float]) -> None:
    assert ticks(largest) == pytest.approx(expected)


@given(st.floats(0.001, 1e8))
def test_moments_are_few(seconds: float) -> None:
    found = time_ticks(seconds)
    assert 1 <= len(found) <= 11
    assert found[0] == 0
    assert found[-1] <= seconds * (1 + 1e-6)


def test_moments_of_an_hour() -> None:
    assert [clock(moment, 600) for moment in time_ticks(3_600, 6)] == [
        "0:00",
        "10:00",
        "20:00",
        "30:00",
        "40:00",
        "50:00",
        "1:00:00",
    ]


@pytest.mark.parametrize(("seconds", "step", "shown"), [(0.25, 0.05, "0.25 s"), (0.5, 0.1, "0.5 s"), (61, 1, "1:01")])
def test_a_moment(seconds: float, step: float, shown: str) -> None:
    assert clock(seconds, step) == shown


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_values_are_drawn_inside(value: float) -> None:
    scale = Scale.up_to(100.0, 200, str)
    assert 0 <= scale.y(value) <= 200
    timeline = Timeline([Attempt(1, 0.0, 60.0)])
    assert 0 <= timeline.share(value) <= 1


def test_a_run_without_time_has_an_axis() -> None:
    assert Timeline([]).seconds > 0
    assert math.isfinite(Timeline([Attempt(1, 0.0, 0.0)]).share(0.0))
