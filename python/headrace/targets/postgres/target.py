"""The PostgreSQL destination: rows travel over connections of the streams' own, everything else over the control
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from headrace.errors import HeadraceError, InternalError, LedgerError, TargetBusyError, TargetError
from headrace.model import PostgresConnection
from headrace.planning import Capabilities, CatalogTable, DataFlowPlan
from headrace.targets.base import (
    Flow,
    LoadTimes,
    LostRun,
    OpenOptions,
    RunRecord,
    Settle,
    TableAggregates,
    TaskProgress,
)
from headrace.targets.postgres.aggregates import read_aggregates
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from headrace.targets.postgres.catalog import names_in_schema, read_table
from headrace.targets.postgres.connection import (
    Connection,
    ConnectionSpec,
    one_value,
    prepare_session,
    server_major,
    startup_options,
)
from headrace.targets.postgres.failures import explained
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.load import TableLoad
from headrace.targets.postgres.locks import try_lock, unlock
from headrace.targets.postgres.names import TableName, literal, run_lock_key, session_name
from headrace.targets.postgres.staging import TableStaging, staging_by_slice
from headrace.targets.postgres.sweep import end_sessions, sweep_runs

MINIMUM_SERVER_VERSION = 15
Connect = Callable[[ConnectionSpec], Connection]


class PostgresTarget:
    """A `Target`. Nothing is created before `begin_run`: planning leaves no trace."""

    engine_threads: int = 0

    def __init__(self, model: PostgresConnection, options: OpenOptions, connect: Connect) -> None:
        self._model = model
        self._options = options
        self._connect = connect
        self._what = f"connecting to {model.name}"
        self._connection = self._open("headrace")
        self._ledger: Ledger | None = None
        self._plans: dict[str, TableStaging] = {}
        self.default_schema = one_value(self._connection, "SELECT current_schema()")
        minimal = one_value(self._connection, "SHOW wal_level") == "minimal"
        self.capabilities: Capabilities = replace(POSTGRES_CAPABILITIES, skips_log=minimal)
        self.notes: Sequence[str] = self._notes()

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        name = self._name(schema, table)
        try:
            return read_table(self._connection, name)
        except HeadraceError as error:
            raise explained(error, f"looking at table {self._model.name}.{name}") from error

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        return names_in_schema(self._connection, schema or self.default_schema or "")

    def unfinished_run(self, package: str) -> LostRun | None:
        if self._model.ledger_schema is None:
            return None
        ledger = Ledger(self._connection, self._model.ledger_schema)
        last = ledger.unfinished_run(package)
        if last is None:
            return None
        run_id, _ = last
        if not try_lock(self._connection, run_lock_key(run_id)):
            return None  # it goes on
        unlock(self._connection, run_lock_key(run_id))
        return LostRun(run_id, tuple(table.rpartition(".")[2] for table in ledger.visible_tables(run_id)))

    def resume_run(self, record: RunRecord) -> None:
        self._begin_session(record)
        if self._model.ledger_schema is None:
            raise LedgerError(
                f"run {record.run_id} cannot be resumed: connection {self._model.name} says `ledger: off`",
                hint="Start a new run: `headrace run`.",
            )
        end_sessions(self._connection, record.run_id)
        self._ledger = Ledger(self._connection, self._model.ledger_schema)
        self._ledger.resume_run(record)

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        return TaskProgress() if self._ledger is None else self._ledger.task_progress(run_id, task)

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        self._begin_session(record)
        if self._model.ledger_schema is None:
            return []
        self._ledger = Ledger(self._connection, self._model.ledger_schema)
        self._ledger.begin_run(record)
        return sweep_runs(self._connection, self._ledger, record.run_id)

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        if self._ledger is not None:
            staging = staging_by_slice(run_id, plan, self._hidden_schema(plan))
            self._ledger.record_slices(run_id, plan, self._name(plan.schema, plan.table), staging)

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        try:
            staging = TableStaging(self._connection, run_id, plan, self._hidden_schema(plan))
        except HeadraceError as error:
            raise explained(error, f"preparing table {plan.connection}.{plan.table}") from error
        self._plans = {plan.task: staging}
        connection = dict(self._model.to_core(session_name(run_id, plan.task)))
        connection["options"] = startup_options(connection.get("options"), server_major(self._connection))
        commit_slices = None if self._ledger is None else self._ledger.commit_statement(run_id, plan.task)
        return staging.sink_spec(connection, commit_slices)

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        staging = self._plans.get(plan.task)
        if staging is None:
            raise InternalError(f"task {plan.task} is loaded before its sink was made")
        load = TableLoad(
            self._connection,
            self._ledger,
            run_id,
            plan,
            staging,
            self._hidden_schema(plan),
            self._model.lock_timeout_seconds,
        )
        return load.run(flow, settle, self._options.notice, self._options.is_cancelled)

    def column_aggregates(self, plan: DataFlowPlan) -> TableAggregates:
        name = self._name(plan.schema, plan.table)
        try:
            return read_aggregates(self._connection, name, plan)
        except HeadraceError as error:
            raise explained(error, f"reading table {self._model.name}.{name}") from error

    def interrupt(self) -> None:
        self._connection.cancel()

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        if self._ledger is not None:
            self._ledger.end_run(run_id, status, error)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin_session(self, record: RunRecord) -> None:
        """Names the control session after the run, and takes the lock that says that the run is alive."""
        self._connection.execute(f"SET application_name = {literal(session_name(record.run_id, 'control'))}")
        if not try_lock(self._connection, run_lock_key(record.run_id)):
            raise TargetBusyError(
                f"run {record.run_id} is going on in another process",
                hint="Wait for its end. A process that died a moment ago may take some seconds to vanish.",
            )

    def _open(self, application_name: str) -> Connection:
        try:
            connection = self._connect(self._model.to_core(application_name))
        except HeadraceError as error:
            raise explained(error, self._what) from error
        try:
            version = server_major(connection)
            if version < MINIMUM_SERVER_VERSION:
                raise TargetError(
                    f"the server of {self._model.name} is too old",
                    found=f"PostgreSQL {connection.parameter('server_version')}",
                    expected=f"PostgreSQL {MINIMUM_SERVER_VERSION} or later",
                )
            prepare_session(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _notes(self) -> tuple[str, ...]:
        if self._model.ledger_schema is None:
            return (f"{self._model.name} has no ledger: a run that dies can be run again, but not resumed",)
        return ()

    def _hidden_schema(self, plan: DataFlowPlan) -> str:
        """Where hidden tables are: beside the ledger, or without one beside the target."""
        return self._model.ledger_schema or plan.schema or ""

    def _name(self, schema: str | None, table: str) -> TableName:
        found = schema or self.default_schema
        if found is None:
            raise TargetError(
                f"there is no schema for table {table}",
                found="no schema of the user's search_path exists",
                hint="Write the table with its schema: `table: SCHEMA.TABLE`.",
            )
        if found == self._model.ledger_schema:
            raise TargetError(
                f"schema `{found}` belongs to the ledger and takes no tables", hint="Choose another schema."
            )
        return TableName(found, table)
