"""Executes a package: run folder, events, ledgers, control flow, summary."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from headrace.errors import CancelledError, HeadraceError
from headrace.model import BoundPackage
from headrace.planning import RunPlan
from headrace.run import request as requests
from headrace.run.attempt import Attempt
from headrace.run.cancellation import Cancellation
from headrace.run.control.control import Control
from headrace.run.control.group import End
from headrace.run.control.journal import Journal
from headrace.run.control.names import InstanceNames
from headrace.run.control.plan_order import PlanOrder
from headrace.run.control.pool import Pool
from headrace.run.control.selection import ALL_TASKS, Choice, Selection, select
from headrace.run.control.totals import TaskTotals
from headrace.run.control_plan import planned_control
from headrace.run.early import EarlyFlows, early_flows
from headrace.run.events import EventLog, Listener
from headrace.run.finished import LOADED_BEFORE
from headrace.run.flow_sources import PreparedFlow
from headrace.run.flows import Flows
from headrace.run.folder import DEFAULT_RUNS_FOLDER, RunFolder
from headrace.run.judging import Judge, Judging
from headrace.run.metrics import MetricsFile, MetricsRecorder
from headrace.run.own_memory import peak_resident_bytes
from headrace.run.phases import Phases
from headrace.run.preparation import OpenTargets, plan_run, prepare_sources
from headrace.run.redact import Redactor
from headrace.run.replay import ReplayRun
from headrace.run.request import RunRequest
from headrace.run.summary import Summary
from headrace.run.tasks import known_names
from headrace.run.true_hints import appended_tables, true_hint
from headrace.run.workers import RunWorkers, defect

_WAIT_SECONDS = 0.1


def plan_package(package: BoundPackage, choice: Choice | None = None) -> RunPlan:
    """What `execute` would do now, for reading: without secrets. Changes nothing; a database file that does not exist
    is not created.
    """
    redactor = Redactor(package.secrets)
    selection = select(package, choice or ALL_TASKS)
    early = early_flows(package, selection)
    flows = [flow for flow in package.flows if flow.definition in early.early]
    try:
        prepared = prepare_sources(replace(package, flows=flows))
        with OpenTargets(
            package,
            [item for item in prepared if isinstance(item, PreparedFlow)],
            spill_folder=None,
            read_only=True,
            notice=lambda _text: None,
            is_cancelled=lambda: False,
        ) as targets:
            plan = redactor.dataclass(plan_run(package, prepared, targets))
    except HeadraceError as error:
        raise redactor.error(error) from None
    return replace(plan, control_flow=redactor.data(planned_control(package, selection, early)))


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

    `request` is kept in the run folder, so that the run can be resumed; its choice of tasks is followed. `resumed` is
    the folder of an unfinished run of the same package, which goes on instead of a new one: what it has done is not
    done again. `abandon` starts anew even if an unfinished run has appended rows that will be appended again. `replay`:
    rejects of an earlier run of the package that are loaded instead of its sources.

    `listener` gets every event on this thread, progress about ten times a second. Setting `cancel` from a signal
    handler or another thread rolls back what is not committed and ends the run. `judge`, a new one for each run, names
    its limits. Raises LedgerError if the run folder cannot be made, CommandLineError for tasks that do not exist, and
    whatever a defect of Headrace itself raises.
    """
    now = datetime.now(UTC)
    choice = ALL_TASKS if request is None else request.choice
    selection = select(package, choice) if replay is None else Selection()
    folder = resumed or (RunFolder.create(runs_dir or DEFAULT_RUNS_FOLDER, now) if replay is None else replay.folder)
    if resumed is not None:
        try:
            requests.check_package(folder, package)
        except HeadraceError as error:
            error.hint = true_hint(error.hint, folder.run_id, appended_tables(package, folder.run_id), is_begun=False)
            raise
        replay = ReplayRun.load(folder) if folder.is_replay else None
        folder.reopen()
    redactor = Redactor(package.secrets, None if replay is None else replay.names)
    if replay is not None:
        package = replay.package(package)
    began_us = requests.microseconds(now) if resumed is None else requests.began(folder)
    with EventLog(folder.events, redactor, listener, package.log_level) as events:
        attempt = Attempt(request, resumed is not None, abandon, began_us, replay)
        cancellation = Cancellation((cancel or threading.Event()).is_set)
        return _Run(package, selection, folder, redactor, events, cancellation, judge, attempt).execute()


