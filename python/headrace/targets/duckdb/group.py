"""One transaction of several tasks: all of them in order, in one transaction of one cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import duckdb

from headrace.errors import InternalError
from headrace.model import DatabaseSource, LookupColumn
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, RowStream, Settle
from headrace.targets.duckdb.load import TableLoad
from headrace.targets.duckdb.lookup_rows import lookup_rows
from headrace.targets.duckdb.sql_sessions import DuckdbSqlSession, DuckdbSqlSessions
from headrace.targets.sql import SqlSession

# A load by a connection.
NewLoad = Callable[[duckdb.DuckDBPyConnection, DataFlowPlan], TableLoad]


@contextmanager
def group_transaction(
    sessions: DuckdbSqlSessions, path: Path, task: str, new_load: NewLoad, is_cancelled: Callable[[], bool]
) -> Iterator[DuckdbGroup]:
    """The transaction of a task that holds others; rolled back at the end unless it was committed."""
    with ExitStack() as stack:
        yield DuckdbGroup(lambda: stack.enter_context(sessions.session(task, is_cancelled)), path, new_load)


class DuckdbGroup:
    """See `GroupTransaction`."""

    stages_first = False

    def __init__(self, open_session: Callable[[], DuckdbSqlSession], path: Path, new_load: NewLoad) -> None:
        self._path = path
        self._open_session = open_session
        self._new_load = new_load
        self._opened: DuckdbSqlSession | None = None
        self._loads: dict[str, TableLoad] = {}

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        load = self._loads[plan.task] = self._new_load(self._session.cursor, plan)
        return load.run_inside(flow, settle)

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

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        self._session.set_result(result)
        self._session.commit()
        return {task: load.verified() for task, load in self._loads.items()}

    @property
    def _session(self) -> DuckdbSqlSession:
        if self._opened is None:
            raise InternalError("a transaction of several tasks is used before it has begun")
        return self._opened
