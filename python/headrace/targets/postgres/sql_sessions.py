"""Sessions for the SQL of users' tasks: each task has one alone, and they work side by side.

They hold the lock of the run's writers, so that whoever takes the run over ends them first, and pass the ledger's fence
with the mark of their task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

from headrace.errors import CancelledError, HeadraceError, SqlError, TargetBusyError
from headrace.targets.base import FinishedTask
from headrace.targets.postgres.connection import BEGIN, Connection, QueryResult, array, one_value, rows_done, sql
from headrace.targets.postgres.ddl import DURABLE
from headrace.targets.postgres.failures import VALUES_NOT_TAKEN, is_connection_lost, sqlstate, statement_failure
from headrace.targets.postgres.ledger import Ledger, fenced_off
from headrace.targets.postgres.names import literal, quote, session_name, writers_lock_key
from headrace.targets.postgres.sql_values import RowReader, type_name, written
from headrace.targets.sql import Command, SqlNotice, interrupted, taken_over

# What texts and times of day mean is the same in every session of a run; notices have somebody who reads them.
SQL_SETTINGS: Final = {"timezone": "UTC", "client_min_messages": "notice"}
_BEGIN_READS: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
# Sessions that wait for the next task.
_IDLE_SESSIONS: Final = 4
# As many rows as that are asked for at first; then as many as make so many bytes.
_FIRST_ROWS: Final = 100
_MOST_ROWS: Final = 10_000
_PORTION_BYTES: Final = 1_000_000
# How long to look for what became of a transaction whose end was not heard of.
_RESOLVE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_CURRENT_TRANSACTION: Final = "SELECT pg_catalog.pg_current_xact_id_if_assigned()"
# What the core sets in every session; what others set goes with DISCARD ALL. English messages where the user may.
_ENGLISH: Final = (
    "SELECT pg_catalog.set_config('lc_messages', 'C', false) "
    "WHERE pg_catalog.has_parameter_privilege('lc_messages', 'SET')"
)
_OWN_ROLE: Final = "RESET SESSION AUTHORIZATION; RESET ROLE"
_Result = TypeVar("_Result")


class SqlConnection(Connection, Protocol):
    """`core.PostgresConnection`, as these sessions use it."""

    def first_rows(self, sql: str, parameters: Sequence[str | None], limit: int) -> PortionResult: ...
    def next_rows(self, limit: int) -> PortionResult: ...
    def notices(self) -> list[dict[str, Any]]: ...


class PortionResult(QueryResult, Protocol):
    """A part of the rows; `types` are oids."""

    @property
    def types(self) -> list[int]: ...
    @property
    def has_more(self) -> bool: ...


@dataclass(frozen=True)
class _Opened:
    """A connection, and when the server began to serve it: process ids come again."""

    connection: SqlConnection
    since: str


class PostgresSqlSessions:
    """See `SqlSessions`. `open_session` connects, with settings that DISCARD ALL brings back."""

    def __init__(
        self, open_session: Callable[[], SqlConnection], run_id: str, ledger_schema: str | None, attempt: int
    ) -> None:
        self._open_session = open_session
        self._run_id = run_id
        self._ledger_schema = ledger_schema
        self._attempt = attempt
        self._lock = threading.Lock()
        self._idle: list[_Opened] = []
        self._is_closed = False

    @property
    def keeps_marks(self) -> bool:
        return self._ledger_schema is not None

    def finished_task(self, task: str) -> FinishedTask | None:
        if self._ledger_schema is None:
            return None
        opened = self._taken(task)
        try:
            found = self._ledger(opened.connection).finished_task(self._run_id, task)
        except BaseException:
            opened.connection.close()
            raise
        self._keep(opened)
        return found

    @contextmanager
    def session(self, task: str, is_cancelled: Callable[[], bool]) -> Iterator[PostgresSqlSession]:
        opened = self._taken(task)
        ledger = self._ledger(opened.connection) if self.keeps_marks else None
        resolve = partial(self._resolved, opened, task)
        session = PostgresSqlSession(opened.connection, ledger, self._run_id, task, resolve)
        try:
            with interrupted(is_cancelled, opened.connection.cancel):
                yield session
            session.roll_back()
        except BaseException:
            session.roll_back()
            self._give_back(opened, session)
            raise
        self._give_back(opened, session)

    def quote(self, name: str) -> str:
        return ".".join(map(quote, name.split(".")))

    def parameter(self, number: int, sql_type: str, value: object) -> str:
        cast = f"CAST(${number} AS {type_name(sql_type)})"
        # Only so can the item of an array be taken: ($1)[2].
        return f"({cast})" if sql_type.endswith("[]") else cast

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for opened in idle:
            opened.connection.close()

    def _ledger(self, connection: Connection) -> Ledger:
        return Ledger(connection, self._ledger_schema or "", self._attempt)

    def _taken(self, task: str) -> _Opened:
        """A session that has waited, or a new one. The server shows it under the name of the task."""
        name = f"SET application_name = {literal(session_name(self._run_id, task))}"
        while True:
            with self._lock:
                opened = self._idle.pop() if self._idle else None
            if opened is None:
                return self._opened(name)
            try:
                opened.connection.execute(name)
            except HeadraceError as error:
                opened.connection.close()
                if not is_connection_lost(error):
                    raise
            else:
                return opened

    def _opened(self, name: str) -> _Opened:
        connection = self._open_session()
        try:
            connection.execute(name)
            since = one_value(connection, sql("session_since"), (str(connection.process_id()),))
            _prepare(connection)
            connection.notices()
        except BaseException:
            connection.close()
            raise
        return _Opened(connection, since or "")

    def _give_back(self, opened: _Opened, session: PostgresSqlSession) -> None:
        """Nothing of a task stays behind in its session, locks included."""
        if session.is_usable:
            try:
                opened.connection.execute("DISCARD ALL")
                _prepare(opened.connection)
                opened.connection.notices()
            except HeadraceError:
                session.is_usable = False
        if session.is_usable:
            self._keep(opened)
        else:
            opened.connection.close()

    def _keep(self, opened: _Opened) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _IDLE_SESSIONS:
                self._idle.append(opened)
                return
        opened.connection.close()

    def _resolved(self, lost: _Opened, task: str) -> bool | None:
        """Whether a task has committed whose session was lost meanwhile; None if nobody can be asked.

        Its process is ended first: only what has ended will not change any more.
        """
        deadline = time.monotonic() + _RESOLVE_SECONDS
        process = (str(lost.connection.process_id()), lost.since)
        while True:
            try:
                connection = self._open_session()
                try:
                    while connection.query(sql("end_session"), process).rows and time.monotonic() < deadline:
                        time.sleep(_POLL_SECONDS)
                    if connection.query(sql("end_session"), process).rows:
                        return None
                    return self._ledger(connection).finished_task(self._run_id, task) is not None
                finally:
                    connection.close()
            except HeadraceError as error:
                if not error.retryable or time.monotonic() >= deadline:
                    return None
                time.sleep(_POLL_SECONDS)


class PostgresSqlSession:
    """See `SqlSession`. `resolve` finds out whether the task has committed when its session cannot say so any more."""

    def __init__(
        self,
        connection: SqlConnection,
        ledger: Ledger | None,
        run_id: str,
        task: str,
        resolve: Callable[[], bool | None],
    ) -> None:
        self._connection = connection
        self._ledger = ledger
        self._run_id = run_id
        self._task = task
        self._resolve = resolve
        self._is_open = False
        self._transaction: str | None = None  # since there is a mark
        self.is_usable = True

    @property
    def connection(self) -> SqlConnection:
        """The connection of the session, for what else belongs into its transaction."""
        return self._connection

    @property
    def ledger(self) -> Ledger | None:
        """The ledger, by that connection."""
        return self._ledger

    @contextmanager
    def own_settings(self) -> Iterator[None]:
        """Inside a transaction: what the statements of the block set, roles too, ends with it."""
        before = self._call(lambda: self._connection.query(sql("session_settings")).rows)
        yield
        values = [array([row[place] for row in before]) for place in (0, 1)]
        self._call(lambda: self._connection.execute(f"{_OWN_ROLE}; RESET ALL"))
        self._call(lambda: self._connection.query(sql("set_settings"), values))

    def begin(self, *, only_reads: bool = False) -> None:
        shared = f"SELECT pg_catalog.pg_advisory_xact_lock_shared({writers_lock_key(self._run_id)})"
        statements = [_BEGIN_READS, shared] if only_reads else [BEGIN, shared, DURABLE]
        self._is_open = True
        self._call(lambda: self._connection.execute(";\n".join(statements)))

    def stand_alone(self) -> None:
        key = str(writers_lock_key(self._run_id))
        self._call(
            lambda: self._connection.query("SELECT pg_catalog.pg_advisory_lock_shared($1::pg_catalog.int8)", (key,))
        )
        ledger = self._ledger
        if ledger is not None and not self._call(lambda: ledger.is_current(self._run_id)):
            raise fenced_off(self._run_id, ledger.schema)

    def mark(self) -> None:
        ledger = self._ledger
        if ledger is None:
            return
        self._call(lambda: ledger.mark_task(self._run_id, self._task))
        self._transaction = self._current()

    def set_result(self, result: str) -> None:
        ledger = self._ledger
        if ledger is None:
            return
        # A script may have put on another role, whose tables these are not.
        self._call(lambda: self._connection.execute(_OWN_ROLE))
        self._call(lambda: ledger.set_task_result(self._run_id, self._task, result))

    def has_changed(self) -> bool:
        return self._current() is not None

    def run(self, command: Command) -> int | None:
        rows = self._rows(command)
        for _ in rows.drained():
            pass
        return rows.changed

    def query(self, command: Command) -> PostgresRows | None:
        rows = self._rows(command)
        return rows if rows.columns else None

    def commit(self) -> None:
        if self._transaction is not None and self._current() != self._transaction:
            raise taken_over(self._run_id)
        try:
            tag = self._connection.query("COMMIT").tag
        except HeadraceError as error:
            if not (is_connection_lost(error) or isinstance(error, CancelledError)):
                raise statement_failure(error) from error
            self.is_usable = False
            self._unheard(error)
            tag = "COMMIT"
        self._is_open = False
        if tag != "COMMIT":
            raise SqlError("the server has not committed", found=tag or "no answer")

    def roll_back(self) -> None:
        if self._is_open and self.is_usable:
            self._is_open = False
            try:
                self._connection.execute("ROLLBACK")
            except HeadraceError:
                self.is_usable = False

    def notices(self) -> Sequence[SqlNotice]:
        if not self.is_usable:
            return ()
        said = []
        for fields in self._connection.notices():
            level: Literal["notice", "warning"] = "warning" if fields.get("severity") == "WARNING" else "notice"
            text = "\n".join(str(fields[name]) for name in ("message", "detail", "hint") if fields.get(name))
            said.append(SqlNotice(level, text))
        return said

    def _current(self) -> str | None:
        return self._call(lambda: one_value(self._connection, _CURRENT_TRANSACTION))

    def _unheard(self, error: HeadraceError) -> None:
        """Returns if the transaction has committed although nobody was told."""
        if self._transaction is None:
            raise _unknown(error) from error
        committed = self._resolve()
        if committed is None:
            raise _unknown(error) from error
        if not committed:
            raise error

    def _rows(self, command: Command) -> PostgresRows:
        values = [written(value) for value in command.values]
        # Without a limit a statement may end its transaction, and its rows go through all the same.
        limit = _FIRST_ROWS if self._is_open else 0
        first = self._call(lambda: self._connection.first_rows(command.text, values, limit))
        return PostgresRows(self._connection, first, self._call)

    def _call(self, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        except HeadraceError as error:
            lost = is_connection_lost(error) and sqlstate(error) != VALUES_NOT_TAKEN
            if lost or isinstance(error, CancelledError):
                self.is_usable = False
            raise statement_failure(error) from error


class PostgresRows:
    """See `SqlRows`."""

    def __init__(
        self, connection: SqlConnection, first: PortionResult, call: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._connection = connection
        self._portion = first
        self._call = call
        self.columns: Sequence[str] = first.columns
        self._types = first.types
        self.changed: int | None = None

    def portions(self) -> Iterator[Sequence[Sequence[object]]]:
        if not self.columns:
            return
        reader = RowReader(self._connection, self.columns, self._types)
        for rows in self.drained():
            yield [reader.row(row) for row in rows]

    def drained(self) -> Iterator[Sequence[Sequence[str | None]]]:
        """All rows, as the server writes them."""
        while True:
            portion = self._portion
            yield portion.rows
            if not portion.has_more:
                break
            limit = _next_limit(portion.rows)
            self._portion = self._call(partial(self._connection.next_rows, limit))
        kind = portion.tag.partition(" ")[0]
        is_counted = kind in ("INSERT", "UPDATE", "DELETE", "MERGE", "COPY") or (kind == "SELECT" and not self.columns)
        self.changed = rows_done(portion.tag) if is_counted else None


def _next_limit(rows: Sequence[Sequence[str | None]]) -> int:
    """Rows like these that make about as many bytes as a portion is to have."""
    characters = sum(len(text) for row in rows for text in row if text is not None)
    return max(1, min(_MOST_ROWS, _PORTION_BYTES * len(rows) // max(1, characters)))


def _prepare(connection: SqlConnection) -> None:
    connection.execute(_ENGLISH)
    # The server notices at once that we are gone. Not all its systems can.
    with suppress(HeadraceError):
        connection.execute("SET client_connection_check_interval = '1s'")


def _unknown(error: HeadraceError) -> TargetBusyError:
    return TargetBusyError(
        "the connection was lost while the transaction was ending: whether it has committed is not known",
        found=error.found or error.what,
        hint="Look into the tables. With a ledger `headrace resume` finds out.",
    )
