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
from headrace.targets.duckdb.waiting_rows import DATABASE as WAITING
from headrace.targets.duckdb.waiting_rows import WaitingRows, first_error
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
    *,
    has_ways: bool,
) -> Iterator[DuckdbGroup]:
    """The transaction of a task that holds others; rolled back at the end unless it was committed. `has_ways`: they are
    the ways of a flow with several destinations.
    """
    with ExitStack() as stack:
        yield DuckdbGroup(lambda: stack.enter_context(sessions.session(task, is_cancelled)), path, new_load, has_ways)


class DuckdbGroup:
    """See `GroupTransaction`."""

    stages_first = False
    at_work: str | None = None

    def __init__(
        self, open_session: Callable[[], DuckdbSqlSession], path: Path, new_load: NewLoad, has_ways: bool
    ) -> None:
        self._has_ways = has_ways
        self._path = path
        self._open_session = open_session
        self._new_load = new_load
        self._opened: DuckdbSqlSession | None = None
        self._loads: dict[str, TableLoad] = {}

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        load = self._loads[plan.task] = self._new_load(self._session.cursor, plan, None)
        return load.run_inside(flow, settle)

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        cursor = self._session.cursor
        waiting = [WaitingRows(cursor, plan, number) for number, plan in enumerate(plans) if number]
        streams: list[Stream | None] = [None, *waiting]
        times: list[LoadTimes] = []
        error: BaseException | None = None

        def settle_first(rows_inserted: int | None) -> dict[str, Any]:
            # What the core counts is complete when all have taken their rows.
            failed = first_error(waiting, None)
            if failed is not None:
                raise failed
            return settles[0](rows_inserted)

        try:
            flow.start()
            for rows in waiting:
                rows.take(flow)
            for plan, settle, stream in zip(plans, (settle_first, *settles[1:]), streams, strict=True):
                self.at_work = plan.task
                load = self._loads[plan.task] = self._new_load(cursor, plan, stream)
                times.append(load.run_inside(flow, settle))
        except BaseException as failed:
            # Threads may wait for rows that will not come.
            flow.cancel("the destination stopped")
            error = self._cause(failed, first_error(waiting, None))
        finally:
            for rows in waiting:
                rows.release()
        if isinstance(error, duckdb.Error):
            raise load_failure(error, "loading several tables", self._path) from error
        if error is not None:
            raise error
        return times

    def _cause(self, error: BaseException, other: BaseException | None) -> BaseException:
        """Of both, that which the other one follows from: whoever could not take its rows has stopped the flow."""
        is_stopped = other is not None and "one of the destinations stopped" in str(getattr(error, "found", error))
        return other if is_stopped and other is not None else error

    def begin(self) -> None:
        self._opened = self._open_session()
        if self._has_ways:
            # Gone with the session, as what scripts attach.
            self._opened.cursor.execute(f"ATTACH ':memory:' AS {WAITING}")
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

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        self._session.set_result(result)
        self._session.commit()
        return {task: load.verified() for task, load in self._loads.items()}

    @property
    def _session(self) -> DuckdbSqlSession:
        if self._opened is None:
            raise InternalError("a transaction of several tasks is used before it has begun")
        return self._opened
