"""Work of the server that does not depend on other work: several sessions do it at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from headrace.errors import CancelledError, HeadraceError
from headrace.targets.postgres.connection import Connection

_POLL_SECONDS: Final = 0.05
_Result = TypeVar("_Result")
Job = Callable[[Connection], _Result]


class SideBySide(Generic[_Result]):
    """Jobs and the sessions that do them. The first failure, or `stop`, ends them all."""

    def __init__(self, connect: Callable[[], Connection], jobs: Sequence[Job[_Result]], sessions: int) -> None:
        self._connect = connect
        self._jobs = jobs
        self._sessions = min(sessions, len(jobs))
        self._lock = threading.Lock()
        self._open: list[Connection] = []
        self._results: dict[int, _Result] = {}
        self._error: BaseException | None = None

    def run(self, is_cancelled: Callable[[], bool]) -> list[_Result]:
        """What the jobs return, in their order. Raises the first error, when all sessions have ended."""
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(self._jobs)):
            waiting.put(number)
        threads = [
            threading.Thread(target=self._work, args=(waiting,), name=f"session {number} beside others", daemon=True)
            for number in range(1, self._sessions + 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if is_cancelled():
                    self.stop(CancelledError("cancelled by the user"))
        if self._error is not None:
            raise self._error
        return [self._results[number] for number in range(len(self._jobs))]

    def stop(self, error: BaseException) -> None:
        """Ends the statements that run; `run` raises `error`, unless another one was there before."""
        with self._lock:
            if self._error is None:
                self._error = error
                for connection in self._open:
                    connection.cancel()

    def _work(self, waiting: queue.SimpleQueue[int]) -> None:
        try:
            connection = self._connect()
        except HeadraceError as error:
            self.stop(error)
            return
        try:
            with self._lock:
                self._open.append(connection)
            with suppress(queue.Empty):
                while self._error is None:
                    number = waiting.get_nowait()
                    result = self._jobs[number](connection)
                    self._results[number] = result
        except BaseException as error:
            self.stop(error)
        finally:
            with self._lock:
                self._open.remove(connection)
            connection.close()
