"""`build`: fills a table with the rows of a query of the same database, which is switched in."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headrace import units
from headrace.errors import HeadraceError, LedgerError, SqlError
from headrace.executors import FlowOutcome
from headrace.model.load import usable_cpus
from headrace.model.scripts import use_of
from headrace.model.spec_build import BuildSpec
from headrace.model.sql_text import SqlTextError, split_statements
from headrace.planning import Build, DataFlowPlan, FinishedTask, hints_for_builds, plan_build
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.build_partition import partition_of_build
from headrace.run.sql.prepared import PreparedStatement, prepare, read_sql
from headrace.run.sql.wording import placed, redacted
from headrace.run.tasks import earlier_names
from headrace.targets import LoadTimes, QueryDivision, QueryParts, Target, result_of_query

_SHOWN_CHARACTERS: Final = 70
_SPILLED: Final = (
    "the server wrote {} into temporary files meanwhile: if that was this task, a larger work_mem or fewer parts spare "
    "it"
)


class BuildLeaf:
    """A `Leaf`. Exactly once with a ledger: the commit of its rows is found there by a later attempt."""

    def run(self, settings: BuildSpec, context: LeafContext) -> LeafResult:
        """Raises HeadraceError; nothing is visible then."""
        context.cancellation.check(f"task {context.instance}")
        try:
            return _Building(settings, context).run()
        except HeadraceError as error:
            if context.cancellation.is_set():
                raise context.cancellation.error(f"task {context.instance}") from error
            raise redacted(error, context.redact) from error

    def describe(self, settings: BuildSpec) -> Sequence[str]:
        """Table and query."""
        does = {"create": "create", "append": "append to", "replace": "replace the rows of"}[settings.target]
        how = f"{_partitions(settings)}{_division(settings)}"
        first = f"{does} {settings.connection}.{settings.table}{how}, exactly once with a ledger"
        if settings.file is not None:
            return [f"{first}, with the rows of {settings.file}"]
        try:
            lines = [statement.line(_SHOWN_CHARACTERS) for statement in split_statements(settings.select or "")]
        except SqlTextError:
            lines = []
        return [f"{first}, with the rows of:", *lines]


def _partitions(settings: BuildSpec) -> str:
    spec = settings.partition
    if spec is None or spec.column is None:
        return ""
    parts = "" if spec.hash is None or spec.hash.parts is None else f", {spec.hash.parts} parts"
    strategy = "hash" if spec.hash else "list" if spec.list else "range"
    return f", divided by {strategy} ({spec.column}{parts})"


def _division(settings: BuildSpec) -> str:
    if settings.by is None:
        return ""
    by = f"ranges of {settings.by.table}" if settings.by.table is not None else f"the hash of {settings.by.hash}"
    return f" in {'parts' if settings.parts == 'auto' else f'{settings.parts} parts'} by {by}"


class _Building:
    """One try of one task."""

    def __init__(self, settings: BuildSpec, context: LeafContext) -> None:
        self._settings = settings
        self._context = context
        self._connection = context.connection(settings.connection)
        self._target: Target = context.services.target(self._connection)
        schema, _, self._table = settings.table.rpartition(".")
        self._schema = schema or None

    def run(self) -> LeafResult:
        """Builds the table, unless the ledger says that it is built."""
        self._target.recover()
        progress = self._target.task_progress(self._context.run_id, self._context.instance)
        if progress.finished:
            name = self._context.redact(self._table)
            done = FinishedTask(
                self._context.instance,
                self._connection.name,
                name,
                self._settings.target,
                "single",
                progress.slices,
                name,
            )
            self._context.services.built_before(done)
            return self._result(LoadTimes(0, 0, 0, sum(item.loaded for item in done.slices.values())), was_done=True)
        if self._settings.target == "append":
            self._refuse_appended()
        query = self._query()
        plan, parts = self._plan(query)
        for note in plan.notes:
            self._context.notice(note)
        if not progress.recorded:
            self._target.record_slices(self._context.run_id, plan)
        return self._result(self._built(plan, parts, query))

    def _refuse_appended(self) -> None:
        """Raises LedgerError if the task has appended its rows under one of its earlier names in this run."""
        for name in earlier_names(self._context.instance):
            if self._target.task_progress(self._context.run_id, name).finished:
                raise LedgerError(
                    f"task {self._context.instance} has appended rows, and would append them again, because a task "
                    "before it, which had failed, is done anew",
                    hint="Start a new run with --abandon, once the rows are removed.",
                )

    def _query(self) -> PreparedStatement:
        context = self._context
        path = context.task.own_path
        script = read_sql(self._settings, context.package.binder.surroundings.document, path, context.folder)
        use = use_of(context.task.own, path, context.scope, self._connection)
        sessions = context.services.sql_sessions(self._connection)
        (query,) = prepare(script, use, {}, context.scope, sessions)
        return query

    def _plan(self, query: PreparedStatement) -> tuple[DataFlowPlan, QueryParts]:
        context, target = self._context, self._target
        by, parts = self._settings.by, self._settings.parts
        division = QueryDivision(
            None if by is None else by.table,
            None if by is None else by.hash,
            None if parts == "auto" else parts,
            context.package.streams,
        )
        is_cancelled = context.cancellation.is_set
        try:
            columns = target.describe_query(query.command, context.instance, is_cancelled)
            divided = target.divide_query(query.command, division, columns, context.instance, is_cancelled)
        except SqlError as error:
            raise placed(error, context.instance, query.at) from error
        document, path = context.package.binder.surroundings.document, (*context.task.own_path, "partition")
        clause = partition_of_build(self._settings.partition, columns, document, path)
        build = Build(
            context.instance,
            self._connection,
            self._schema,
            self._table,
            self._settings.target,
            clause,
            division.column,
        )
        plan = plan_build(
            build,
            columns,
            target.catalog(self._schema, self._table),
            target.capabilities,
            target.default_schema,
            len(divided.commands),
            taken_names=target.names_in_schema(self._schema) if target.capabilities.makes_parts else (),
            cpus=usable_cpus(),
        )
        return replace(plan, notes=(*divided.notes, *plan.notes)), divided

    def _built(self, plan: DataFlowPlan, parts: QueryParts, query: PreparedStatement) -> LoadTimes:
        """Its accounts are told whatever becomes of it."""
        context, started, cpu_started = self._context, time.monotonic(), time.process_time()
        times, result, failure = None, None, None
        try:
            with hints_for_builds():
                times = self._target.build(context.run_id, plan, parts, context.cancellation.is_set)
            if times.temporary_bytes:
                spilled = _SPILLED.format(units.size(times.temporary_bytes))
                context.notice(spilled)
                plan = replace(plan, notes=(*plan.notes, spilled))
            result = result_of_query(times.rows_loaded)
        except HeadraceError as error:
            failure = context.cancellation.error(f"task {plan.task}") if context.cancellation.is_set() else error
            if isinstance(failure, SqlError):
                failure.at = {**query.at, **(failure.at or {})}
            raise failure from error
        finally:
            seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu_started
            warnings = () if times is None else times.warnings
            outcome = FlowOutcome(result, times, failure, seconds, cpu_seconds, warnings)
            context.services.built(plan, outcome)
        for warning in times.warnings:
            context.warn(warning)
        return times

    def _result(self, times: LoadTimes, *, was_done: bool = False) -> LeafResult:
        details: Mapping[str, Any] = {
            "connection": self._settings.connection,
            "table": self._settings.table,
            "target": self._settings.target,
            "rows_loaded": times.rows_loaded,
            "temporary_bytes": times.temporary_bytes,
            "was_done": was_done,
        }
        return LeafResult(details=details)
