"""The control connection at the end of the time in which nobody but its heartbeat uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from headrace.errors import HeadraceError
from headrace.targets.postgres.control import Control
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS
from tests.unit.targets.fake_postgres import FakeSession

# Twice, for there are two statements in a beat: more than a failed load waits for a server that says nothing.
SLOW_SECONDS = 1.5


def beaten(seconds: float, is_cancelled: Callable[[], bool] = lambda: False, fails: bool = False) -> tuple[str, float]:
    """What becomes of the connection when the caller is done in the middle of a beat whose statements take so long; and
    how long it takes until that is known.
    """
    session, asked = FakeSession({"copy_progress": []}), threading.Event()

    def answer(text: str) -> None:
        asked.set()
        session.cancelled.wait(seconds)

    session.on_statement = answer
    control = Control(lambda: session)
    losses: list[HeadraceError] = []
    started = 0.0
    try:
        with control.heartbeat(is_cancelled, losses.append):
            assert asked.wait(HANG_SECONDS)
            started = time.monotonic()
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert fails
    assert losses == []
    return control.state, time.monotonic() - started


def test_a_load_that_goes_on_waits_for_a_busy_server() -> None:
    assert beaten(SLOW_SECONDS)[0] == "open"


def test_a_load_that_has_failed_waits_only_shortly() -> None:
    state, seconds = beaten(FOR_EVER_SECONDS, fails=True)
    assert (state, seconds < HANG_SECONDS) == ("silent", True)


def test_the_user_ends_the_wait() -> None:
    state, seconds = beaten(FOR_EVER_SECONDS, is_cancelled=lambda: True)
    assert (state, seconds < HANG_SECONDS) == ("cancelled", True)


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.targets.postgres.control._ANSWER_SECONDS", 0.3)
    assert beaten(60)[0] == "silent"
