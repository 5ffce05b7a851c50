"""Steps of time that keep their distance, and counters that do not fall."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.machine.rising import Rising, RisingSum
from headrace.machine.ticks import Ticks
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS


class Clock:
    """A monotonic clock that is moved by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_work_between_two_moments_does_not_add_up() -> None:
    clock = Clock()
    ticks = Ticks(1.0, clock)
    for _ in range(1000):
        clock.now += 0.3  # work
        clock.now += ticks.seconds_left()
    assert clock.now == pytest.approx(2000.0)


def test_nothing_is_made_up_for_behind_a_stop() -> None:
    """An hour in which the process was stopped: one moment, then the next one a period later."""
    clock = Clock()
    ticks = Ticks(1.0, clock)
    clock.now += 3600.4
    assert ticks.seconds_left() == pytest.approx(0.6)
    clock.now += 0.6
    assert ticks.seconds_left() == pytest.approx(1.0)


def test_a_clock_that_goes_back_is_not_waited_for() -> None:
    clock = Clock()
    ticks = Ticks(1.0, clock)
    clock.now -= 100
    assert 0 < ticks.seconds_left() <= 1


@given(began=st.floats(0, 1e9), passed=st.floats(0, 1e9), period=st.sampled_from([0.2, 1.0]))
def test_never_longer_than_a_period(began: float, passed: float, period: float) -> None:
    clock = Clock(began)
    ticks = Ticks(period, clock)
    clock.now = began + passed
    assert 0 <= ticks.seconds_left() <= period


def test_waiting_ends_at_once() -> None:
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    started = time.monotonic()
    assert not Ticks(FOR_EVER_SECONDS).wait(stop)
    assert time.monotonic() - started < HANG_SECONDS
    assert not Ticks(FOR_EVER_SECONDS).wait(stop)
    assert Ticks(0.001).wait(threading.Event())


def test_a_counter_that_is_taken_back_stands_still() -> None:
    rising = Rising()
    shown = [rising.shown({"idle": value})["idle"] for value in (100.0, 102.0, 101.5, None, 103.0, 0.0, 4.0)]
    assert shown == [100.0, 102.0, 102.0, None, 103.5, 103.5, 107.5]


def test_cpus_that_come_and_go() -> None:
    """What a CPU has counted before it was ours is not ours."""
    sums: RisingSum[int] = RisingSum(began_with_us=False)
    assert sums.sums({0: (10.0, 5.0)}) == [10.0, 5.0]
    assert sums.sums({0: (11.0, 5.0), 1: (900.0, 900.0)}) == [11.0, 5.0]
    assert sums.sums({1: (901.0, 902.0)}) == [12.0, 7.0]
    assert sums.sums({0: (20.0, 20.0), 1: (901.0, 901.0)}) == [12.0, 7.0]


def test_threads_that_come_and_go() -> None:
    """What a thread has counted stays when it has ended; a number may be given to another one."""
    sums: RisingSum[int] = RisingSum(began_with_us=True)
    assert sums.sums({1: (10.0,)}) == [10.0]
    assert sums.sums({1: (11.0,), 2: (5.0,)}) == [16.0]
    assert sums.sums({1: (11.0,)}) == [16.0]
    assert sums.sums({1: (12.0,), 2: (7.0,)}) == [24.0]
    assert sums.sums({1: (12.0,), 2: (1.0,)}) == [25.0]


@given(st.lists(st.dictionaries(st.integers(0, 3), st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)))), st.booleans())
def test_sums_never_fall(looks: list[dict[int, tuple[float, float]]], began_with_us: bool) -> None:
    sums: RisingSum[int] = RisingSum(began_with_us=began_with_us)
    last = [0.0, 0.0]
    for look in looks:
        now = sums.sums(look) or last
        assert all(after >= before for after, before in zip(now, last, strict=True))
        last = now
