"""Runs the query over all rows of a data flow: a flow of its own brings them into an instance of DuckDB, and what comes
out is the source of the flow behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import CancelledError, HeadraceError, InternalError, MemoryLimitError, SourceError
from headrace.executors.local import FlowOutcome
from headrace.executors.sql_instances import Shown, short_message
from headrace.model import GatheredQuery, gather_rows, gathered_rows
from headrace.planning import DataFlowPlan, GatherPlan
from headrace.targets import DestinationWatcher, Flow, LoadTimes, Settle
from headrace.targets.sql import interrupted

if TYPE_CHECKING:
    import duckdb


_NO_ROWS: Final = {"rows": 0, "matched": 0, "defaulted": 0, "rejected": 0, "null_keys": 0, "filtered": 0}


class Gathering:
    """The query as the place where rows go. Nothing of it outlives the connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        plan: GatherPlan,
        is_cancelled: Callable[[], bool],
        shown: Shown,
    ) -> None:
        """`shown`: takes secrets out of DuckDB's messages."""
        self._connection = connection
        self._plan = plan
        self._is_cancelled = is_cancelled
        self._shown = shown

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
            with interrupted(self._is_cancelled, self._connection.interrupt):
                rows = gather_rows(self._connection, self._query, flow.arrow_stream())
        except duckdb.Error as error:
            raise self._failure(error) from error
        settle(None)
        return LoadTimes(0.0, time.monotonic() - started, 0.0, rows)

    def watcher(self, run_id: str, plan: DataFlowPlan) -> DestinationWatcher | None:
        return None

    def rows(self) -> object:
        """The capsule of an Arrow C stream with the result."""
        return gathered_rows(self._connection)

    def _failure(self, error: duckdb.Error) -> HeadraceError:
        import duckdb

        if self._is_cancelled():
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


def gathered_outcome(plan: DataFlowPlan, before: FlowOutcome, behind: FlowOutcome | None) -> FlowOutcome:
    """The accounts of both flows of a plan as those of one: slices and rejects of the first, rows that arrived of the
    second. `behind`: None if there was no second one, because the first has failed.
    """
    gather = plan.gather
    if gather is None:
        return before
    if behind is None:
        result = None if before.result is None else _with_counts(before.result, [_NO_ROWS] * (1 + len(plan.transforms)))
        return replace(before, result=result)
    seconds = before.seconds + behind.seconds
    cpu_seconds = before.cpu_seconds + behind.cpu_seconds
    first, second = before.result, behind.result
    if first is None:
        raise InternalError("a flow that has ended well has no result")
    result = (
        first if second is None else _together(gather, first, second, before.times.rows_loaded if before.times else 0)
    )
    return FlowOutcome(
        result,
        behind.times,
        behind.error,
        seconds,
        cpu_seconds,
        (*before.warnings, *behind.warnings),
        (*before.lookups, *behind.lookups),
        before.lookup_seconds + behind.lookup_seconds,
    )


def _together(gather: GatherPlan, first: dict[str, Any], second: dict[str, Any], gathered: int) -> dict[str, Any]:
    """`gathered`: the rows of the query's result."""
    rows_in = sum(int(item["out"]) for item in first["slices"])
    out = sum(int(item["out"]) for item in second["slices"])
    own = {**_NO_ROWS, "rows": rows_in, "matched": gathered}
    counts = [item["transforms"] for item in second["slices"] if item.get("transforms")]
    behind = counts[0] if counts else [_NO_ROWS] * len(second.get("transforms", []))
    told = _with_counts(first, [own, *behind])
    slices = [{**item, "out": 0 if number else out} for number, item in enumerate(told["slices"])]
    name = gather.source.name
    busy = [*first.get("transforms", []), {"name": name, "busy_seconds": 0.0}, *second.get("transforms", [])]
    return {**first, "slices": slices, "sink": second["sink"], "columns": second["columns"], "transforms": busy}


def _with_counts(result: dict[str, Any], counts: list[dict[str, Any]]) -> dict[str, Any]:
    """With those of the query and of what stands behind it, which belong to no slice: they are told with the first."""
    nothing = [_NO_ROWS for _ in counts]
    slices = [
        {**item, "transforms": [*(item.get("transforms") or []), *(nothing if number else counts)]}
        for number, item in enumerate(result["slices"])
    ]
    return {**result, "slices": slices}
