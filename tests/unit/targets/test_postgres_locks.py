"""The locks of a switch: what is waited for how long, and with what in hand."""

from __future__ import annotations

import pytest

from headrace.errors import TargetBusyError
from headrace.targets.postgres.locks import SwitchLock, lock_for_switch
from headrace.targets.postgres.names import TableName
from tests.unit.targets.fake_postgres import FakeSession, server_error

LOCKS = [SwitchLock(TableName("mart", name), oid) for name, oid in (("a", "1"), ("b", "2"), ("c", "3"))]
A, B, C = (lock.statement for lock in LOCKS)
# A fifth of a second, the usual `deadlock_timeout`, for two locks.
SHORTLY = "SET LOCAL lock_timeout = '100ms'"


def requests(session: FakeSession) -> list[str]:
    """Those that lock."""
    return [text for text in session.log if "LOCK TABLE" in text]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.targets.postgres.locks._FIRST_PAUSE_SECONDS", 0.0)


def test_one_lock_is_just_waited_for() -> None:
    session = FakeSession()
    lock_for_switch(session, LOCKS[:1], 30)
    assert requests(session) == [A]
    assert not any("deadlock_timeout" in text for text in session.log)


def test_only_the_first_lock_is_waited_for_long() -> None:
    session = FakeSession()
    lock_for_switch(session, LOCKS, 30)
    assert requests(session) == [f"{A}; {SHORTLY}; {B}; {C}"]


def test_nothing_is_held_between_two_tries_and_another_lock_is_the_first_of_the_next_one() -> None:
    session = FakeSession()
    session.failures = {"LOCK TABLE": server_error("55P03", "canceling statement due to lock timeout")}
    lock_for_switch(session, LOCKS, 30)
    assert requests(session) == [f"{A}; {SHORTLY}; {B}; {C}", f"{B}; {SHORTLY}; {C}; {A}"]
    behind = session.log.index(requests(session)[0]) + 1
    assert session.log[behind].startswith("ROLLBACK TO SAVEPOINT")


def test_who_holds_one_of_them_is_named() -> None:
    session = FakeSession({"lock_holders": [], "lock_holders of 2": [["session 7 of user bob"]]})
    session.failures = {"LOCK TABLE": server_error("55P03", "canceling statement due to lock timeout")}
    with pytest.raises(TargetBusyError) as raised:
        lock_for_switch(session, LOCKS, 0)
    assert (raised.value.what, raised.value.found) == (
        "table mart.b is in use: it cannot be exchanged at this moment",
        "session 7 of user bob",
    )
