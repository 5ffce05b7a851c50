"""The DuckDB destination: one file, one process, one transaction per table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from headrace.errors import HeadraceError, InternalError, SqlError
from headrace.model import DatabaseQuery, DatabaseSource, LookupColumn, LookupTable
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
    OpenOptions,
    Replay,
    RowStream,
    RunRecord,
    Settle,
    TableAggregates,
    TaskProgress,
    forgotten,
)
from headrace.targets.builds import QueryDivision, QueryParts
from headrace.targets.duckdb.aggregates import read_aggregates
from headrace.targets.duckdb.build import build_table, describe_query
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.duckdb.catalog import (
    missing_schema,
    names_in_schema,
    read_estimated_rows,
    read_table,
    refuse_ledger_schema,
)
from headrace.targets.duckdb.connection import attach_file, close_to_files, connect, engine_threads, restore_settings
from headrace.targets.duckdb.ddl import place_column
from headrace.targets.duckdb.exchange import Exchange
from headrace.targets.duckdb.failures import ledger_failure, path_problem
from headrace.targets.duckdb.group import group_transaction
from headrace.targets.duckdb.inspection import inspect_file
from headrace.targets.duckdb.ledger import Ledger
from headrace.targets.duckdb.load import Rows, Stream, TableLoad
from headrace.targets.duckdb.lookup_rows import described_query, described_table, lookup_rows
from headrace.targets.duckdb.partitions import Partitions, divides, has_several_tables
from headrace.targets.duckdb.replays import ReplayLedger
from headrace.targets.duckdb.row_search import row_search
from headrace.targets.duckdb.sql_sessions import DuckdbSqlSessions
from headrace.targets.duckdb.watcher import FileWatcher
from headrace.targets.duckdb.whole_table import WholeTable
from headrace.targets.group import GroupTransaction
from headrace.targets.partition_exchange import ExchangedPartition, Notes, PartitionExchange
from headrace.targets.row_search import RowSearch
from headrace.targets.sql import Command, SqlSessions


class DuckdbTarget(ClosedBehind):
    """A `Target`. A file that does not exist is created by `begin_run`, not before: planning leaves no trace."""

    capabilities: Capabilities = DUCKDB_CAPABILITIES
    default_schema: str | None = "main"

    def __init__(self, path: Path, lock_timeout_seconds: float, options: OpenOptions) -> None:
        self._path = path
        self._lock_timeout_seconds = lock_timeout_seconds
        self._options = options
        self._engine_bytes = options.engine_bytes
        self.engine_threads: int = engine_threads(options)
        self.notes: Sequence[str] = ()
        problem = path_problem(path)
        if problem is not None:
            raise problem
        self._connection = connect(options)
        self._attached = False
        self._run_id: str | None = None
        self._rows: Rows | None = None  # of the latest load
        try:
            if path.exists():
                self._attach()
            else:
                self.notes = (f"{path} does not exist and will be created",)
        except BaseException:
            self._connection.close()
            raise

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        name = schema or "main"
        refuse_ledger_schema(name)
        if not self._attached:
            if name.casefold() != "main":
                raise missing_schema(name, ["main"])
            return None
        return read_table(self._connection, name, table)

    def lookup_table(self, schema: str | None, table: str) -> LookupTable | None:
        found = self.catalog(schema, table)
        if found is None:
            return None
        return described_table(found, read_estimated_rows(self._connection, schema or "main", table))

    def lookup_query(self, query: DatabaseQuery) -> LookupTable:
        if not self._attached:
            hint = "Make it first, or leave `connection` out if the query reads no tables."
            raise SqlError("there is no database to ask", found=f"{self._path} does not exist", hint=hint)
        with closing(self._connection.cursor()) as cursor:
            return described_query(cursor, self._path, query)

    @contextmanager
    def lookup_rows(
        self, source: DatabaseSource, columns: Sequence[LookupColumn], sessions: int = 1
    ) -> Iterator[RowStream]:
        del sessions
        with (
            closing(self._connection.cursor()) as cursor,
            lookup_rows(cursor, self._path, source, columns) as rows,
        ):
            yield rows

    def unfinished_runs(self, package: str) -> list[LostRun]:
        return self._ledger().unfinished_runs(package) if self._attached else []

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        return self._ledger().appended_tables(run_id) if self._attached else ()

    def abandon_runs(self, runs: Sequence[LostRun]) -> None:
        self._ledger().abandon_runs([run.run_id for run in runs])

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        if not self._attached:
            self._attach()
        self._run_id = record.run_id
        return self._ledger().begin_run(record)

    def resume_run(self, record: RunRecord) -> None:
        if not self._attached:
            self._attach()
        self._run_id = record.run_id
        self._ledger().resume_run(record)

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        return self._ledger().task_progress(run_id, task)

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        return self._ledger().finished_task(run_id, task)

    def sql_sessions(self) -> SqlSessions:
        if self._run_id is None:
            raise InternalError("SQL of a task is asked for before the run has begun")
        return self._sessions(self._run_id)

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        self._ledger().record_slices(run_id, plan)

    def begin_anew(self, run_id: str, plan: DataFlowPlan) -> None:
        """A task is never committed in parts."""

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        return self._replays().loaded_table(run_id, task) if self._attached else None

    def replays(self, of_run: str, task: str) -> list[Replay]:
        return self._replays().replays(of_run, task) if self._attached else []

    def replaced_since(self, run_id: str, task: str, table: LoadedTable) -> str | None:
        return self._replays().replaced_since(run_id, task, table)

    def unlisted_keys(
        self, schema: str | None, table: str, keys: Sequence[str], values: Sequence[str]
    ) -> Sequence[str] | None:
        return None

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        return names_in_schema(self._connection, schema or "main") if self._attached else frozenset()

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        sink = {"kind": "arrow", "columns": [column.source for column in plan.columns]}
        return {**sink, "place_column": place_column(plan)} if has_several_tables(plan) else sink

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        return self._load_by(self._connection, run_id, plan).run(flow, settle)

    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        return FileWatcher(self._path, self._options.spill_folder)

    def transaction(
        self, run_id: str, task: str, plans: Sequence[DataFlowPlan], is_cancelled: Callable[[], bool]
    ) -> AbstractContextManager[GroupTransaction]:
        sessions = self._sessions(run_id)

        def new_load(cursor: duckdb.DuckDBPyConnection, plan: DataFlowPlan, stream: Stream | None) -> TableLoad:
            self._restore()
            return self._load_by(cursor, run_id, plan, stream)

        return group_transaction(sessions, self._path, task, new_load, is_cancelled)

    def _load_by(
        self, connection: duckdb.DuckDBPyConnection, run_id: str, plan: DataFlowPlan, stream: Stream | None = None
    ) -> TableLoad:
        self._limit_memory(min(plan.memory.engine_bytes, self._options.engine_bytes))
        self._rows = Partitions(connection, plan) if divides(plan) else WholeTable(connection, plan)
        ledger, is_cancelled = Ledger(connection, self._path), self._options.is_cancelled
        return TableLoad(connection, self._path, ledger, run_id, plan, self._rows, is_cancelled, stream)

    def switch_partition(
        self, run_id: str, exchange: PartitionExchange, notes: Notes, is_cancelled: Callable[[], bool]
    ) -> ExchangedPartition:
        return Exchange(self._connection, self._path, self._ledger(), run_id, exchange, is_cancelled).run()

    def describe_query(self, query: Command, task: str, is_cancelled: Callable[[], bool]) -> Sequence[QueryColumn]:
        return describe_query(self._sessions(self._run_id or ""), query, task, is_cancelled)

    def divide_query(
        self,
        query: Command,
        division: QueryDivision,
        columns: Sequence[QueryColumn],
        task: str,
        is_cancelled: Callable[[], bool],
    ) -> QueryParts:
        is_written = division.table or division.column or division.parts
        note = ("DuckDB divides a query by itself: `by` and `parts` have no effect",) if is_written else ()
        return QueryParts((query,), note)

    def build(self, run_id: str, plan: DataFlowPlan, parts: QueryParts, is_cancelled: Callable[[], bool]) -> LoadTimes:
        (query,) = parts.commands
        return build_table(self._sessions(run_id), self._path, run_id, plan, query, is_cancelled)

    def row_search(self, plan: DataFlowPlan, error: HeadraceError) -> RowSearch | None:
        return None if self._rows is None else row_search(self._connection, plan, self._rows.filling, error)

    def column_aggregates(self, plan: DataFlowPlan) -> TableAggregates:
        return read_aggregates(self._connection, self._path, plan)

    def inspect(self, partitions: int) -> Inspection:
        return inspect_file(self._connection, self._path)

    def recover(self) -> None:
        """Whatever was stopped has rolled back."""

    def release(self) -> None:
        try:
            self._attached = False
            self._connection.execute("DETACH target")
        except duckdb.Error as error:
            raise ledger_failure(error, "cannot close the database", self._path) from error

    def take_back(self, record: RunRecord) -> None:
        if not self._path.exists():
            raise forgotten(record.run_id)
        if not self._attached:
            self._attach()
        try:
            self._ledger().take_back_run(record)
        except BaseException:
            self.release()
            raise

    def interrupt(self) -> None:
        self._connection.interrupt()

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        self._ledger().end_run(run_id, status, error)

    def close(self) -> None:
        """Writes the checkpoint, if there was a change, and gives the file back."""
        try:
            if self._attached:
                self.release()
        finally:
            self._connection.close()

    def _attach(self) -> None:
        attach_file(self._connection, self._path, self._lock_timeout_seconds, self._options)
        if not self._options.is_trusted:
            close_to_files(self._connection)
        self._attached = True

    def _ledger(self) -> Ledger:
        if not self._attached:
            raise InternalError("the ledger is used before the run has begun")
        return Ledger(self._connection, self._path)

    def _replays(self) -> ReplayLedger:
        return ReplayLedger(self._connection, self._path)

    def _sessions(self, run_id: str) -> DuckdbSqlSessions:
        def prepare() -> None:
            self._limit_memory(self._options.engine_bytes)

        trusted = self._options.is_trusted
        return DuckdbSqlSessions(self._connection, self._path, run_id, prepare, self._restore, is_trusted=trusted)

    def _restore(self) -> None:
        restore_settings(self._connection, self._options)
        self._engine_bytes = self._options.engine_bytes

    def _limit_memory(self, limit_bytes: int) -> None:
        if limit_bytes != self._engine_bytes:
            self._connection.execute(f"SET memory_limit = '{limit_bytes}B'")
            self._engine_bytes = limit_bytes
