"""A tree: what stops a container stops all that is inside it, and nothing else."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.errors import CancelledError, TaskTimeoutError
from headrace.run.cancellation import Cancellation
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS


def test_what_is_around_stops_what_is_inside() -> None:
    run = Cancellation()
    container, other = run.inside(), run.inside()
    task = container.inside()
    container.set()
    assert [item.is_set() for item in (run, container, task, other)] == [False, True, True, False]
    run.set()
    assert other.is_set()


def test_what_the_user_wants_is_asked() -> None:
    wanted = threading.Event()
    task = Cancellation(wanted.is_set).inside().inside()
    assert not task.is_set()
    wanted.set()
    assert task.is_set()
    with pytest.raises(CancelledError, match="task a was cancelled"):
        task.check("task a")


def test_a_time_out_is_a_failure_of_the_container_that_has_it() -> None:
    container = Cancellation().inside()
    task = container.inside()
    container.time_out(1.5)
    error = task.error("task a")
    assert isinstance(error, TaskTimeoutError)
    assert error.expected == "at most 1.5 seconds, by `timeout_seconds`"


def test_the_first_reason_stays() -> None:
    task = Cancellation()
    task.set()
    task.time_out(1)
    assert isinstance(task.error("task a"), CancelledError)
    around = Cancellation()
    around.time_out(1)
    inside = around.inside()
    inside.time_out(2)
    assert inside.timeout_seconds == 1


def test_nothing_to_stop_for() -> None:
    Cancellation().inside().check("task a")


def test_waiting_ends_with_the_reason() -> None:
    run = Cancellation()
    task = run.inside()
    timer = threading.Timer(0.05, run.set)
    timer.start()
    before = time.monotonic()
    assert task.wait(FOR_EVER_SECONDS)
    assert time.monotonic() - before < HANG_SECONDS
    timer.join()
    assert not Cancellation().wait(0.01)
