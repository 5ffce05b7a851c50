"""One load of one data flow: told, executed, and recorded in the accounts of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final

from headrace import core
from headrace.errors import CancelledError, HeadraceError, TaskTimeoutError
from headrace.executors import (
    BuiltLookups,
    FlowOutcome,
    Loader,
    LocalExecutor,
    build_lookups,
)
from headrace.executors.local import Measuring, Progress, Settled, SettledWay
from headrace.executors.lookups import RowsOf
from headrace.machine.affinity import Affinity, cpus_of_streams, numa_nodes
from headrace.machine.sampler import usable_cpus
from headrace.planning import DataFlowPlan, LookupPlan, SourceSnapshot, shared_plan
from headrace.planning.front_ways import source_of_pass
from headrace.run import request as requests
from headrace.run.attempt import Attempt
from headrace.run.cancellation import Cancellation
from headrace.run.events import EventLog
from headrace.run.folder import RunFolder
from headrace.run.gathered_passes import FedQuery, GatheredPasses
from headrace.run.judging import Judging
from headrace.run.kept_errors import let_go_of_memory
from headrace.run.lookup_contents import LookupContents
from headrace.run.lookup_tables import Reading, committed_rows
from headrace.run.metrics import MetricsRecorder, WatchedPlace
from headrace.run.offenders import name_offender
from headrace.run.parts_of_flow import StagingWays
from headrace.run.phases import Phases
from headrace.run.redact import Redactor
from headrace.run.summary import Summary, TableResult
from headrace.run.transformed import lookup_notices
from headrace.targets import Flow, Target, TaskProgress

_TOLD_OF_LOOKUPS: Final = (
    "rows", "null_keys", "duplicates", "lines", "skipped", "bytes_read", "bytes", "seconds"
)  # fmt: skip
_CANCELLED: Final = "cancelled; this task loaded nothing"


def _not_measured(_flow: Flow) -> AbstractContextManager[None]:
    return nullcontext()


def _not_told(_snapshot: dict[str, Any]) -> None:
    return None


def _anew(plan: DataFlowPlan) -> DataFlowPlan:
    """The plan as it was before `continued`, whose note is the last one."""
    return replace(plan, committed={}, notes=plan.notes[:-1]) if plan.committed else plan


class FlowLoading:
    """The loads of one run, one after the other."""

    def __init__(
        self,
        folder: RunFolder,
        redactor: Redactor,
        events: EventLog,
        summary: Summary,
        phases: Phases,
        attempt: Attempt,
        metrics: MetricsRecorder,
        judging: Judging,
        affinity: Affinity,
        reading: Reading,
    ) -> None:
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._summary = summary
        self._phases = phases
        self._attempt = attempt
        self._metrics = metrics
        self._judging = judging
        self._affinity: Affinity = affinity
        self._contents = LookupContents(folder)
        self._reading = reading
        self._gathered = GatheredPasses(folder, redactor, self)

    def announced(
        self,
        plan: DataFlowPlan,
        target: Target,
        ways: Sequence[DataFlowPlan] = (),
        in_pass: Sequence[DataFlowPlan] = (),
        *,
        places: int = 1,
        is_half: bool = False,
    ) -> DataFlowPlan:
        """The plan as it is executed now: its slices are in the ledger, and everybody knows that it starts. `ways`: of
        a flow with several destinations those to all of them in this place; `in_pass`: in all places. `places`: as many
        commit the rows of its flow, one after the other; `is_half`: some of them have.
        """
        run_id = self._folder.run_id
        with self._phases.of("start"):
            is_retry = plan.task in self._summary.retried
            is_known = self._attempt.is_resumed or is_retry
            progress = target.task_progress(run_id, plan.task) if is_known else TaskProgress()
            is_whole = not any(own.slices_to_load for own in ways or [plan])
            # Nothing of this result may be added to a part of an earlier one.
            is_other = plan.is_one_result and not is_whole and (progress.begun or is_retry)
            if is_other:
                target.begin_anew(run_id, plan)
                plan, progress = _anew(plan), target.task_progress(run_id, plan.task)
            if not progress.recorded:
                target.record_slices(run_id, self._without_secrets(plan))
            keeps = target.capabilities.commits_inside or places > 1
            self._contents.expect(plan.task, keeps=keeps, begun=progress.begun or is_half)
        self._summary.retried.add(plan.task)
        # What several destinations get in one pass is read once.
        is_first = not in_pass or in_pass[0].task == plan.task
        source = source_of_pass(in_pass or [plan]) if is_first else plan.told.alone.source
        self._events.emit(
            "task_started",
            task=plan.task,
            kind="data_flow",
            table=plan.table,
            connection=plan.connection,
            files=len({str(file["path"]) for file in source.files}),
            bytes_total=source.bytes_total if is_first else 0,
            slices=len(source.slices),
            streams=plan.told.streams,
            notes=list(plan.notes),
            flow_of=plan.flow or None,
        )
        return replace(
            plan,
            shown_paths=self._shown_paths(plan.source),
            rows_before=self._summary.rows_before(plan.flow or plan.task),
            cpus_of_streams=self._pinned(plan),
        )

    def outcome(
        self,
        plan: DataFlowPlan,
        loader: Loader,
        cancellation: Cancellation,
        rows_of: RowsOf | None = None,
    ) -> FlowOutcome:
        """Executes a plan that was announced. Never raises for a flow that fails. `rows_of`: opens tables of lookups;
        None: as everybody sees them.
        """
        return self._gathered.outcome(plan, loader, cancellation, rows_of, keeps=True)

    def as_part(self, before: DataFlowPlan, plan: DataFlowPlan) -> DataFlowPlan:
        """The flow in front of a query, as the one that was announced is executed now."""
        return replace(
            before,
            task=plan.task,
            table=plan.table,  # for people: the rows of both go there
            shown_paths=self._shown_paths(before.source),
            rows_before=plan.rows_before,
            cpus_of_streams=self._pinned(before),
            run=plan.run,
        )

    def _pinned(self, plan: DataFlowPlan) -> tuple[tuple[int, ...], ...]:
        pinned = cpus_of_streams(self._affinity, plan.streams, usable_cpus(), numa_nodes())
        return tuple(map(tuple, pinned))

    def run_one(
        self,
        plan: DataFlowPlan,
        loader: Loader,
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        rows: object | None,
        settled: Settled,
    ) -> FlowOutcome:
        """`rows`: what is sent in the place of files. `settled`: as the executor has it."""
        rejects = str(self._folder.rejects)

        def execute(executor: LocalExecutor, built: BuiltLookups) -> tuple[FlowOutcome, ...]:
            run_id, way = self._folder.run_id, built.plan
            place = WatchedPlace(way.connection, lambda: loader.watcher(run_id, [way]))
            watching, progress = self._measures(way, [place], rows)
            return (executor.run(run_id, built.plan, loader, rejects, progress, cancellation, watching, settled),)

        (outcome,) = self._executed([plan], plan, execute, cancellation, rows_of, rows)
        return outcome

    def outcomes(
        self,
        plans: Sequence[DataFlowPlan],
        loader: StagingWays,
        cancellation: Cancellation,
        rows_of: RowsOf | None = None,
        *,
        is_told: bool = True,
    ) -> tuple[FlowOutcome, ...]:
        """The same of the ways of a flow with several destinations, whose rows come together. `is_told`: what is told
        once of the flow was not told when another place had committed.
        """
        if not plans[0].feeds:
            return self.in_one_pass(plans, loader, cancellation, rows_of, is_told=is_told)
        return self._gathered.beside(plans, loader, cancellation, rows_of)

    def in_one_pass(
        self,
        plans: Sequence[DataFlowPlan],
        loader: StagingWays,
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        *,
        is_told: bool = True,
        fed: FedQuery | None = None,
    ) -> tuple[FlowOutcome, ...]:
        shared, rejects = shared_plan(plans, is_told=is_told), str(self._folder.rejects)

        def execute(rows: object | None, settled: SettledWay) -> tuple[FlowOutcome, ...]:
            def run(executor: LocalExecutor, built: BuiltLookups) -> tuple[FlowOutcome, ...]:
                ways = tuple(replace(way, memory=built.plan.memory.of_one_engine()) for way in shared.ways)
                whole = replace(shared, ways=ways, whole=built.plan)
                run_id = self._folder.run_id
                watching, progress = self._measures(ways[0], loader.watched(run_id, ways), rows)
                return executor.run_ways(run_id, whole, loader, rejects, progress, cancellation, watching, settled)

            return self._executed(plans, shared.whole, run, cancellation, rows_of, rows)

        return self._gathered.behind(plans, execute, cancellation, rows_of, keeps=True, fed=fed)

    def _executed(
        self,
        plans: Sequence[DataFlowPlan],
        whole: DataFlowPlan,
        execute: Callable[[LocalExecutor, BuiltLookups], tuple[FlowOutcome, ...]],
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        rows: object | None = None,
    ) -> tuple[FlowOutcome, ...]:
        """Reads the lookups of the whole, and executes it. `plans`: those of which there is an outcome."""
        started = time.monotonic()
        try:
            built = self._lookups(plans, whole, cancellation, rows_of or committed_rows(self._reading))
        except Exception as error:
            let_go_of_memory(error)
            failure = CancelledError(_CANCELLED) if isinstance(error, CancelledError) else error
            seconds = time.monotonic() - started
            outcome = FlowOutcome(None, None, failure, 0.0, 0.0, lookup_seconds=seconds)
            return tuple(self._timed_out(plan, outcome, cancellation) for plan in plans)
        executor = LocalExecutor(lambda spec: core.Flow(spec, built.lookups, rows), shown=self._redactor.text)
        outcomes = execute(executor, built)
        if outcomes[0].error is not None:
            let_go_of_memory(outcomes[0].error)
        reports = built.reports()
        told = []
        for number, (plan, outcome) in enumerate(zip(plans, outcomes, strict=True)):
            own = tuple(reports[lookup.name] for lookup in plan.lookups)
            # Lookups are read once for all ways.
            seconds = 0.0 if number else built.seconds
            outcome = replace(outcome, lookups=own, lookup_seconds=seconds)
            told.append(self._timed_out(plan, outcome, cancellation))
        return tuple(told)

    def _measures(
        self, plan: DataFlowPlan, places: Sequence[WatchedPlace], rows: object | None
    ) -> tuple[Measuring, Progress]:
        """What is behind a query over all rows takes no part in the measures: its streams do not read."""
        if rows is None:
            return lambda flow: self._metrics.measuring(plan, flow, places), self._progress(plan)
        return _not_measured, _not_told

    def _progress(self, plan: DataFlowPlan) -> Progress:
        started = time.monotonic()

        def progress(snapshot: dict[str, Any]) -> None:
            self._events.emit(
                "progress",
                task=plan.task,
                table=plan.table,
                bytes_read=snapshot["bytes_read"],
                source_bytes_read=snapshot["source_bytes_read"],
                counted_bytes=snapshot["counted_bytes"],
                bytes_total=plan.source.bytes_total,
                rows_read=snapshot["rows_read"],
                rows_rejected=snapshot["rows_rejected"],
                seconds=round(time.monotonic() - started, 3),
            )

        return progress

    def _lookups(
        self, ways: Sequence[DataFlowPlan], plan: DataFlowPlan, cancellation: Cancellation, rows_of: RowsOf
    ) -> BuiltLookups:
        def starts(lookup: LookupPlan) -> None:
            self._events.emit(
                "lookup_started",
                task=plan.task,
                table=plan.table,
                lookup=lookup.name,
                rows_from=lookup.reading.words,
                files=len(lookup.reading.source.files),
                bytes_total=lookup.reading.source.bytes_total,
            )

        def ended(lookup: LookupPlan, report: dict[str, Any]) -> None:
            self._events.emit(
                "lookup_read",
                task=plan.task,
                table=plan.table,
                lookup=lookup.name,
                rows_from=lookup.reading.words,
                files=len(lookup.reading.source.files),
                **{name: report[name] for name in _TOLD_OF_LOOKUPS},
            )
            for text in lookup_notices(lookup, report):
                self._events.notice(text, plan.task)

        built = build_lookups(plan, cancellation.is_set, rows_of, starts, ended)
        held = zip(plan.lookups, built.lookups, strict=True)
        contents = {own.name: lookup.report()["fingerprint"] for own, lookup in held}
        for way in ways:
            self._contents.check(way.task, {own.name: contents[own.name] for own in way.lookups})
        return built

    def _timed_out(self, plan: DataFlowPlan, outcome: FlowOutcome, cancellation: Cancellation) -> FlowOutcome:
        if isinstance(outcome.error, CancelledError) and cancellation.timeout_seconds is not None:
            error = cancellation.error(f"task {plan.task}")
            error.keep_committed(outcome.error)
            return replace(outcome, error=error)
        return outcome

    def ended(self, plan: DataFlowPlan, outcome: FlowOutcome) -> tuple[str, ...]:
        """Accounts for a flow that was executed; raises its error. The warnings."""
        table = TableResult(plan.told, outcome, self._judging.verdict(plan.task))
        self._record_result(table)
        warnings = (*outcome.warnings, *table.notes())
        for warning in warnings:
            self._events.notice(warning, plan.task)
        if outcome.error is not None:
            raise outcome.error
        self._keep_dialects(plan.told, outcome)
        self._summary.tried.discard(plan.task)
        self._summary.retried.discard(plan.task)
        return warnings

    def _keep_dialects(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        """How the rows of a stream are written is known when it was read: rejects are replayed by it."""
        slices = outcome.result["slices"] if outcome.result else []
        read = {int(item["file"]): item["dialect"] for item in slices if "dialect" in item}
        if read and self._attempt.request is not None:
            requests.add_dialects(self._folder, self._redactor.text(plan.task), read)

    def name_offender(
        self, plan: DataFlowPlan, outcome: FlowOutcome, target: Target, cancellation: Cancellation
    ) -> None:
        """Writes into the error of a flow which row it is about, if that can be found. All is rolled back by now."""

        def notice(text: str) -> None:
            self._events.notice(text, plan.task)

        if outcome.error is not None and not isinstance(outcome.error, TaskTimeoutError):
            with self._phases.of("finish"):
                name_offender(
                    outcome.error,
                    plan,
                    target,
                    self._folder,
                    notice,
                    cancellation,
                    committed_rows(self._reading),
                )

    def _record_result(self, table: TableResult) -> None:
        self._summary.add(table)
        self._phases.add(table.outcome, is_beside=not table.is_first)
        sums, error = table.sums(), table.outcome.error
        shown = self._redactor.error(error).to_dict() if isinstance(error, HeadraceError) else None
        self._events.emit(
            "task_finished",
            task=table.plan.task,
            kind="data_flow",
            table=table.plan.table,
            status=table.outcome.status,
            seconds=round(table.outcome.seconds, 6),
            rows_read=sums["rows"],
            rows_skipped=sums["skipped"],
            rows_rejected=sums["rejected"],
            rows_filtered=sums["filtered"],
            rows_loaded=table.rows_loaded(),
            bytes_read=sums["bytes"],
            **({} if (join := table.join()) is None else {"join": join}),
            **({} if (union := table.union()) is None else {"union": union}),
            **({} if (gathered := table.gathered()) is None else {"gathered": gathered}),
            error=shown,
            flow_of=table.plan.flow or None,
        )

    def _shown_paths(self, source: SourceSnapshot) -> tuple[str, ...] | None:
        """How rejects may name the source files, if not as they are called: secrets may be in their paths."""
        paths = [str(file["path"]) for file in source.files]
        shown = tuple(self._redactor.text(path) for path in paths)
        return None if list(shown) == paths else shown

    def _without_secrets(self, plan: DataFlowPlan) -> DataFlowPlan:
        files = [{**file, "path": self._redactor.text(str(file["path"]))} for file in plan.source.files]
        return replace(plan, table=self._redactor.text(plan.table), source=replace(plan.source, files=files))
