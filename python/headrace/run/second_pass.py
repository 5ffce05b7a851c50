"""Reads the source of a plan once more behind a load that has failed: SQL over its rows, and places of single rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb

from headrace import core
from headrace.errors import CancelledError, InternalError
from headrace.executors import Cancel, sql_instances
from headrace.planning import DataFlowPlan
from headrace.run.tasks import unique_name
from headrace.run.waiting import on_worker

_ROWS: Final = "headrace_rows"
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class SourceRows:
    """How SQL calls the rows of a second pass. `sql`: what to select from; `position`: the column
    that numbers them, ascending in file order.
    """

    sql: str
    position: str


class SecondPass:
    """Reads the source as the load did, all slices of it, also those that an earlier attempt has committed, and lets
    its rows pass the `lookups` of the plan. With a `place` it gives only the rows that the plan's routing sends there.

    Its methods raise CancelledError once `cancel` is set, what reading the source raises (it may have changed), and
    duckdb.Error.
    """

    def __init__(
        self,
        plan: DataFlowPlan,
        lookups: Sequence[core.Lookup],
        place: int | None,
        engine: duckdb.DuckDBPyConnection,
        rejects_folder: str,
        cancel: Cancel,
    ) -> None:
        self._plan = replace(plan, committed={}, keep_rejects="examples")
        self._lookups = lookups
        self._engine = engine
        self._rejects_folder = rejects_folder
        self._cancel = cancel
        self._slices: list[dict[str, Any]] = []
        names = {name.casefold() for name in plan.source_columns}
        names.update(column.target.casefold() for column in plan.columns)
        self._extras = {"position": unique_name("position", names, "_")}
        rows = _ROWS
        if place is not None:
            self._extras["place_column"] = unique_name("place", names, "_")
            rows = f"(SELECT * FROM {_ROWS} WHERE {self._extras['place_column']} = {place})"
        self.rows = SourceRows(rows, self._extras["position"])

    def query(self, sql: str, sources: Sequence[str]) -> list[tuple[Any, ...]]:
        """All rows of a statement that reads `rows`, which have the columns `sources`, once."""
        sink = {"kind": "arrow", "columns": list(dict.fromkeys(sources)), **self._extras}
        with self._flow(sink) as flow:
            self._engine.register(_ROWS, flow.arrow_stream())
            try:
                flow.start()
                rows = on_worker(
                    lambda: self._engine.execute(sql).fetchall(), lambda: self._stop_if_cancelled(flow, self._engine)
                )
            finally:
                self._engine.unregister(_ROWS)
            # The statement may have stopped early: what it joins the rows with can be an empty table.
            flow.cancel("the statement has ended")
            self._slices = max(self._slices, self._joined(flow)["slices"], key=len)
            return rows

    def places(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """File, row and byte of rows that `query` has found."""
        # The core asks for the rows of each slice; what is counted by column it does not read back.
        ended = [{**item, "ignored": {}, "replaced": {}, "stray_qualifiers": {}} for item in self._slices]
        with self._flow({"kind": "locate", "rows": list(positions), "ended": ended}) as flow:
            flow.start()
            places: list[dict[str, Any] | None] = self._ended(flow)["sink"]["places"]
        found = [place for place in places if place is not None]
        if len(found) < len(positions):
            raise InternalError("a row that was found has no place in its file")
        return found

    @contextmanager
    def _flow(self, sink: dict[str, Any]) -> Iterator[core.Flow]:
        """Nothing of the flow runs on behind this."""
        if self._cancel.is_set():
            raise CancelledError("cancelled before the source was read")
        flow = core.Flow(self._plan.flow_spec(self._rejects_folder, sink), self._lookups)
        with sql_instances(self._plan, flow):
            try:
                yield flow
            finally:
                flow.cancel("the second pass has ended")
                while flow.started and flow.join(_POLL_SECONDS) is None:
                    pass

    def _ended(self, flow: core.Flow) -> dict[str, Any]:
        result = self._joined(flow)
        core.raise_for_error(result)
        return result

    def _joined(self, flow: core.Flow) -> dict[str, Any]:
        while (result := flow.join(_POLL_SECONDS)) is None:
            self._stop_if_cancelled(flow)
        return result

    def _stop_if_cancelled(self, flow: core.Flow, engine: duckdb.DuckDBPyConnection | None = None) -> None:
        if self._cancel.is_set():
            flow.cancel("cancelled by the user")
            if engine is not None:
                engine.interrupt()
