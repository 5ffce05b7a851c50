"""Instances of DuckDB that run the queries of a data flow over windows of its rows, one for each stream.

An instance takes the next window of any stream, runs the query of its transform over it, and answers. Rust never calls
Python: threads of this module ask the core for windows, which waits without the GIL; DuckDB pulls rows from Arrow C
streams of the core's own, and the core from those of DuckDB.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from headrace.errors import InternalError
from headrace.model import RowQueryError, message_of, prepared_rows, row_database
from headrace.planning import DataFlowPlan, SplitPlan, SqlPlan

if TYPE_CHECKING:
    import duckdb

_WATCH_SECONDS: Final = 0.05

_ADVICE: Final = (" Use TRY(", " Use try(", " Possible solutions:")

# Takes secrets out of a text.
Shown = Callable[[str], str]


class Window(Protocol):
    """Rows that a query is to be run over: an Arrow C stream, as often as it is asked for before the one answer."""

    def transform(self) -> int: ...
    def rows(self, stream: object) -> None: ...
    def failed(self, kind: str, text: str) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...


class QueriedFlow(Protocol):
    """A flow with queries."""

    def next_window(self) -> Window | None: ...
    def is_stopped(self) -> bool: ...
    def cancel(self, reason: str) -> None: ...


@contextmanager
def sql_instances(plan: DataFlowPlan, flow: QueriedFlow, shown: Shown = lambda text: text) -> Iterator[None]:
    """Runs the queries of the plan until the flow has ended, or was stopped, which must be so when the block ends well.
    `shown`: takes secrets out of DuckDB's messages.

    Raises InternalError if the system gives no thread; the flow is cancelled then.
    """
    if not plan.queries:
        yield
        return
    instances = [_Instance(plan, flow, shown) for _ in range(plan.streams)]
    has_ended = threading.Event()
    threads = [
        threading.Thread(target=own.run, name=f"queries {number}") for number, own in enumerate(instances, start=1)
    ]
    watch = threading.Thread(target=_watch, args=(flow, instances, has_ended), name="watching queries")
    started: list[threading.Thread] = []
    try:
        for thread in (*threads, watch):
            try:
                thread.start()
            except RuntimeError as error:
                raise InternalError("cannot start a thread for queries", found=str(error)) from error
            started.append(thread)
        yield
    except BaseException:
        flow.cancel("what runs its queries has ended")
        raise
    finally:
        for thread in started:
            if thread is not watch:
                thread.join()
        has_ended.set()
        if watch in started:
            watch.join()


def _watch(flow: QueriedFlow, instances: list[_Instance], has_ended: threading.Event) -> None:
    """A query that runs for long ends when the flow is stopped."""
    while not has_ended.wait(_WATCH_SECONDS):
        if flow.is_stopped():
            for own in instances:
                own.interrupt()


def short_message(error: Exception) -> str:
    """DuckDB's message without advice: what it advises to set cannot be set here."""
    text = message_of(error)
    for advice in _ADVICE:
        text = text.split(advice)[0]
    return text


class _Instance:
    """One thread with a database for each query, opened when its first window comes."""

    def __init__(self, plan: DataFlowPlan, flow: QueriedFlow, shown: Shown) -> None:
        self._queries = plan.queries
        # For each: only one of them runs at a time, and the others hold nothing between their windows.
        self._bytes = plan.memory.instance_bytes
        self._flow = flow
        self._shown = shown
        self._lock = threading.Lock()
        self._open: dict[int, _OpenQuery] = {}

    def run(self) -> None:
        """Answers windows until there are no more."""
        with ExitStack() as stack:
            try:
                while (window := self._flow.next_window()) is not None:
                    self._answer(window, stack)
            finally:
                self._close()  # before the connections are: what is closed cannot be interrupted

    def _answer(self, window: Window, stack: ExitStack) -> None:
        try:
            self._query(window.transform(), stack).answer(window, self._shown)
        except Exception as error:  # whatever it is, the stream must not wait for ever
            text = error.found or error.what if isinstance(error, RowQueryError) else str(error)
            with suppress(Exception):  # it has been answered
                window.failed("other", self._shown(message_of(text)))

    def interrupt(self) -> None:
        """Ends what runs now, from any thread."""
        with self._lock:
            for query in self._open.values():
                query.connection.interrupt()

    def _query(self, transform: int, stack: ExitStack) -> _OpenQuery:
        known = self._open.get(transform)
        if known is None:
            query = _OpenQuery(self._queries[transform], self._bytes, stack)
            with self._lock:
                known = self._open[transform] = query
        return known

    def _close(self) -> None:
        with self._lock:
            self._open.clear()


class _Rows:
    """What DuckDB knows as the rows of a query: those of the present window."""

    def __init__(self, window: Window) -> None:
        self.window: Window | None = window

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._present().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._present().__arrow_c_schema__()

    def _present(self) -> Window:
        if self.window is None:
            raise RuntimeError("there is no window")
        return self.window


class _OpenQuery:
    def __init__(self, plan: SqlPlan | SplitPlan, memory_bytes: int, stack: ExitStack) -> None:
        self._plan = plan
        self.connection: duckdb.DuckDBPyConnection = stack.enter_context(row_database(plan.rows, memory_bytes))
        self._rows: _Rows | None = None
        self._relation: Any = None

    def answer(self, window: Window, shown: Shown) -> None:
        import duckdb

        if self._rows is None:
            rows = _Rows(window)
            self._relation = prepared_rows(self.connection, self._plan.rows, rows)
            self._rows = rows
        self._rows.window = window
        # They are about values; `error()` and division by zero are invalid input.
        of_rows = (duckdb.DataError, duckdb.InvalidInputException)
        try:
            # Only so errors have their classes: a stream would tell texts alone.
            answer = self._relation.materialize().__arrow_c_stream__()
        except of_rows as error:
            window.failed("row", shown(short_message(error)))
        except duckdb.OutOfMemoryException as error:
            window.failed("memory", shown(short_message(error)))
        else:
            window.rows(answer)
        finally:
            self._rows.window = None
