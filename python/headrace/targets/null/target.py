"""`null:`: rows are parsed, converted, aggregated per column, accounted for and discarded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from headrace.errors import HeadraceError, InternalError, TargetError
from headrace.planning import Capabilities, CatalogTable, DataFlowPlan, QueryColumn
from headrace.targets.base import (
    ClosedBehind,
    DestinationWatcher,
    FinishedTask,
    Flow,
    Inspection,
    LoadedTable,
    LoadTimes,
    LostRun,
    Replay,
    RunRecord,
    Settle,
    TableAggregates,
    TaskProgress,
    WithoutLookupRows,
)
from headrace.targets.builds import QueryDivision, QueryParts
from headrace.targets.group import GroupTransaction
from headrace.targets.null.capabilities import NULL_CAPABILITIES
from headrace.targets.null.group import NullGroup
from headrace.targets.partition_exchange import ExchangedPartition, Notes, PartitionExchange, not_partitioned
from headrace.targets.row_search import RowSearch
from headrace.targets.sql import Command, SqlSessions


class NullTarget(WithoutLookupRows, ClosedBehind):
    """A `Target` without a destination: the flow's own null sink does the work."""

    capabilities: Capabilities = NULL_CAPABILITIES
    default_schema: str | None = None
    engine_threads: int = 0
    notes: Sequence[str] = ()

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        return None

    def unfinished_runs(self, package: str) -> list[LostRun]:
        return []

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        return ()

    def abandon_runs(self, runs: Sequence[LostRun]) -> None:
        return None

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        return []

    def resume_run(self, record: RunRecord) -> None:
        return None

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        return TaskProgress()

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        return None

    def sql_sessions(self) -> SqlSessions:
        raise TargetError("a connection of type null executes no SQL", hint="Choose another connection.")

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        return None

    def begin_anew(self, run_id: str, plan: DataFlowPlan) -> None:
        """A task is never committed in parts."""

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        return None

    def replays(self, of_run: str, task: str) -> list[Replay]:
        return []

    def replaced_since(self, run_id: str, task: str, table: LoadedTable) -> str | None:
        return None

    def unlisted_keys(
        self, schema: str | None, table: str, keys: Sequence[str], values: Sequence[str]
    ) -> Sequence[str] | None:
        return None

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        return frozenset()

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        return {"kind": "null"}

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        started = time.monotonic()
        flow.start()
        result = settle(None)
        rows = sum(int(item["out"]) for item in result["slices"])
        return LoadTimes(0.0, time.monotonic() - started, 0.0, rows)

    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        return None

    def transaction(
        self, run_id: str, task: str, plans: Sequence[DataFlowPlan], is_cancelled: Callable[[], bool]
    ) -> AbstractContextManager[GroupTransaction]:
        if not all(plan.flow for plan in plans):
            raise TargetError("a connection of type null has no transactions", hint="Choose another connection.")
        return nullcontext(NullGroup())

    def switch_partition(
        self, run_id: str, exchange: PartitionExchange, notes: Notes, is_cancelled: Callable[[], bool]
    ) -> ExchangedPartition:
        raise not_partitioned(
            exchange.table.name,
            "a connection that stores nothing",
            "a connection of type duckdb or postgres",
            "Use another connection, or leave the task out: `--skip`.",
        )

    def describe_query(self, query: Command, task: str, is_cancelled: Callable[[], bool]) -> Sequence[QueryColumn]:
        raise TargetError("a connection of type null executes no SQL", hint="Choose another connection.")

    def divide_query(
        self,
        query: Command,
        division: QueryDivision,
        columns: Sequence[QueryColumn],
        task: str,
        is_cancelled: Callable[[], bool],
    ) -> QueryParts:
        return QueryParts((query,))

    def build(self, run_id: str, plan: DataFlowPlan, parts: QueryParts, is_cancelled: Callable[[], bool]) -> LoadTimes:
        raise TargetError("a connection of type null executes no SQL", hint="Choose another connection.")

    def row_search(self, plan: DataFlowPlan, error: HeadraceError) -> RowSearch | None:
        return None

    def column_aggregates(self, plan: DataFlowPlan) -> TableAggregates:
        raise InternalError("a target that stores nothing was asked for its rows")

    def inspect(self, partitions: int) -> Inspection:
        return Inspection({"stores": "nothing: rows are parsed, converted, aggregated and discarded"})

    def recover(self) -> None:
        """Nothing can have broken."""

    def release(self) -> None:
        """Nobody else could want it."""

    def take_back(self, record: RunRecord) -> None:
        """It was never away."""

    def interrupt(self) -> None:
        return None

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        return None

    def close(self) -> None:
        return None
