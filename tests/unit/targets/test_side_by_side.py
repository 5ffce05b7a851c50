"""Several sessions of PostgreSQL work at the same time: what happens when one of them fails."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from headrace.errors import TargetError
from headrace.targets.postgres.connection import Connection
from headrace.targets.postgres.side_by_side import SideBySide
from tests.patience import HANG_SECONDS


class Session:
    """A session whose server forgets the first requests to cancel."""

    def __init__(self, forgets: int) -> None:
        self._forgets = forgets
        self.interrupted = threading.Event()
        self.closed = False

    def cancel(self) -> None:
        self._forgets -= 1
        if self._forgets < 0:
            self.interrupted.set()

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("forgets", [0, 2])
def test_a_failure_ends_the_statements_of_the_others(forgets: int) -> None:
    sessions = [Session(forgets), Session(forgets)]
    left = list(sessions)
    works = threading.Event()

    def fail(connection: Connection) -> int:
        assert works.wait(HANG_SECONDS)
        raise TargetError("the first failure")

    def work(connection: Connection) -> int:
        works.set()
        assert cast(Session, connection).interrupted.wait(HANG_SECONDS)
        raise TargetError("cancelled")

    work_of_both = SideBySide(lambda: cast(Connection, left.pop()), [fail, work], 2)
    with pytest.raises(TargetError, match="the first failure"):
        work_of_both.run(lambda: False)
    assert all(session.closed for session in sessions)
