"""Counters over time: gaps, restarts, and long runs in little memory."""

from __future__ import annotations

import math

import pytest

from headrace.report.tracks import Curve, Track


def test_a_counter_between_its_samples() -> None:
    curve = Curve([1.0, 3.0], [10.0, 30.0])
    assert [curve.at(time) for time in (0, 1, 2, 3, 9)] == [10, 10, 20, 30, 30]
    assert curve.growth([0, 1, 2, 4]) == [0, 10, 10]
    assert (curve.total, curve.moved(5.0).at(7.0)) == (20, 20)


def test_nothing_is_known_of_an_empty_one() -> None:
    curve = Track(1).curve(0)
    assert (curve.total, curve.at(3.0), curve.begin) == (0, 0, None)


def test_a_counter_that_begins_anew_goes_on() -> None:
    track = Track(1)
    for time, value in enumerate([5.0, 9.0, 2.0, 4.0]):
        track.add(time, [value])
    track.close()
    assert [track.curve(0).at(time) for time in range(4)] == [5, 9, 11, 13]


def test_a_counter_that_was_rounded_does_not_begin_anew() -> None:
    track = Track(1)
    for time, value in enumerate([1_000.0, 999.999, 1_000.5]):
        track.add(time, [value])
    track.close()
    assert [track.curve(0).at(time) for time in range(3)] == pytest.approx([1_000, 1_000, 1_000.501])


def test_what_is_not_known_is_left_out() -> None:
    track = Track(2)
    track.add(1, [1.0, None])
    track.add(2, [None, 5.0])
    track.close()
    assert track.levels(0) == [(1, 1)]
    assert track.levels(1) == [(2, 5)]
    assert (track.last(0), track.last(1)) == (1, 5)


def test_a_start_without_a_line() -> None:
    track = Track(1)
    track.add(2, [100.0])
    assert track.curve(0, start=1.0).growth([0, 1, 2]) == [0, 100]


def test_time_that_goes_back_is_left_out() -> None:
    track = Track(1)
    for time in (1, 2, 1.5, 3):
        track.add(time, [time])
    track.close()
    assert list(track.times) == [1, 2, 3]


@pytest.mark.parametrize("samples", [1, 10, 11, 99, 1_000, 12_345])
def test_long_runs_keep_sums_and_ends(samples: int) -> None:
    track = Track(1, most=10)
    for time in range(samples):
        track.add(float(time), [2.0 * time])
    track.close()
    curve = track.curve(0)
    assert len(track) <= 12
    assert (curve.begin, curve.end, curve.total) == (0, samples - 1, 2 * (samples - 1))
    assert not math.isnan(curve.at(samples / 2))
