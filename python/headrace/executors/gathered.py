"""Runs the query over all rows of a data flow: a flow of its own brings them into an instance of DuckDB, and what comes
out is the source of the flow behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import CancelledError, HeadraceError, MemoryLimitError, SourceError
from headrace.executors.sql_instances import Shown, short_message
from headrace.model import GatheredQuery, gather_rows, gathered_rows
from headrace.planning import DataFlowPlan, GatherPlan
from headrace.targets import DestinationWatcher, Flow, LoadTimes, Settle, SharedFlow
from headrace.targets.sql import interrupted

if TYPE_CHECKING:
    import duckdb


class Gathering:
    """The query as the place where rows go. Nothing of it outlives the connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        plan: GatherPlan,
        is_cancelled: Callable[[], bool],
        shown: Shown,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`shown`: takes secrets out of DuckDB's messages. `is_stopped`: nobody asks for the result any more, because
        another destination of the flow has failed.
        """
        self._connection = connection
        self._plan = plan
        self._is_cancelled = is_cancelled
        self._shown = shown
        self._is_stopped = is_stopped

    @property
    def _query(self) -> GatheredQuery:
        return self._plan.source.query

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        return {"kind": "arrow", "columns": [own.name for own in self._query.columns]}

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        """Runs the query. Its result is kept until it is asked for."""
        import duckdb

        started = time.monotonic()
        flow.start()
        try:
            with interrupted(lambda: self._is_cancelled() or self._is_stopped(), self._connection.interrupt):
                rows = gather_rows(self._connection, self._query, flow.arrow_stream())
        except duckdb.Error as error:
            raise self._failure(error) from error
        settle(None)
        return LoadTimes(0.0, time.monotonic() - started, 0.0, rows)

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        """The same as one of several destinations of a flow."""
        ((plan, settle),) = zip(plans, settles, strict=True)
        return [self.load("", plan, flow, settle)]

    @property
    def at_work(self) -> str | None:
        """No rows of it are those of a table."""
        return None

    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        return None

    def rows(self) -> object:
        """The capsule of an Arrow C stream with the result."""
        return gathered_rows(self._connection)

    def _failure(self, error: duckdb.Error) -> HeadraceError:
        import duckdb

        if self._is_cancelled() or isinstance(error, duckdb.InterruptException):
            return CancelledError("cancelled; this task loaded nothing")
        name, text = self._plan.source.name, self._shown(short_message(error))
        if isinstance(error, duckdb.OutOfMemoryException):
            what = (
                f"the query of transform `{name}` needs more memory, or more room for what it puts aside, than it has"
            )
            return MemoryLimitError(what, found=text, hint="Set a larger `memory` in the package.")
        return SourceError(
            f"the query of transform `{name}` failed; nothing was loaded",
            found=text,
            hint="A query over all rows fails as a whole: mend it, or let a query before it leave such rows out.",
        )
