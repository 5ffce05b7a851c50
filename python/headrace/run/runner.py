"""Executes a package: run folder, events, ledger, tasks one after the other, summary."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace import core
from headrace.errors import CancelledError, HeadraceError, InternalError
from headrace.executors import FlowOutcome, LocalExecutor
from headrace.model import BoundPackage
from headrace.model.load import usable_cpus
from headrace.planning import DataFlowPlan, FinishedTask, RunPlan, SkippedTask, SourceSnapshot
from headrace.run import request as requests
from headrace.run.events import EventLog, Listener
from headrace.run.finished import LOADED_BEFORE, FinishedTable
from headrace.run.folder import DEFAULT_RUNS_FOLDER, RunFolder
from headrace.run.key_answers import KeyAnswers
from headrace.run.offenders import name_offender
from headrace.run.own_memory import peak_resident_bytes
from headrace.run.preparation import OpenTargets, PreparedFlow, plan_run, prepare_sources
from headrace.run.redact import Redactor
from headrace.run.replay import ReplayRun
from headrace.run.request import RunRequest
from headrace.run.summary import Judge, Summary, TableResult
from headrace.run.tasks import nameable_flows
from headrace.run.unfinished import appended_by_unfinished_runs
from headrace.targets import LostRun, RunRecord, Target


def plan_package(package: BoundPackage) -> RunPlan:
    """What `execute` would do now, for reading: without secrets. Changes nothing; a database file that does not exist
    is not created.
    """
    redactor = Redactor(package.secrets)
    try:
        prepared = prepare_sources(package)
        with _open(package, prepared, None, None, threading.Event()) as targets:
            return redactor.dataclass(plan_run(package, prepared, targets))
    except HeadraceError as error:
        raise redactor.error(error) from None


def execute(
    package: BoundPackage,
    *,
    runs_dir: Path | None = None,
    listener: Listener | None = None,
    cancel: threading.Event | None = None,
    judge: Judge | None = None,
    request: RunRequest | None = None,
    resumed: RunFolder | None = None,
    abandon: bool = False,
    replay: ReplayRun | None = None,
) -> Summary:
    """Runs a package and returns its summary, also when the run failed or was cancelled (`Summary.failure`).

    `request` is kept in the run folder, so that the run can be resumed. `resumed` is the folder of an unfinished run of
    the same package, which goes on instead of a new one: what it has committed is not loaded again. `abandon` starts
    anew even if an unfinished run has appended rows that will be appended again. `replay`: rejects of an earlier run of
    the package that are loaded instead of its sources.

    `listener` gets every event on this thread, progress about ten times a second. Setting `cancel` from a signal
    handler or another thread rolls back the current table and ends the run. `judge` names the limit of the run.
    Raises LedgerError if the run folder cannot be made, and whatever a defect of Headrace itself raises.
    """
    now = datetime.now(UTC)
    folder = resumed or (RunFolder.create(runs_dir or DEFAULT_RUNS_FOLDER, now) if replay is None else replay.folder)
    if resumed is not None:
        requests.check_package(folder, package)
        replay = ReplayRun.load(folder) if folder.is_replay else None
        folder.reopen()
    redactor = Redactor(package.secrets, None if replay is None else replay.names)
    if replay is not None:
        package = replay.package(package)
    began_us = requests.microseconds(now) if resumed is None else requests.began(folder)
    with EventLog(folder.events, redactor, listener) as events:
        attempt = _Attempt(request, resumed is not None, abandon, began_us, replay)
        return _Run(package, folder, redactor, events, cancel or threading.Event(), judge, attempt).execute()


@dataclass(frozen=True)
class _Attempt:
    """Whether a run starts or goes on, when it began, and what is kept or given up for that; see `execute`."""

    request: RunRequest | None
    is_resumed: bool
    abandon: bool
    began_us: int | None
    replay: ReplayRun | None


class _Run:
    """One run of one package."""

    def __init__(
        self,
        package: BoundPackage,
        folder: RunFolder,
        redactor: Redactor,
        events: EventLog,
        cancel: threading.Event,
        judge: Judge | None,
        attempt: _Attempt,
    ) -> None:
        self._attempt = attempt
        self._package = package
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._cancel = cancel
        self._judge = judge
        self._begun: list[Target] = []
        # Of a replay: rejects of its task that are in none.
        self._open_behind: int | None = None
        self._summary = Summary(
            run_id=folder.run_id, run_folder=str(folder.path), package=package.name, redact=redactor.data
        )
        self._summary.phases = dict.fromkeys(("plan", "start", "prepare", "load", "commit", "finish"), 0.0)

    def execute(self) -> Summary:
        started = time.monotonic()
        defect: BaseException | None = None
        try:
            self._execute()
        except BaseException as error:
            self._fail(_reported(error))
            defect = None if isinstance(error, HeadraceError | KeyboardInterrupt) else error
        self._summary.seconds = time.monotonic() - started
        self._finish()
        if defect is not None:
            raise defect
        return self._summary

    def _execute(self) -> None:
        with self._phase("plan"):
            try:
                prepared = self._sources()
            except BaseException:
                self._started(None)
                raise
            self._started(prepared)
            if self._attempt.is_resumed:
                requests.check_sources(self._folder, _sources(prepared), self._redactor)
        with self._phase("start"):
            targets = _open(self._package, prepared, self._folder, self._events, self._cancel)
        try:
            plan = self._planned(prepared, targets)
            self._tasks(plan, prepared, targets)
        except BaseException as error:
            self._fail(_reported(error))  # before the ledger is closed, which says how the run ended
            self._warn_of_appended()
            raise
        finally:
            with self._phase("finish"):
                self._end_ledger()
                self._close(targets)

    def _sources(self) -> list[PreparedFlow | SkippedTask]:
        replay = self._attempt.replay
        if replay is None:
            return prepare_sources(self._package, self._cancel.is_set)
        return [replay.sources(self._package, self._cancel.is_set)]

    def _planned(self, prepared: list[PreparedFlow | SkippedTask], targets: OpenTargets) -> RunPlan:
        """Plans and begins the ledger: a new run in this order, so that a plan that fails leaves no trace; a resumed
        one asks the ledger what is left, after it has fenced the earlier attempt off.
        """
        began_us = self._attempt.began_us
        if self._attempt.is_resumed:
            with self._phase("start"):
                self._resume_ledger(targets)
        with self._phase("plan"):
            is_resumed, resumed_run = self._attempt.is_resumed, self._folder.run_id
            known = requests.load_keys(self._folder, _sources(prepared), self._redactor) if is_resumed else None
            keys = KeyAnswers(known, is_cancelled=self._cancel.is_set)
            plan = plan_run(self._package, prepared, targets, resumed_run if is_resumed else None, keys, began_us)
            if self._attempt.replay is not None:
                plan = self._claimed(self._attempt.replay, plan, prepared, targets)
            if is_resumed:
                requests.check_partitions(self._folder, plan, self._redactor)
            for note in plan.notes:
                self._events.notice(note)
        if not self._attempt.is_resumed:
            with self._phase("start"):
                appended = self._unfinished(plan, prepared, targets)
                if self._attempt.request is not None:
                    # Only what gets as far as the ledger can be resumed.
                    requests.save_sources(self._folder, _sources(prepared), self._redactor)
                    requests.save_partitions(self._folder, keys.document, plan, self._redactor)
                    requests.save(self._folder, self._attempt.request, self._package, self._redactor, began_us)
                self._begin_ledger(targets)
                for target, unfinished in appended:
                    target.abandon_runs(unfinished)
        return plan

    def _claimed(
        self,
        replay: ReplayRun,
        plan: RunPlan,
        prepared: list[PreparedFlow | SkippedTask],
        targets: OpenTargets,
    ) -> RunPlan:
        task = next(item.task for item in prepared if isinstance(item, PreparedFlow))
        target = targets[task.destination.connection]
        self._open_behind = replay.open_behind(target.replays(replay.of_run, task.id))
        return replay.planned(plan, task, target, self._redactor)

    def _tasks(self, plan: RunPlan, prepared: list[PreparedFlow | SkippedTask], targets: OpenTargets) -> None:
        executor = LocalExecutor(core.Flow)
        for item, task in zip(prepared, plan.tasks, strict=True):
            if isinstance(task, SkippedTask):
                self._summary.skipped.append(task)
                self._events.emit("task_skipped", task=task.task, table=task.table, reason=task.reason)
                continue
            if self._cancel.is_set():
                raise CancelledError(f"the run was cancelled before task {task.task}")
            assert isinstance(item, PreparedFlow)
            if isinstance(task, FinishedTask):
                self._finished_before(task)
                continue
            self._load(executor, task, targets[item.task.destination.connection])
        if not plan.flows:
            reasons = dict.fromkeys(task.reason for task in self._summary.skipped) or [LOADED_BEFORE]
            self._events.notice(f"nothing to load: {'; '.join(reasons)}")

    def _load(self, executor: LocalExecutor, plan: DataFlowPlan, target: Target) -> None:
        with self._phase("start"):
            run_id = self._folder.run_id
            if not (self._attempt.is_resumed and target.task_progress(run_id, plan.task).recorded):
                target.record_slices(run_id, self._without_secrets(plan))
        self._events.emit(
            "task_started",
            task=plan.task,
            table=plan.table,
            connection=plan.connection,
            files=len(plan.source.files),
            bytes_total=plan.source.bytes_total,
            slices=len(plan.source.slices),
            streams=plan.streams,
            notes=list(plan.notes),
        )
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

        plan = replace(plan, shown_paths=self._shown_paths(plan.source), rows_before=self._summary.rows_before())
        outcome = executor.run(self._folder.run_id, plan, target, str(self._folder.rejects), progress, self._cancel)
        if outcome.error is not None:
            with self._phase("finish"):
                self._name_offender(outcome.error, plan, target)
        table = TableResult(plan, outcome)
        self._record(table)
        for warning in [*outcome.warnings, *table.notes()]:
            self._events.notice(warning, plan.task)
        if outcome.error is not None:
            raise outcome.error
        self._keep_dialects(plan, outcome)

    def _keep_dialects(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        """How the rows of a stream are written is known when it was read: rejects are replayed by it."""
        slices = outcome.result["slices"] if outcome.result else []
        read = {int(item["file"]): item["dialect"] for item in slices if "dialect" in item}
        if read and self._attempt.request is not None:
            requests.add_dialects(self._folder, self._redactor.text(plan.task), read)

    def _finished_before(self, task: FinishedTask) -> None:
        table = FinishedTable.of(task, self._folder.rejects)
        self._summary.finished.append(table)
        self._events.emit("task_skipped", task=task.task, table=task.table, reason=LOADED_BEFORE)

    def _name_offender(self, error: BaseException, plan: DataFlowPlan, target: Target) -> None:
        def notice(text: str) -> None:
            self._events.notice(text, plan.task)

        name_offender(error, plan, target, self._folder, notice, self._cancel)

    def _record(self, table: TableResult) -> None:
        self._summary.tables.append(table)
        self._add_phases(table.outcome)
        sums, error = table.sums(), table.outcome.error
        shown = self._redactor.error(error).to_dict() if isinstance(error, HeadraceError) else None
        self._events.emit(
            "task_finished",
            task=table.plan.task,
            table=table.plan.table,
            status=table.outcome.status,
            seconds=round(table.outcome.seconds, 6),
            rows_read=sums["rows"],
            rows_skipped=sums["skipped"],
            rows_rejected=sums["rejected"],
            rows_loaded=table.rows_loaded(),
            bytes_read=sums["bytes"],
            error=shown,
        )

    def _shown_paths(self, source: SourceSnapshot) -> tuple[str, ...] | None:
        """How rejects may name the source files, if not as they are called: secrets may be in their paths."""
        paths = [str(file["path"]) for file in source.files]
        shown = tuple(self._redactor.text(path) for path in paths)
        return None if list(shown) == paths else shown

    def _add_phases(self, outcome: FlowOutcome) -> None:
        phases, times = self._summary.phases, outcome.times
        if times is None:
            phases["load"] += outcome.seconds
            return
        phases["prepare"] += times.prepare_seconds
        phases["commit"] += times.commit_seconds
        phases["load"] += outcome.seconds - times.prepare_seconds - times.commit_seconds

    def _started(self, prepared: list[PreparedFlow | SkippedTask] | None) -> None:
        tasks: list[dict[str, Any]]
        if prepared is None:
            flows = [flow for flow, when in nameable_flows(self._package) if when]
            tasks = [{"task": flow.id, "table": flow.destination.table} for flow in flows]
        else:
            tasks = [
                {"task": item.task.id, "table": item.task.destination.table, "bytes_total": item.source.bytes_total}
                for item in prepared
                if isinstance(item, PreparedFlow)
            ]
        self._events.emit(
            "run_started",
            run_id=self._folder.run_id,
            package=self._package.name,
            streams=self._package.streams,
            memory_bytes=self._package.memory_bytes,
            run_folder=str(self._folder.path),
            tasks=tasks,
        )

    def _record_of_run(self) -> RunRecord:
        return RunRecord(
            run_id=self._folder.run_id,
            package=self._redactor.text(self._package.name),
            package_hash=self._package.content_hash,
            headrace_version=core.version(),
            host=platform.node(),
            process_id=os.getpid(),
            started_at=datetime.now(UTC),
            of_run=None if self._attempt.replay is None else self._attempt.replay.of_run,
        )

    def _resume_ledger(self, targets: OpenTargets) -> None:
        record = self._record_of_run()
        for target in targets.all():
            target.resume_run(record)
            self._begun.append(target)

    def _unfinished(
        self, plan: RunPlan, prepared: list[PreparedFlow | SkippedTask], targets: OpenTargets
    ) -> list[tuple[Target, list[LostRun]]]:
        if self._attempt.replay is not None:
            return []  # whatever those have appended, it is not the rows of a replay
        package = self._record_of_run().package
        return appended_by_unfinished_runs(package, plan, prepared, targets, may_abandon=self._attempt.abandon)

    def _begin_ledger(self, targets: OpenTargets) -> None:
        record = self._record_of_run()
        for target in targets.all():
            lost_runs = target.begin_run(record)
            self._begun.append(target)
            for lost in lost_runs:
                loaded = f"it had committed {', '.join(lost.tables)}, and " if lost.tables else ""
                self._events.notice(
                    f"run {lost.run_id} died before it ended: {loaded}nothing of its unfinished table is visible"
                )

    def _end_ledger(self) -> None:
        failure = self._summary.failure
        error = None if failure is None else self._redactor.text(failure.what)
        for target in self._begun:
            try:
                target.end_run(self._folder.run_id, self._summary.status, error)
            except Exception as problem:
                self._late_problem(problem)

    def _warn_of_appended(self) -> None:
        """A table is committed when its task ends. What a failed run has appended a new one would append again."""
        tables = self._summary.tables
        again = [item.plan.table for item in tables if item.outcome.error is None and item.plan.target == "append"]
        if again:
            self._events.notice(
                f"committed already: {', '.join(again)}; `headrace resume {self._folder.run_id}` goes on behind that"
            )

    def _close(self, targets: OpenTargets) -> None:
        try:
            targets.close()
        except Exception as problem:
            self._late_problem(problem)

    def _late_problem(self, error: Exception) -> None:
        """Something failed behind the last task. What is committed stays so: calling the run failed would make its
        user load the rows again. What has failed already keeps its own error.
        """
        when = "last commit" if self._summary.failure is None else "error"
        problem = self._redactor.error(_reported(error))
        found = f" ({problem.found})" if problem.found else ""
        self._events.notice(f"after the {when}: {problem.what}{found}")

    def _fail(self, error: HeadraceError) -> None:
        """Keeps the first error only: the later ones are usually its consequences."""
        error = self._redactor.error(error)
        if self._summary.failure is None:
            self._summary.failure = error
            self._summary.status = "cancelled" if isinstance(error, CancelledError) else "failed"
        elif error is not self._summary.failure:
            self._events.notice(f"after the error: {error.what}")

    def _finish(self) -> None:
        self._summary.peak_resident_bytes = peak_resident_bytes()
        self._folder.tidy()
        for step in (self._name_limit, self._write_summary):
            try:
                step()
            except Exception as problem:
                self._late_problem(problem)
        self._events.emit(
            "run_finished",
            run_id=self._folder.run_id,
            status=self._summary.status,
            seconds=round(self._summary.seconds, 6),
            error=None if self._summary.failure is None else self._summary.failure.to_dict(),
        )

    def _name_limit(self) -> None:
        if self._judge is not None and self._summary.tables:
            verdict = self._judge(self._summary.counters(usable_cpus()))
            self._summary.limit = None if verdict is None else verdict.to_dict()

    def _write_summary(self) -> None:
        if self._attempt.replay is not None:
            tables = self._summary.to_dict()["tables"]
            self._summary.replay = self._attempt.replay.accounts(tables, self._open_behind)
        self._folder.write_summary(self._summary.to_dict())

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._summary.phases[name] += time.monotonic() - started

    def _without_secrets(self, plan: DataFlowPlan) -> DataFlowPlan:
        files = [{**file, "path": self._redactor.text(str(file["path"]))} for file in plan.source.files]
        return replace(plan, table=self._redactor.text(plan.table), source=replace(plan.source, files=files))


def _sources(prepared: list[PreparedFlow | SkippedTask]) -> dict[str, SourceSnapshot]:
    return {item.task.id: item.source for item in prepared if isinstance(item, PreparedFlow)}


def _reported(error: BaseException) -> HeadraceError:
    """How the end of a run by `error` is reported; anything unknown is a defect of Headrace."""
    if isinstance(error, HeadraceError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return CancelledError("the run was cancelled")
    return InternalError(f"internal: {type(error).__name__} in the program itself", found=str(error) or None)


def _open(
    package: BoundPackage,
    prepared: list[PreparedFlow | SkippedTask],
    folder: RunFolder | None,
    events: EventLog | None,
    cancel: threading.Event,
) -> OpenTargets:
    """Opens the destinations: for a run if there is a run folder, else read-only for a plan."""
    return OpenTargets(
        package,
        [item for item in prepared if isinstance(item, PreparedFlow)],
        spill_folder=None if folder is None else str(folder.spill),
        read_only=folder is None,
        notice=lambda text: None if events is None else events.notice(text),
        is_cancelled=cancel.is_set,
    )
