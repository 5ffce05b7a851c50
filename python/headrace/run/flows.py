"""The data flows of a run: what there is to load, and that it is loaded. One flow at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import HeadraceError, LedgerError
from headrace.model import BoundPackage, Connection, DataFlowTask, Retry, SharedFlow
from headrace.planning import DataFlowPlan, FinishedTask, RunFacts, RunPlan, SkippedTask, SourceSnapshot
from headrace.run import request as requests
from headrace.run.attempt import Attempt
from headrace.run.builds import Builds
from headrace.run.cancellation import Cancellation
from headrace.run.control.place import Place
from headrace.run.control.stored_values import SECRET, to_stored
from headrace.run.control.work import FlowEnd
from headrace.run.destinations import RunDestinations
from headrace.run.early import EarlyFlows
from headrace.run.environment import described
from headrace.run.events import EventLog
from headrace.run.finished import LOADED_BEFORE, FinishedTable
from headrace.run.flow_loading import FlowLoading
from headrace.run.flow_records import FlowRecords, add_record, with_late_flows
from headrace.run.flow_sources import PreparedFlow
from headrace.run.folder import RunFolder
from headrace.run.judging import Judging
from headrace.run.key_answers import KeyAnswers
from headrace.run.metrics import MetricsRecorder
from headrace.run.phases import Phases
from headrace.run.preparation import OpenTargets, look_at_flow, plan_run, prepare_flow, prepare_sources
from headrace.run.redact import Redactor
from headrace.run.replay import ReplayRun
from headrace.run.summary import Summary
from headrace.run.tasks import earlier_names, nameable_flows
from headrace.run.unfinished import appended_by_unfinished_runs, refuse_unfinished
from headrace.run.waiting import waited
from headrace.targets import LostRun, Target, capabilities_of


@dataclass(frozen=True)
class WayOfFlow:
    """One way of a data flow with several destinations."""

    task: DataFlowTask
    flow: Callable[[], DataFlowTask | SharedFlow]

    def bind(self) -> DataFlowTask:
        """Binds it once more, with what is known by now."""
        flow = self.flow()
        assert isinstance(flow, SharedFlow)
        way = next(way for way in flow.ways if way.destination.name == self.task.destination.name)
        return replace(way, id=self.task.id, flow=self.task.flow)


class Flows:
    """All data flows of one run, planned before it or when they start. One call after the other, on any threads."""

    def __init__(
        self,
        package: BoundPackage,
        early: EarlyFlows,
        folder: RunFolder,
        redactor: Redactor,
        events: EventLog,
        summary: Summary,
        phases: Phases,
        attempt: Attempt,
        metrics: MetricsRecorder,
        judging: Judging,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._package = package
        self._early = early
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._summary = summary
        self._phases = phases
        self._attempt = attempt
        self._is_cancelled = is_cancelled
        # Whether everybody knows that the run has started.
        self._is_started = False
        self._plans: dict[str, DataFlowPlan | SkippedTask | FinishedTask] = {}
        self._tasks: dict[str, DataFlowTask] = {}
        # Of data flows with several destinations that are planned: the ways to them.
        self._ways: dict[str, list[DataFlowTask]] = {}
        # What was found for all ways of a data flow with several destinations.
        self._prepared_ways: dict[str, PreparedFlow | SkippedTask] = {}
        self._records: FlowRecords | None = None
        # How the names of files of each flow begin, and those that its plans have had.
        self._stems: dict[str, str] = {}
        self._file_stems: dict[str, set[str]] = {}
        self.loading = FlowLoading(
            folder, redactor, events, summary, phases, attempt, metrics, judging, package.affinity, self.reading
        )
        self.builds = Builds(folder, redactor, events, summary, phases)
        self.destinations = RunDestinations(
            package, folder, redactor, events, phases, attempt, is_cancelled, self._may_append_late
        )
        # Of a replay: rejects of its task that are in none.
        self.open_behind: int | None = None

    def start(self, finished: Callable[[str], bool]) -> None:
        """Looks at the files and tables of early flows, plans them, and begins the run in the ledgers. `finished`:
        whether the journal says that a task has ended.

        What fails and can work later is tried again as the most patient of these flows says: they are planned together.
        """
        retry, number = self._most_patient(), 0
        while True:
            try:
                self._start(finished)
                return
            except HeadraceError as error:
                number += 1
                if not error.retryable or number > retry.times or not self.destinations.can_begin_again:
                    raise
                wait, times = retry.wait(number), f"{number} of {retry.times}"
                self._events.notice(f"connecting and planning is tried again in {wait:g} s ({times}): {error.what}")
                self.destinations.forget()
                if not waited(wait, self._is_cancelled):
                    raise

    def _most_patient(self) -> Retry:
        """That of the early flows which tries most often."""
        early = {flow.definition for flow in self._early_flows()}
        retries = [task.retry for task in self._package.all_tasks() if task.id in early]
        return max(retries, key=lambda own: own.times, default=Retry())

    def _start(self, finished: Callable[[str], bool]) -> None:
        """A resumed run asks journal and ledger first: files of what they call ended may be gone."""
        if self._attempt.is_resumed and self._attempt.replay is None:
            self.destinations.open([PreparedFlow(flow, _NO_SOURCE) for flow in self._early_flows()])
        with self._phases.of("plan"):
            try:
                prepared = self._sources(finished)
            except BaseException:
                self._started(None)
                raise
            self._started(prepared)
            if self._attempt.is_resumed:
                gone = {item.task for item in prepared if isinstance(item, SkippedTask) and item.missing_files}
                requests.check_sources(self._folder, _sources(prepared), self._redactor, without=gone)
        if not self.destinations.is_open:
            self.destinations.open([item for item in prepared if isinstance(item, PreparedFlow)])
        plan = self._planned(prepared, self.destinations.targets)
        self._tasks = {item.task.id: item.task for item in prepared if isinstance(item, PreparedFlow)}
        self._ways = self._ways_to_load(prepared)
        self._plans = {task.task: task for task in plan.tasks}
        if self._attempt.is_resumed and self._attempt.replay is None:
            self._account_for_finished()

    def _ways_to_load(self, prepared: list[PreparedFlow | SkippedTask]) -> dict[str, list[DataFlowTask]]:
        """Of data flows with several destinations: where there is something to load, also ways without files."""
        left = {own.flow for own in self._tasks.values()} - {""}
        without = {item.task for item in prepared if isinstance(item, SkippedTask) and item.missing_files}
        known = {flow.id: flow for flow in self._early_flows() if flow.id in without} if without else {}
        known |= self._tasks
        ways: dict[str, list[DataFlowTask]] = {}
        for item in prepared:
            own = known.get(_id(item))
            if own is not None and own.flow in left:
                ways.setdefault(own.flow, []).append(own)
        return ways

    def _early_flows(self) -> list[DataFlowTask]:
        """Those that are switched on, under names that may be shown."""
        flows = [flow for flow in self._package.flows if flow.definition in self._early.early and flow.when]
        return [flow for flow, _ in nameable_flows(replace(self._package, flows=flows))]

    def _sources(self, finished: Callable[[str], bool]) -> list[PreparedFlow | SkippedTask]:
        """In the order of the plan. Of a flow that has ended nothing is looked at."""
        replay = self._attempt.replay
        if replay is not None:
            return list(replay.sources(self._package, self._is_cancelled))
        flows = [flow for flow in self._package.flows if flow.definition in self._early.early]
        early = replace(self._package, flows=flows)
        named = [flow for flow, _ in nameable_flows(early)]
        done = {flow.id for flow in named if self._has_ended(flow, finished)}
        # Under the names of all: without those that have ended the others would be numbered anew.
        left = [flow for flow in named if flow.id not in done]
        prepared = {_id(item): item for item in prepare_sources(replace(early, flows=left), self._is_cancelled)}
        return [_done(flow) if flow.id in done else prepared[flow.id] for flow in named]

    def _has_ended(self, flow: DataFlowTask, finished: Callable[[str], bool]) -> bool:
        if not self._attempt.is_resumed or not flow.when:
            return False
        return finished(flow.flow or flow.id) or self._is_in_ledger(flow)

    def _is_in_ledger(self, flow: DataFlowTask) -> bool:
        target = self.destinations.target(flow.destination.connection)
        return target.capabilities.ledger and target.task_progress(self._folder.run_id, flow.id).finished

    def _account_for_finished(self) -> None:
        """Flows that are perhaps not started any more, because the journal knows their end, belong to the accounts."""
        for planned in self._plans.values():
            if isinstance(planned, FinishedTask):
                self._finished_before(planned)
        self.builds.account_for_earlier()
        for flow in with_late_flows(replace(self._package, flows=[]), self._folder).flows:
            if self._is_in_ledger(flow):
                late = self._plan_one(PreparedFlow(flow, _NO_SOURCE), known=True, keys=KeyAnswers())
                assert isinstance(late, FinishedTask)
                self._finished_before(late)

    def _planned(self, prepared: list[PreparedFlow | SkippedTask], targets: OpenTargets) -> RunPlan:
        """Plans and begins the ledger: a new run in this order, so that a plan that fails leaves no trace; a resumed
        one asks the ledger what is left, after it has fenced the earlier attempt off.
        """
        attempt = self._attempt
        with self._phases.of("plan"):
            resumed_run = self._folder.run_id if attempt.is_resumed else None
            known = requests.load_keys(self._folder, _sources(prepared), self._redactor) if resumed_run else None
            keys = KeyAnswers(known, is_cancelled=self._is_cancelled)
            plan = plan_run(self._package, prepared, targets, resumed_run, keys, self._facts(), stems=self._stems)
            if attempt.replay is not None:
                plan = self._claimed(attempt.replay, plan, prepared, targets)
            if attempt.is_resumed:
                requests.check_partitions(self._folder, plan, self._redactor)
            for note in plan.notes:
                self._events.notice(note)
        if not attempt.is_resumed:
            with self._phases.of("start"):
                appended = self._unfinished(plan, prepared, targets)
                if attempt.request is not None:
                    # Only what gets as far as the ledger can be resumed.
                    requests.save_sources(self._folder, _sources(prepared), self._redactor)
                    requests.save_partitions(self._folder, keys.document, plan, self._redactor)
                    self._folder.write_document(self._folder.environment, described(self._package, self._redactor))
                    requests.save(self._folder, attempt.request, self._package, self._redactor, attempt.began_us)
                for target in targets.all():
                    self.destinations.begin(target)
                for target, unfinished in appended:
                    target.abandon_runs(unfinished)
        return plan

    def _facts(self) -> RunFacts:
        return RunFacts(self._folder.run_id, self._package.content_hash, self._attempt.began_us)

    def _claimed(
        self,
        replay: ReplayRun,
        plan: RunPlan,
        prepared: list[PreparedFlow | SkippedTask],
        targets: OpenTargets,
    ) -> RunPlan:
        tasks = [item.task for item in prepared if isinstance(item, PreparedFlow)]
        claimants = [(task, targets[task.destination.connection]) for task in tasks]
        self.open_behind = replay.open_behind(claimants)
        return replay.planned(plan, claimants, self._redactor)

    def _unfinished(
        self, plan: RunPlan, prepared: list[PreparedFlow | SkippedTask], targets: OpenTargets
    ) -> list[tuple[Target, list[LostRun]]]:
        if self._attempt.replay is not None:
            return []  # whatever those have appended, it is not the rows of a replay
        name, abandon = self._redactor.text(self._package.name), self._attempt.abandon
        found = appended_by_unfinished_runs(name, plan, prepared, targets, may_abandon=abandon)
        if self._may_append_late():
            found += [(target, refuse_unfinished(name, target, may_abandon=abandon)) for target in targets.all()]
        return found

    def _may_append_late(self) -> bool:
        """Whether a flow that is planned later may append rows."""
        if self._package.children:
            return True
        late = (task for task in self._package.all_tasks() if task.id in self._early.late)
        return any(
            destination.get("target") not in ("create", "replace")
            for task in late
            for destination in task.own["destinations"].values()
        )

    def reading(self, connection: Connection) -> AbstractContextManager[Target]:
        """A place that is only read, open for the block."""
        return self.destinations.targets.reading(connection)

    def planned_order(self) -> list[str]:
        """The flows that were planned before the run, in order; one with several destinations once."""
        planned = (plan for plan in self._plans.values() if isinstance(plan, DataFlowPlan))
        return list(dict.fromkeys(plan.flow or plan.task for plan in planned))

    def ways(self, instance: str, bind: Callable[[], DataFlowTask | SharedFlow]) -> list[WayOfFlow]:
        """The ways of a data flow with several destinations; none of any other. `bind` binds it, if it is not planned
        already.
        """
        self._prepared_ways.pop(instance, None)
        if instance in self._plans or instance in self._tasks:
            return []
        if instance in self._ways:
            return [WayOfFlow(task, bind) for task in self._ways[instance]]
        flow = bind()
        return [WayOfFlow(task, bind) for task in flow.ways] if isinstance(flow, SharedFlow) else []

    def run(
        self,
        instance: str,
        bind: Callable[[], DataFlowTask],
        place: Place,
        cancellation: Cancellation,
    ) -> FlowEnd:
        """Loads one data flow: one that is planned, or one that is bound and planned now. Raises HeadraceError."""
        planned, target = self.ready(instance, bind, place)
        if isinstance(planned, SkippedTask | FinishedTask):
            return self.nothing_to_load(planned)
        assert target is not None
        with self.destinations.failing(target):
            plan = self.loading.announced(planned, target)
            outcome = self.loading.outcome(plan, target, cancellation)
            self.loading.name_offender(plan, outcome, target, cancellation)
            warnings = self.loading.ended(plan, outcome)
        self._summary.tried.discard(instance)
        self._summary.retried.discard(instance)
        return FlowEnd(warnings=warnings)

    def ready(
        self, instance: str, bind: Callable[[], DataFlowTask], place: Place
    ) -> tuple[DataFlowPlan | SkippedTask | FinishedTask, Target | None]:
        """What there is to load, planned before or now, and its destination."""
        planned = self._plans.pop(instance, None)
        task = self._tasks.get(instance)
        if task is not None and self.destinations.targets.find(task.destination.connection) is not None:
            self.destinations.target(task.destination.connection).recover()
        if planned is None or (isinstance(planned, DataFlowPlan) and instance in self._summary.tried):
            task, planned = self._planned_late(instance, bind, place)
        self._summary.tried.add(instance)
        if not isinstance(planned, FinishedTask):
            self._drop_rejects(instance, planned)
        return planned, None if task is None else self.destinations.targets.find(task.destination.connection)

    def _drop_rejects(self, instance: str, planned: DataFlowPlan | SkippedTask) -> None:
        """What an earlier try or attempt has written is no part of what comes now: all rejects are found once more."""
        stems = self._file_stems.setdefault(instance, set())
        if isinstance(planned, DataFlowPlan):
            stems.update(planned.file_stems)
        for stem in stems:
            self._folder.remove_rejects(stem)

    def has_loaded(self, instance: str) -> bool:
        """Whether this attempt of the run has loaded it, and has said so."""
        return any(table.plan.task == instance and table.outcome.error is None for table in self._summary.tables)

    def nothing_to_load(self, planned: SkippedTask | FinishedTask) -> FlowEnd:
        """Accounts for a flow that has nothing to do."""
        if isinstance(planned, SkippedTask):
            self._summary.skip(planned)
            return FlowEnd(reason=planned.reason)
        self._finished_before(planned)
        return FlowEnd()

    def _planned_late(
        self, instance: str, bind: Callable[[], DataFlowTask], place: Place
    ) -> tuple[DataFlowTask | None, DataFlowPlan | SkippedTask | FinishedTask]:
        task = bind()
        target = self.destinations.target(task.destination.connection)
        target.recover()
        if place.is_anew and task.destination.target == "append" and self._has_appended(instance, target):
            raise LedgerError(
                f"the run cannot be resumed: task {instance} has appended rows, and would append them again, because a "
                "task before it, which had failed, is done anew",
                hint="Start a new run with --abandon, once the rows are removed.",
            )
        is_retry = instance in self._summary.tried
        known = self._attempt.is_resumed or is_retry
        with self._phases.of("plan"):
            if known:
                progress = target.task_progress(self._folder.run_id, instance)
                if progress.finished:
                    plan = self._plan_one(PreparedFlow(task, _NO_SOURCE), known=True, keys=KeyAnswers())
                    return task, plan
            found = self._prepared_ways.get(task.flow) or look_at_flow(task, self._package, self._is_cancelled)
            if task.flow:
                self._prepared_ways[task.flow] = found
            prepared = prepare_flow(task, self._package, self._is_cancelled, found)
            record = self._record_before(instance) if known else None
            if record is not None:
                now = _NO_SOURCE if isinstance(prepared, SkippedTask) else prepared.source
                requests.check_source(self._folder, record["source"], now, self._redactor)
            if isinstance(prepared, SkippedTask):
                return None, prepared
            keys = KeyAnswers(None if record is None else record["keys"], is_cancelled=self._is_cancelled)
            planned = self._plan_one(prepared, known=known, keys=keys)
            if record is None and self._attempt.request is not None and isinstance(planned, DataFlowPlan):
                add_record(self._folder, self._record(task, planned, prepared.source, place, keys))
        return task, planned

    def _has_appended(self, instance: str, target: Target) -> bool:
        """Whether the task has rows in the ledger under one of its earlier names in this run."""
        progresses = [target.task_progress(self._folder.run_id, name) for name in earlier_names(instance)]
        return any(progress.finished or progress.slices for progress in progresses)

    def _record_before(self, instance: str) -> dict[str, Any] | None:
        """What was kept of a flow: by an earlier attempt of the run, or an earlier try of this one."""
        if instance in self._summary.tried:
            return FlowRecords(self._folder).of(instance)
        if self._records is None:
            self._records = FlowRecords(self._folder)
        return self._records.of(instance)

    def _plan_one(
        self, prepared: PreparedFlow, *, known: bool, keys: KeyAnswers
    ) -> DataFlowPlan | SkippedTask | FinishedTask:
        run_id = self._folder.run_id if known else None
        plan = plan_run(
            self._package,
            [prepared],
            self.destinations.targets,
            run_id,
            keys,
            self._facts(),
            stem=f"{prepared.task.destination.table}.{prepared.task.id}",
            stems=self._stems,
        )
        return plan.tasks[0]

    def _record(
        self, task: DataFlowTask, plan: DataFlowPlan, source: SourceSnapshot, place: Place, keys: KeyAnswers
    ) -> dict[str, Any]:
        return {
            "task": self._redactor.text(task.id),
            "definition": task.definition,
            "packages": [{"task": name, "values": self._stored(values)} for name, values in place.packages],
            "values": self._stored(place.frame.values()),
            "source": requests.described(source, self._redactor),
            "keys": keys.document,
            "partitions": None if plan.partitioning is None else plan.partitioning.to_dict(),
        }

    def _stored(self, values: Mapping[str, object]) -> dict[str, Any]:
        stored = {name: to_stored(value, self._redactor.hides) for name, value in values.items()}
        return {name: SECRET if value == SECRET else [value] for name, value in stored.items()}

    def _finished_before(self, task: FinishedTask) -> None:
        if any(known.task.task == task.task for known in self._summary.finished):
            return
        table = FinishedTable.of(task, self._folder.rejects)
        self._summary.add_finished(table)
        self._events.emit("task_skipped", task=task.task, kind="data_flow", table=task.table, reason=LOADED_BEFORE)

    def _started(self, prepared: list[PreparedFlow | SkippedTask] | None) -> None:
        if self._is_started:
            return
        self._is_started = True
        tasks: list[dict[str, Any]]
        if prepared is None:
            flows = [flow for flow in self._package.flows if flow.when]
            tasks = [{"task": self._redactor.text(flow.id), "table": flow.destination.table} for flow in flows]
        else:
            # What an earlier attempt has finished is not read.
            read = [item for item in prepared if isinstance(item, PreparedFlow) and item.source is not _NO_SOURCE]
            first = {item.task.flow: item for item in reversed(read)}
            tasks = [
                {
                    "task": item.task.id,
                    "table": item.task.destination.table,
                    # What several destinations get in one pass is read once.
                    "bytes_total": item.source.bytes_total
                    if not item.task.flow or first.get(item.task.flow) is item
                    else 0,
                    **({"flow_of": item.task.flow} if item.task.flow else {}),
                }
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


# Of a task that an earlier attempt has finished: its files may be gone.
_NO_SOURCE = SourceSnapshot(name="", files=[], slices=[])


def _done(flow: DataFlowTask) -> PreparedFlow | SkippedTask:
    """Of a flow that the journal calls ended: the ledger has its accounts, where there is one."""
    if capabilities_of(flow.destination.connection).ledger:
        return PreparedFlow(flow, _NO_SOURCE)
    return SkippedTask(flow.id, flow.destination.table, LOADED_BEFORE)


def _id(item: PreparedFlow | SkippedTask) -> str:
    return item.task if isinstance(item, SkippedTask) else item.task.id


def _sources(prepared: list[PreparedFlow | SkippedTask]) -> dict[str, SourceSnapshot]:
    """Of the flows that are left."""
    return {
        item.task.id: item.source
        for item in prepared
        if isinstance(item, PreparedFlow) and item.source is not _NO_SOURCE
    }
