"""One transaction of several tasks: all of them in order, in one transaction of one cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from headrace.errors import InternalError
from headrace.model import DatabaseSource, LookupColumn
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, RowStream, Settle, SharedFlow
from headrace.targets.duckdb.failures import load_failure
from headrace.targets.duckdb.load import Stream, TableLoad
from headrace.targets.duckdb.lookup_rows import lookup_rows
from headrace.targets.duckdb.sql_sessions import DuckdbSqlSession, DuckdbSqlSessions
from headrace.targets.duckdb.waiting_rows import FirstRows, WaitingRows
from headrace.targets.sql import SqlSession

# A load by a connection, of rows that come by the stream of the flow, or otherwise.
NewLoad = Callable[[duckdb.DuckDBPyConnection, DataFlowPlan, Stream | None], TableLoad]


@contextmanager
def group_transaction(
    sessions: DuckdbSqlSessions,
    path: Path,
    task: str,
    new_load: NewLoad,
    is_cancelled: Callable[[], bool],
) -> Iterator[DuckdbGroup]:
    """The transaction of a task that holds others; rolled back at the end unless it was committed."""
    with ExitStack() as stack:
        yield DuckdbGroup(lambda: stack.enter_context(sessions.session(task, is_cancelled)), path, new_load)


class DuckdbGroup:
    """See `GroupTransaction`."""

    stages_first = False
    at_work: str | None = None

    def __init__(self, open_session: Callable[[], DuckdbSqlSession], path: Path, new_load: NewLoad) -> None:
        self._path = path
        self._open_session = open_session
        self._new_load = new_load
        self._opened: DuckdbSqlSession | None = None
        self._loads: dict[str, TableLoad] = {}
        # Destinations of earlier flows whose rows have waited.
        self._waited = 0

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        load = self._loads[plan.task] = self._new_load(self._session.cursor, plan, None)
        return load.run_inside(flow, settle)

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        self.at_work = None  # of an earlier flow
        cursor = self._session.cursor
        waiting = [
            WaitingRows(cursor, plan, number, self._waited + number) for number, plan in enumerate(plans) if number
        ]
        self._waited += len(waiting)

        def settle_first(rows_inserted: int | None) -> dict[str, Any]:
            # What the core counts is complete when all have taken their rows.
            self._refuse_incomplete(waiting, flow)
            return settles[0](rows_inserted)

        times: list[LoadTimes] = []
        try:
            flow.start()
            streams: list[Stream] = [FirstRows(waiting, flow), *waiting]
            for plan, settle, stream in zip(plans, (settle_first, *settles[1:]), streams, strict=True):
                self.at_work = plan.task
                load = self._loads[plan.task] = self._new_load(cursor, plan, stream)
                times.append(load.run_inside(flow, settle))
        except BaseException:
            # Threads may wait for rows that will not come.
            flow.cancel("the destination stopped")
            for rows in waiting:
                rows.wait()
            if flow.has_stream_failed(0):
                # A consequence: the stream does not say why another destination has stopped.
                self._refuse_incomplete([rows for rows in waiting if rows.is_to_blame(flow)], flow)
            raise
        finally:
            for rows in waiting:
                rows.release()
        return times

    def _refuse_incomplete(self, waiting: Sequence[WaitingRows], flow: SharedFlow) -> None:
        """Waits for the rows. Raises why those of a destination are not there: of several the cause comes first."""
        for rows in waiting:
            rows.wait()
        for rows in sorted(waiting, key=lambda rows: not rows.is_to_blame(flow)):
            if rows.error is not None:
                self.at_work = rows.plan.task
                if isinstance(rows.error, duckdb.Error):
                    what = f"loading table {rows.plan.connection}.{rows.plan.table}"
                    raise load_failure(rows.error, what, self._path) from rows.error
                raise rows.error

    def begin(self) -> None:
        self._opened = self._open_session()
        self._opened.begin()
        self._opened.mark()

    def lookup_rows(self, source: DatabaseSource, columns: Sequence[LookupColumn]) -> AbstractContextManager[RowStream]:
        return lookup_rows(self._session.cursor, self._path, source, columns)

    @contextmanager
    def statements(self) -> Iterator[SqlSession]:
        self._session.prepare()
        yield self._session

    def switch(self, plan: DataFlowPlan) -> None:
        """A load does it itself."""

    def prove(self) -> None:
        """Constraints are looked at when rows come."""

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        self._session.set_result(result)
        self._session.commit()
        return {task: load.verified() for task, load in self._loads.items()}

    @property
    def _session(self) -> DuckdbSqlSession:
        if self._opened is None:
            raise InternalError("a transaction of several tasks is used before it has begun")
        return self._opened
