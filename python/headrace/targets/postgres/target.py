"""The PostgreSQL destination: rows travel over connections of the streams' own, everything else over the control
connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from headrace.errors import HeadraceError, InternalError, LedgerError, TargetBusyError, TargetError
from headrace.model import (
    DatabaseQuery,
    DatabaseSource,
    LookupColumn,
    LookupTable,
    PostgresConnection,
    TableSource,
)
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
)
from headrace.targets.builds import QueryDivision, QueryParts
from headrace.targets.group import GroupTransaction
from headrace.targets.partition_exchange import ExchangedPartition, Notes, PartitionExchange
from headrace.targets.postgres.aggregates import read_aggregates
from headrace.targets.postgres.build import BuildLoad, describe_query
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from headrace.targets.postgres.catalog import find_relation, names_in_schema, read_table
from headrace.targets.postgres.connection import (
    Connection,
    ConnectionSpec,
    one_value,
    prepare_session,
    server_major,
    session_settings,
    sql,
    texts,
)
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.dividing import divide
from headrace.targets.postgres.exchange import Exchange, NamedExchange
from headrace.targets.postgres.failures import explained, reading_failure
from headrace.targets.postgres.group import group_transaction, refuse_alone
from headrace.targets.postgres.hidden_tables import planned_units
from headrace.targets.postgres.inspection import inspect_server
from headrace.targets.postgres.key_equality import unlisted_keys
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.load import TableLoad
from headrace.targets.postgres.locks import lock_holder, table_lock, try_lock
from headrace.targets.postgres.lookup_rows import LookupConnection, lookup_rows
from headrace.targets.postgres.lookups import lookup_query, lookup_table
from headrace.targets.postgres.names import TableName, literal, run_lock_key, session_name
from headrace.targets.postgres.replays import ReplayLedger
from headrace.targets.postgres.requirements import notes_of, require_server, require_session
from headrace.targets.postgres.row_search import row_search
from headrace.targets.postgres.sessions import Connect, Sessions
from headrace.targets.postgres.sql_sessions import SQL_SETTINGS, PostgresSqlSessions, SqlConnection
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.postgres.sweep import (
    drop_committed,
    drop_earlier,
    end_writers,
    sweep_runs,
    take_over,
    unfinished_runs,
)
from headrace.targets.postgres.watcher import FEW_SESSIONS, WATCH_SETTINGS, WATCH_TIMEOUTS, SessionWatcher, Unwatched
from headrace.targets.row_search import RowSearch
from headrace.targets.sql import Command, SqlSessions

MINIMUM_SERVER_VERSION: Final = 15
# A session that was cut off is still there for a moment.
_TAKE_RUN_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
# A server that restarts in the moment of the run's end is waited for so long.
_RESTART_SECONDS: Final = 3.0

# Sessions of the server that a load does not take for its writers.
_SESSIONS_OF_OTHERS: Final = 20
# The one that watches, and those of statements beside the load. With less left over nobody watches.
_SESSIONS_BESIDE_WRITERS: Final = 4


class PostgresTarget(ClosedBehind):
    """A `Target`. Nothing is created before `begin_run`: planning leaves no trace."""

    engine_threads: int = 0

    def __init__(self, model: PostgresConnection, options: OpenOptions, connect: Connect) -> None:
        self._model = model
        self._options = options
        self._sessions = Sessions(model, connect)
        self._run_id: str | None = None
        self._settings: dict[str, str] = {}
        self._ledger: Ledger | None = None
        self._staging: dict[str, TableStaging] = {}
        self._is_unwatched_told = False
        # How the sessions log in that do the work of a load, besides its writers.
        self._session_spec: ConnectionSpec = {}
        self._control = Control(self._open_session)
        self.default_schema = one_value(self._control, "SELECT pg_catalog.current_schema()")
        minimal = one_value(self._control, "SHOW wal_level") == "minimal"
        writers = int(one_value(self._control, sql("sessions")) or 0) - _SESSIONS_OF_OTHERS
        self.capabilities: Capabilities = replace(
            POSTGRES_CAPABILITIES,
            ledger=model.ledger_schema is not None,
            skips_log=minimal,
            tablespaces=texts(self._control, sql("tablespaces")),
            shared_writers=max(1, min(writers, POSTGRES_CAPABILITIES.shared_writers)),
        )
        self.notes: Sequence[str] = notes_of(self._control, model)

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        name = self._name(schema, table)
        try:
            return read_table(self._control, name)
        except HeadraceError as error:
            raise explained(error, f"looking at table {self._model.name}.{name}") from error

    def lookup_table(self, schema: str | None, table: str) -> LookupTable | None:
        name = self._name(schema, table)
        try:
            with self._control.cancellable(self._options.is_cancelled):
                return lookup_table(self._control, name)
        except HeadraceError as error:
            raise reading_failure(error, f"looking at table {self._model.name}.{name}") from error

    def lookup_query(self, query: DatabaseQuery) -> LookupTable:
        return lookup_query(self._connect_for_lookup(), query, self._options.is_cancelled)

    def lookup_rows(
        self, source: DatabaseSource, columns: Sequence[LookupColumn], sessions: int = 1
    ) -> AbstractContextManager[RowStream]:
        table = self._name(source.schema, source.table) if isinstance(source, TableSource) else None
        return lookup_rows(self._connect_for_lookup(), source, table, columns, sessions)

    def _connect_for_lookup(self) -> Callable[[], LookupConnection]:
        # What the core connects has all that lookups use.
        return cast(Callable[[], LookupConnection], self._connect_for_sql("lookup"))

    def unlisted_keys(
        self, schema: str | None, table: str, keys: Sequence[str], values: Sequence[str]
    ) -> Sequence[str] | None:
        name = self._name(schema, table)
        try:
            with self._control.cancellable(self._options.is_cancelled):
                return unlisted_keys(self._control, name, keys, values)
        except HeadraceError as error:
            raise explained(error, f"comparing keys of table {self._model.name}.{name}") from error

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        return names_in_schema(self._control, schema or self.default_schema or "")

    def unfinished_runs(self, package: str) -> list[LostRun]:
        schema = self._model.ledger_schema
        return [] if schema is None else unfinished_runs(self._control, Ledger(self._control, schema), package)

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        schema = self._model.ledger_schema
        return () if schema is None else Ledger(self._control, schema).appended_tables(run_id)

    def abandon_runs(self, runs: Sequence[LostRun]) -> None:
        if self._ledger is not None:
            self._ledger.abandon_runs([run.run_id for run in runs])

    def resume_run(self, record: RunRecord) -> None:
        self._take_run(self._control, record.run_id)
        self._run_id = record.run_id
        if self._model.ledger_schema is None:
            raise LedgerError(
                f"run {record.run_id} cannot be resumed: connection {self._model.name} says `ledger: off`",
                hint="Delete the rows that the run has appended, if it has; then start a new one: `headrace run`.",
            )
        ledger = Ledger(self._control, self._model.ledger_schema)
        take_over(self._control, record.run_id, lambda: ledger.resume_run(record))
        end_writers(self._control, record.run_id)
        self._ledger = ledger

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        return TaskProgress() if self._ledger is None else self._ledger.task_progress(run_id, task)

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        self._take_run(self._control, record.run_id)
        self._run_id = record.run_id
        if self._model.ledger_schema is None:
            return []
        self._ledger = Ledger(self._control, self._model.ledger_schema)
        self._ledger.begin_run(record)
        return sweep_runs(self._control, self._ledger, record.run_id)

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        return None if self._ledger is None else self._ledger.finished_task(run_id, task)

    def sql_sessions(self) -> SqlSessions:
        return self._new_sql_sessions()

    def _new_sql_sessions(self) -> PostgresSqlSessions:
        if self._run_id is None:
            raise InternalError("SQL of a task is asked for before the run has begun")
        attempt = 1 if self._ledger is None else self._ledger.attempt
        schema = self._model.ledger_schema
        # What the core connects has all that these sessions use.
        connect = self._connect_for_sql("sql")
        return PostgresSqlSessions(cast(Callable[[], SqlConnection], connect), self._run_id, schema, attempt)

    def _connect_for_sql(self, task: str) -> Callable[[], Connection]:
        """Opens a session in which texts and times mean what they mean in all SQL of tasks."""
        name = session_name(self._run_id or "", task)
        spec = self._sessions.spec(name, {**self._settings, **SQL_SETTINGS})
        return partial(self._sessions.connect, {**spec, "application_name": name})

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        if self._ledger is not None:
            name = self._name(plan.schema, plan.table)
            relation = find_relation(self._control, name)
            oid = None if relation is None else relation.oid
            units = planned_units(run_id, plan, self._hidden_schema(plan), oid)
            self._ledger.record_slices(run_id, plan, name, units)

    def begin_anew(self, run_id: str, plan: DataFlowPlan) -> None:
        try:
            hidden, name = self._hidden_schema(plan), self._name(plan.schema, plan.table)
            drop_committed(self._control, self._ledger, hidden, run_id, name)
        except HeadraceError as error:
            raise explained(error, f"preparing table {self._shown(plan)}") from error

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        replays = self._replays()
        return None if replays is None else replays.loaded_table(run_id, task)

    def replays(self, of_run: str, task: str) -> list[Replay]:
        replays = self._replays()
        return [] if replays is None else replays.replays(of_run, task)

    def replaced_since(self, run_id: str, task: str, table: LoadedTable) -> str | None:
        replays = self._replays()
        schema = table.schema or self.default_schema or ""
        return None if replays is None else replays.replaced_since(run_id, task, schema, table.table)

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        try:
            before = self._oid(plan)
            while True:
                try:
                    return self._sink_spec(run_id, plan)
                except TargetError:
                    # Another run may have put its table in the place of the one that was just being looked at.
                    present = self._oid(plan)
                    if present == before:
                        raise
                    before = present
        except HeadraceError as error:
            raise explained(error, f"preparing table {self._shown(plan)}") from error

    def _oid(self, plan: DataFlowPlan) -> str | None:
        table = TableName(plan.schema or "", plan.table)
        return one_value(self._control, "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid", (table.sql,))

    def _sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        staging = TableStaging(self._control, run_id, plan, self._hidden_schema(plan))
        staging.check()
        connection = self._sessions.spec(session_name(run_id, plan.task), self._settings)
        # The ways of a flow are loaded together; nobody asks for any other load again.
        others = {task: own for task, own in self._staging.items() if plan.flow and task.startswith(f"{plan.flow}/")}
        self._staging = {**others, plan.task: staging}
        self._session_spec = {**connection, "application_name": session_name(run_id, plan.task)}
        if self._ledger is None:
            return staging.sink_spec(connection, None, {})
        committed = self._ledger.committed_units(run_id, plan.task)
        return staging.sink_spec(connection, self._ledger.commit_statement(run_id, plan.task), committed)

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        return self._new_load(run_id, plan).run(flow, settle)

    def _new_load(self, run_id: str, plan: DataFlowPlan) -> TableLoad:
        staging = self._staging.get(plan.task)
        if staging is None:
            raise InternalError(f"task {plan.task} is loaded before its sink was made")
        session_spec = self._session_spec
        return TableLoad(
            self._control,
            self._ledger,
            run_id,
            plan,
            staging,
            lambda: self._sessions.connect(session_spec),
            self._shown(plan),
            self._model.lock_timeout_seconds,
            self._options.notice,
            self._options.is_cancelled,
        )

    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        try:
            free = int(one_value(self._control, sql("free_sessions")) or 0)
        except HeadraceError as error:  # the load will say it
            return Unwatched(error.what)
        if free < sum(plan.connections for plan in (*plans, *others)) + _SESSIONS_BESIDE_WRITERS:
            self._tell_unwatched(FEW_SESSIONS.format(free))
            return Unwatched(FEW_SESSIONS.format(free))
        spec = self._sessions.spec(session_name(run_id, "watch"), {**self._settings, **WATCH_SETTINGS})
        connect = partial(self._sessions.connect, {**spec, **WATCH_TIMEOUTS})
        writers = [f"{session_name(run_id, plan.task)} w" for plan in plans]
        return SessionWatcher(connect, writers, self._tell_unwatched)

    def _tell_unwatched(self, why: str) -> None:
        """Once for the run, whatever number of flows it has."""
        if not self._is_unwatched_told:
            self._is_unwatched_told = True
            self._options.notice(f"what the server of {self._model.name} does is not looked at: {why}")

    def transaction(
        self, run_id: str, task: str, plans: Sequence[DataFlowPlan], is_cancelled: Callable[[], bool]
    ) -> AbstractContextManager[GroupTransaction]:
        refuse_alone(plans, self._shown)
        timeout, notice = self._model.lock_timeout_seconds, self._options.notice
        # In one order, so that two runs do not wait for each other.
        tables = sorted({self._name(plan.schema, plan.table) for plan in plans}, key=str)
        locks = [table_lock(self._control, table, timeout, notice, is_cancelled) for table in tables]
        sessions = self._new_sql_sessions()
        return group_transaction(
            self._control, sessions, task, locks, lambda plan: self._new_load(run_id, plan), is_cancelled
        )

    def switch_partition(
        self, run_id: str, exchange: PartitionExchange, notes: Notes, is_cancelled: Callable[[], bool]
    ) -> ExchangedPartition:
        table = self._name(exchange.table.schema, exchange.table.name)
        comes, goes = exchange.incoming, exchange.outgoing
        named = NamedExchange(
            exchange.task,
            table,
            TableName(table.schema, exchange.partition),
            None if comes is None else self._name(comes.schema, comes.name),
            None if goes is None else TableName(table.schema, goes),
            exchange.rule,
        )
        timeout, notice = self._model.lock_timeout_seconds, self._options.notice
        return Exchange(self._control, self._ledger, run_id, named, notes, timeout, notice, is_cancelled).run()

    def describe_query(self, query: Command, task: str, is_cancelled: Callable[[], bool]) -> Sequence[QueryColumn]:
        schema = self._model.ledger_schema or self.default_schema or ""
        return describe_query(self._connect_for_sql(task), query, schema, is_cancelled)

    def divide_query(
        self,
        query: Command,
        division: QueryDivision,
        columns: Sequence[QueryColumn],
        task: str,
        is_cancelled: Callable[[], bool],
    ) -> QueryParts:
        what = f"task {task}"
        return divide(self._connect_for_sql(task), query, division, columns, what, is_cancelled)

    def build(self, run_id: str, plan: DataFlowPlan, parts: QueryParts, is_cancelled: Callable[[], bool]) -> LoadTimes:
        shown, hidden = self._shown(plan), self._hidden_schema(plan)
        try:
            drop_earlier(self._control, self._ledger, hidden, run_id, self._name(plan.schema, plan.table))
            staging = TableStaging(self._control, run_id, plan, hidden)
            staging.check()
        except HeadraceError as error:
            raise explained(error, f"preparing table {shown}") from error
        timeout, notice = self._model.lock_timeout_seconds, self._options.notice
        load = partial(BuildLoad, self._control, self._ledger, run_id, plan, staging, self._connect_for_sql(plan.task))
        return load(shown, timeout, notice, is_cancelled, parts).built()

    def row_search(self, plan: DataFlowPlan, error: HeadraceError) -> RowSearch | None:
        staging = self._staging.get(plan.task)
        return None if staging is None else row_search(self._control, plan, staging, error)

    def column_aggregates(self, plan: DataFlowPlan) -> TableAggregates:
        name = self._name(plan.schema, plan.table)
        try:
            return read_aggregates(self._control, name, plan)
        except HeadraceError as error:
            raise explained(error, f"reading table {self._model.name}.{name}") from error

    def inspect(self, partitions: int) -> Inspection:
        try:
            return inspect_server(self._control, self._model, partitions)
        except HeadraceError as error:
            raise explained(error, f"looking at the server of {self._model.name}") from error

    def recover(self) -> None:
        if self._control.state != "open":
            self._control.reopen()

    def release(self) -> None:
        """A server has room for everybody."""

    def take_back(self, record: RunRecord) -> None:
        """It was never away."""

    def interrupt(self) -> None:
        self._control.cancel()

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        if self._ledger is None:
            return
        try:
            self._ledger.end_run(run_id, status, error)
        except HeadraceError:
            # All rows are there. Without a word in the ledger nobody could append again, and nothing is left to resume.
            if status != "success" or self._control.state != "lost":
                raise
            self._control.reopen(_RESTART_SECONDS)
            self._ledger.end_run(run_id, status, error)

    def close(self) -> None:
        self._control.close()

    def _open_session(self) -> Connection:
        """A control connection, which holds the lock of the run as soon as there is one."""
        try:
            connection = self._sessions.first()
        except HeadraceError as error:
            raise explained(error, f"connecting to {self._model.name}") from error
        try:
            if server_major(connection) < MINIMUM_SERVER_VERSION:
                raise TargetError(
                    f"the server of {self._model.name} is too old",
                    found=f"PostgreSQL {connection.parameter('server_version')}",
                    expected=f"PostgreSQL {MINIMUM_SERVER_VERSION} or later",
                )
            self._settings = session_settings(connection, self._model.lock_timeout_seconds)
            prepare_session(connection, self._settings)
            if self._run_id is not None:
                self._take_run(connection, self._run_id)
        except BaseException:
            connection.close()
            raise
        return connection

    def _take_run(self, connection: Connection, run_id: str) -> None:
        """Says to everybody that the run lives, as long as the session does."""
        require_server(connection, self._model.name)
        connection.execute(f"SET application_name = {literal(session_name(run_id, 'control'))}")
        deadline = time.monotonic() + _TAKE_RUN_SECONDS
        while not try_lock(connection, run_lock_key(run_id)):
            if time.monotonic() >= deadline:
                raise TargetBusyError(
                    f"run {run_id} goes on in another session",
                    found=lock_holder(connection, run_lock_key(run_id)),
                    hint="Wait for that one to end. If it is this very run: name a database in all connections of the "
                    "package with the same host and user.",
                )
            time.sleep(_POLL_SECONDS)
        require_session(connection, run_lock_key(run_id), self._model.name)

    def _replays(self) -> ReplayLedger | None:
        schema = self._model.ledger_schema
        return None if schema is None else ReplayLedger(self._control, schema)

    def _shown(self, plan: DataFlowPlan) -> str:
        """The table as plans show it: with its schema if that is not the default."""
        schema = None if plan.schema == self.default_schema else plan.schema
        return ".".join(part for part in (plan.connection, schema, plan.table) if part)

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
