"""Looks at the server while rows come, over a session of its own: the control session is in use, and holds locks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.machine.ticks import Ticks
from headrace.targets.base import Notice
from headrace.targets.postgres.connection import Connection, array, one_row, server_major, sql
from headrace.targets.postgres.failures import is_connection_lost
from headrace.targets.postgres.local_server import LocalServer, find_local_server
from headrace.targets.postgres.names import literal
from headrace.targets.postgres.watched_server import WatchedServer
from headrace.targets.postgres.watched_sessions import WatchedSessions

LOOK_SECONDS: Final = 0.2
# Of a load that ends before that nobody can tell what limits it; it is spared the session.
_START_SECONDS: Final = 0.4
_SLOW_LOOKS: Final = 5
# So many sessions have their processes read at every look: 15 microseconds each.
_OFTEN_READ: Final = 16
_RETRY_SECONDS: Final = 10.0
# How long the end of a load may be delayed by a server that does not answer: twice this.
_PATIENCE_SECONDS: Final = 0.3
# A server that does not answer such a question is not asked any more for a while.
WATCH_SETTINGS: Final = {"statement_timeout": "5s", "default_transaction_read_only": "on"}
WATCH_TIMEOUTS: Final = {"connect_timeout_seconds": 5.0, "stall_timeout_seconds": 5.0}
NO_SESSION: Final = "what the server does: {}"
FEW_SESSIONS: Final = "{} sessions are left over for the load, and so none for watching it"
POOLED: Final = "CPU and disk waits of its processes: a connection pooler stands between"
_PG_STAT_CHECKPOINTER: Final = 17


class Unwatched:
    """A `DestinationWatcher` that sees nothing, and why."""

    def __init__(self, why: str) -> None:
        self._why = why

    def look(self) -> dict[str, Any]:
        return {"type": "postgres", "denied": [NO_SESSION.format(self._why)], "samples": 0, "sessions": []}

    def close(self) -> None:
        """There is nothing to end."""


class SessionWatcher:
    """A `DestinationWatcher`. `writers`: how the names of the sessions begin that take rows.

    A thread of its own opens the session, looks five times a second, and comes back later if it cannot: nothing of
    this can fail a load. `notice` is told why it cannot, each time.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        writers: Sequence[str],
        notice: Notice,
        *,
        start_seconds: float = _START_SECONDS,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._connect = connect
        self._writers = writers
        self._notice = notice
        self._start_seconds = start_seconds
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._connection: Connection | None = None
        self._sessions = WatchedSessions()
        self._local: LocalServer | None = None
        self._is_local: bool | None = None
        self._server = WatchedServer()
        self._may_ask_server = True
        # By what is missing, why.
        self._denied: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="watching the server", daemon=True)
        self._thread.start()

    def look(self) -> dict[str, Any]:
        with self._lock:
            return {
                "type": "postgres",
                "denied": [*self._denied.values(), *sorted(self._sessions.denied)],
                "is_local": self._is_local,
                **self._sessions.to_dict(),
                **self._server.to_dict(),
            }

    def close(self) -> None:
        self._stop.set()
        self._thread.join(_PATIENCE_SECONDS)
        connection = self._connection
        if self._thread.is_alive() and connection is not None:
            connection.cancel()
            self._thread.join(_PATIENCE_SECONDS)
        # A thread that is still connecting ends by itself, and the session with it.

    def _run(self) -> None:
        seconds = self._start_seconds
        while not self._stop.wait(seconds):
            seconds = self._retry_seconds
            try:
                connection = self._connect()
            except HeadraceError as error:
                why = error.what if error.found is None else f"{error.what}: {error.found}"
                self._deny("session", NO_SESSION.format(f"no session for watching it ({why})"))
                if not self._stop.is_set():
                    self._notice(why)
                continue
            try:
                self._connection = connection
                self._watch(connection)
            except Exception as error:  # whatever it is, the load goes on
                why = error.what if isinstance(error, HeadraceError) else repr(error)
                self._deny("session", NO_SESSION.format(f"the session for watching it has ended ({why})"))
            finally:
                self._connection = None
                with suppress(HeadraceError):
                    connection.close()

    def _watch(self, connection: Connection) -> None:
        self._find_processes(connection)
        # Planning the question takes the server twice as long as answering it.
        connection.execute(f"PREPARE look (text[]) AS {sql('watched_sessions')}")
        look_now = f"EXECUTE look({literal(array(self._writers))})"
        self._deny("session", None)
        ticks = Ticks(LOOK_SECONDS)
        looks = 0
        while True:
            is_last = self._stop.is_set()
            rows = connection.query(look_now).rows
            with self._lock:
                self._sessions.add(rows)
            if is_last or looks % _SLOW_LOOKS == 0:
                self._ask_server(connection)
            # Sessions that end between two readings keep the last one: what they used behind it is nobody's.
            if is_last or looks % _SLOW_LOOKS == 0 or self._sessions.are_few(_OFTEN_READ):
                self._read_processes()
            if is_last:
                return
            looks += 1
            ticks.wait(self._stop)

    def _find_processes(self, connection: Connection) -> None:
        row = one_row(connection, sql("own_session"))
        process_id, started_at = (int(row[0] or 0), float(row[1] or 0)) if row else (0, 0.0)
        is_pooled = process_id != connection.process_id()
        found = POOLED if is_pooled else find_local_server(connection.address(), process_id, started_at)
        self._deny("processes", found if isinstance(found, str) else None)
        local = None if isinstance(found, str) else found
        checkpointer = None if local is None else local.checkpointer()
        with self._lock:
            self._local, self._is_local = local, local is not None
            if checkpointer is not None:
                self._sessions.name_checkpointer(checkpointer)

    def _ask_server(self, connection: Connection) -> None:
        if not self._may_ask_server:
            return
        name = "watched_server" if server_major(connection) >= _PG_STAT_CHECKPOINTER else "watched_server_before_17"
        try:
            row = one_row(connection, sql(name))
        except HeadraceError as error:
            if is_connection_lost(error):
                raise
            self._may_ask_server = False
            self._deny("server", f"its checkpoints and log: {error.what}")
            return
        if row is not None:
            with self._lock:
                self._server.add(row)

    def _read_processes(self) -> None:
        local = self._local
        if local is None:
            return
        with self._lock:
            living = list(self._sessions.living())
        readings = [(process, local.reading(process.process_id)) for process in living]
        with self._lock:
            for process, reading in readings:
                process.reading = reading or process.reading

    def _deny(self, what: str, why: str | None) -> None:
        with self._lock:
            self._denied.pop(what, None)
            if why is not None:
                self._denied[what] = why