class _Run:
    """One run of one package."""

    def __init__(
        self,
        package: BoundPackage,
        selection: Selection,
        folder: RunFolder,
        redactor: Redactor,
        events: EventLog,
        cancellation: Cancellation,
        judge: Judge | None,
        attempt: Attempt,
    ) -> None:
        self._package = package
        self._selection = selection
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._cancellation = cancellation
        self._attempt = attempt
        self._ended = threading.Event()
        self._pool = Pool()
        self._phases = Phases()
        self._totals = TaskTotals(redactor.error)
        self._summary = Summary(
            run_id=folder.run_id,
            run_folder=str(folder.path),
            package=package.name,
            redact=redactor.data,
            doubts=[doubt.to_dict() for doubt in package.doubts],
        )
        self._summary.phases = self._phases.seconds
        early = early_flows(package, selection) if attempt.replay is None else _all_early(package)
        self._judging = Judging(judge, events)
        metrics = MetricsFile(folder.metrics, redactor, events.notice, folder.is_ours)
        self._metrics = MetricsRecorder(metrics, events.notice, judge=self._judging)
        self._flows = Flows(
            package,
            early,
            folder,
            redactor,
            events,
            self._summary,
            self._phases,
            attempt,
            self._metrics,
            self._judging,
            self._is_cancelled,
        )

    def execute(self) -> Summary:
        """The work is done on a thread of its own, while this one waits in short steps: Ctrl-C always works."""
        started = time.monotonic()
        defects: list[BaseException] = []

        def work() -> None:
            try:
                self._execute()
            except BaseException as error:
                self._fail(_reported(error))
                if not isinstance(error, HeadraceError):
                    defects.append(error)
            finally:
                with self._phases.of("finish"):
                    self._metrics.stop()
                self._ended.set()
                self._events.wake()

        thread = threading.Thread(target=work, name="control")
        thread.start()
        while thread.is_alive():
            try:
                self._events.pump(_WAIT_SECONDS)
                if self._ended.is_set():
                    thread.join()
            except KeyboardInterrupt:
                self._cancellation.set()
        self._events.pump(0)
        self._summary.seconds = time.monotonic() - started
        self._finish()
        if defects:
            raise defects[0]
        return self._summary

    def _execute(self) -> None:
        journal = Journal(self._folder.journal, self._folder.is_ours)
        try:
            self._flows.start(lambda task: journal.before(task).status in ("success", "skipped"))
            with self._phases.of("start"):
                control = self._control(journal)
            end = asyncio.run(control.run())
            self._summary.tasks = self._totals.to_list()
            self._summary.tasks_failed = end.failures
            if end.status != "success":
                self._fail(end.error or _unexplained(end))
            elif not self._summary.tables and self._package.data_flows():
                self._nothing_loaded()
        except BaseException as error:
            self._fail(_reported(error))  # before the ledger is closed, which says how the run ended
            raise
        finally:
            if self._summary.failure is not None:
                self._warn_of_appended()
            journal.close()
            self._package.binder.close()
            with self._phases.of("finish"):
                failure = self._summary.failure
                said = None if failure is None else self._redactor.text(failure.what)
                self._flows.destinations.end(self._summary.status, said, self._late_problem)

    def _control(self, journal: Journal) -> Control:
        began = self._attempt.began_us
        moment = datetime.now(UTC) if began is None else datetime.fromtimestamp(began / 1e6, UTC)
        system = {"run_id": self._folder.run_id, "started_at": moment.strftime("%Y-%m-%d %H:%M:%S")}
        workers = RunWorkers(
            self._flows,
            self._folder,
            journal,
            self._events,
            self._redactor,
            system,
            is_resumed=self._attempt.is_resumed,
        )
        attempt = requests.attempt(self._folder, is_resumed=self._attempt.is_resumed)
        self._metrics.start(attempt)
        names = InstanceNames(self._redactor, known_names(self._package))
        return Control(
            self._package,
            workers,
            journal,
            self._events,
            names,
            self._selection,
            self._cancellation,
            self._pool,
            PlanOrder(self._flows.planned_order()),
            self._totals,
            self._redactor.hides,
            system,
            attempt,
        )

    def _is_cancelled(self) -> bool:
        return self._cancellation.is_set() or self._pool.is_cancelled()

    def _nothing_loaded(self) -> None:
        reasons = dict.fromkeys(task.reason for task in self._summary.skipped)
        known = reasons or ([LOADED_BEFORE] if self._summary.finished else [])
        if known:
            self._events.notice(f"nothing to load: {'; '.join(known)}")

    def _warn_of_appended(self) -> None:
        """A table is committed when its task ends. What a failed run has appended a new one would append again."""
        tables = self._summary.tables
        again = [item.plan.table for item in tables if item.outcome.error is None and item.plan.target == "append"]
        if again:
            self._events.notice(
                f"committed already: {', '.join(again)}; `headrace resume {self._folder.run_id}` goes on behind that"
            )

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
            self._summary.failure = self._with_true_hint(error)
            self._summary.status = "cancelled" if isinstance(error, CancelledError) else "failed"
        elif error is not self._summary.failure:
            self._events.notice(f"after the error: {error.what}")

    def _with_true_hint(self, error: HeadraceError) -> HeadraceError:
        destinations, tables = self._flows.destinations, tuple[str, ...]()
        with suppress(HeadraceError):
            tables = destinations.appended_tables()
        is_begun = self._totals.any_done or self._attempt.is_resumed
        is_kept = self._attempt.request is not None or self._attempt.is_resumed
        is_known = is_kept and destinations.keep_ledgers
        error.hint = true_hint(error.hint, self._folder.run_id, tables, is_begun=is_begun, is_known=is_known)
        return error

    def _finish(self) -> None:
        self._summary.peak_resident_bytes = peak_resident_bytes()
        self._folder.tidy()
        steps: tuple[Callable[[], None], ...] = (self._name_limit, self._write_summary)
        for step in steps:
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
        self._summary.limit = self._judging.whole()

    def _write_summary(self) -> None:
        if self._attempt.replay is not None:
            tables = self._summary.to_dict()["tables"]
            self._summary.replay = self._attempt.replay.accounts(tables, self._flows.open_behind, self._redactor)
        self._folder.write_summary(self._summary.to_dict())


def _all_early(package: BoundPackage) -> EarlyFlows:
    return EarlyFlows(frozenset(flow.definition for flow in package.flows), {})


def _unexplained(end: End) -> HeadraceError:
    return CancelledError("the run was cancelled") if end.status == "cancelled" else defect(Exception(end.status))


def _reported(error: BaseException) -> HeadraceError:
    """How the end of a run by `error` is reported; anything unknown is a defect of Headrace."""
    return error if isinstance(error, HeadraceError) else defect(error)
