"""Tells of the temporary files of sessions while they grow: an operator that spills may fill the server's disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final

from headrace import units
from headrace.errors import HeadraceError
from headrace.targets.base import Notice
from headrace.targets.postgres.connection import Connection, array, one_value, sql

# Told first, and then whenever it has doubled.
FIRST_BYTES: Final = 256 << 20
LOOK_SECONDS: Final = 1.0
_TOLD: Final = "the server holds {} in temporary files for this task, and goes on"


class SpillWatch:
    """Looks every second, over a session of its own, as long as the block lasts. Nothing of it can fail the build:
    without the right to look (`pg_monitor`), or a session for it, nothing is told.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        notice: Notice,
        first_bytes: int = FIRST_BYTES,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._connect = connect
        self._notice = notice
        self._tell_at = first_bytes
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._sessions: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spill watch", daemon=True)
        # The most that was seen.
        self.most_bytes = 0

    def add(self, connection: Connection) -> None:
        """A session whose files count."""
        with self._lock:
            self._sessions.add(str(connection.process_id()))

    def has_given_up(self, seconds: float) -> bool:
        """Whether it looks no more, waited for as long; the block need not have ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def __enter__(self) -> SpillWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        # Builds that are short are spared the session.
        if self._ended.wait(self._look_seconds):
            return
        with suppress(HeadraceError):
            connection = self._connect()
            try:
                while not self._ended.is_set() and self._look(connection):
                    self._ended.wait(self._look_seconds)
            finally:
                connection.close()

    def _look(self, connection: Connection) -> bool:
        """Whether there is anything to see here."""
        with self._lock:
            sessions = sorted(self._sessions)
        found = one_value(connection, sql("temporary_files"), (array(sessions),))
        if found is None:
            return False
        now = int(found)
        self.most_bytes = max(self.most_bytes, now)
        if now >= self._tell_at:
            self._notice(_TOLD.format(units.size(now)))
            self._tell_at = 2 * now
        return True
