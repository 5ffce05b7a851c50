"""The control connection as an object that outlives its session, and the threads that watch over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeVar

from headrace.errors import CancelledError, HeadraceError
from headrace.targets.postgres.connection import Connection, QueryResult, sql
from headrace.targets.postgres.failures import is_connection_lost

_BEAT_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.1
# How long a network that says nothing may delay the end of a load that has failed.
_PATIENCE_SECONDS: Final = 2.0
# How long a server that is busy may take for its last sign of life, when all went well and the load goes on.
_ANSWER_SECONDS: Final = 30.0
_Result = TypeVar("_Result")


class Control:
    """A `Connection` that can be opened again. `state` says whether its session can still be used.

    `lost`: the server or the network ended it; `cancelled`: we ended it to stop a statement; `silent`: we gave it up,
    because no answer came.
    """

    def __init__(self, open_session: Callable[[], Connection]) -> None:
        self._open_session = open_session
        self._connection = open_session()
        self.state: Literal["open", "lost", "cancelled", "silent"] = "open"

    def execute(self, sql: str) -> None:
        self._watched(lambda: self._connection.execute(sql))

    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> QueryResult:
        return self._watched(lambda: self._connection.query(sql, parameters))

    def parameter(self, name: str) -> str | None:
        return self._connection.parameter(name)

    def address(self) -> str | None:
        return self._connection.address()

    def process_id(self) -> int:
        return self._connection.process_id()

    def cancel(self) -> None:
        self._give_up("cancelled")

    def close(self) -> None:
        with suppress(HeadraceError):
            self._connection.close()

    def reopen(self, patience_seconds: float = 0.0) -> None:
        """A new session in place of one that cannot be used any more. Raises what opening it raises.

        Tries again for `patience_seconds` while trying again can help.
        """
        self.close()
        deadline = time.monotonic() + patience_seconds
        while True:
            try:
                self._connection = self._open_session()
            except HeadraceError as error:
                if not error.retryable or time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                self.state = "open"
                return

    @contextmanager
    def heartbeat(
        self,
        is_cancelled: Callable[[], bool],
        on_loss: Callable[[HeadraceError], None],
        on_work: Callable[[Sequence[int]], None] = lambda _: None,
    ) -> Iterator[None]:
        """Asks for a sign of life every second, on a thread of its own; the caller must leave the connection alone.

        `on_work` learns the processes of the server whose COPY went on since the last beat. At the end an answer that
        is still to come is waited for: shortly if the caller has failed.
        """
        stop = threading.Event()

        def beat() -> None:
            known: dict[int, str | None] = {}
            while not stop.wait(_BEAT_SECONDS):
                try:
                    # What a transaction has seen of the others stays as it was until it asks anew.
                    self.execute("SELECT pg_catalog.pg_stat_clear_snapshot()")
                    progress = {int(pid): at for pid, at in self.query(sql("copy_progress")).rows if pid}
                    on_work([pid for pid, at in progress.items() if pid in known and known[pid] != at])
                    known = progress
                except HeadraceError as error:
                    if not stop.is_set():
                        on_loss(error)
                    return

        thread = threading.Thread(target=beat, name="heartbeat of the control connection", daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            stop.set()
            self._wait_for(thread, _PATIENCE_SECONDS)
            raise
        else:
            stop.set()
            self._wait_for(thread, _ANSWER_SECONDS, is_cancelled)

    @contextmanager
    def cancellable(self, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        """Stops the statement that runs when the user cancels; it then raises CancelledError."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(_POLL_SECONDS):
                if is_cancelled():
                    self.cancel()
                    return

        thread = threading.Thread(target=watch, name="cancelling of the control connection", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Gives the connection up if the statements inside take too long."""
        timer = threading.Timer(_PATIENCE_SECONDS, self._give_up, ("silent",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _wait_for(
        self, thread: threading.Thread, seconds: float, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Waits until the statement of the thread has ended, or gives the connection up."""
        deadline = time.monotonic() + seconds
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            if thread.is_alive() and (is_cancelled() or time.monotonic() >= deadline):
                self._give_up("cancelled" if is_cancelled() else "silent")
                thread.join()

    def _give_up(self, state: Literal["cancelled", "silent"]) -> None:
        self.state = state
        self._connection.cancel()

    def _watched(self, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        except HeadraceError as error:
            if is_connection_lost(error) and self.state == "open":
                self.state = "lost"
            elif isinstance(error, CancelledError) and self.state == "open":
                self.state = "cancelled"
            raise
