"""Tasks of one transaction: data flows and SQL of one destination that become visible together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.errors import CancelledError, HeadraceError, InternalError, TargetError
from headrace.executors import FlowOutcome
from headrace.model import Connection, DataFlowTask
from headrace.planning import DataFlowPlan, FinishedTask, SkippedTask
from headrace.run.cancellation import Cancellation
from headrace.run.control.place import Place
from headrace.run.control.work import FlowEnd, Member
from headrace.run.events import EventLog
from headrace.run.flows import Flows
from headrace.run.leaves.sql import SqlExecution
from headrace.run.lookup_tables import MemberOfTransaction, committed_rows, refuse_unseen, rows_in_group
from headrace.run.parts_of_flow import PlaceOfWays, StagingWays
from headrace.run.sql.marks import from_mark
from headrace.targets import (
    DestinationWatcher,
    Flow,
    GroupTransaction,
    LoadTimes,
    Settle,
    Target,
    target_key,
)


@dataclass
class Load:
    """One table that a data flow loads: `name` is the id of the flow, or of its way to one of several destinations. The
    rest is what became of it.
    """

    name: str
    bind: Callable[[], DataFlowTask]
    plan: DataFlowPlan | None = None
    nothing: SkippedTask | None = None
    outcome: FlowOutcome | None = None


@dataclass
class Part:
    """A task of the transaction: a data flow with its `loads`, or with `sql` statements. The rest is what became of
    it.
    """

    member: Member
    sql: SqlExecution | None = None
    loads: Sequence[Load] = ()
    outputs: dict[str, object] = field(default_factory=dict)
    is_running: bool = False
    is_done: bool = False
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Its id in this run."""
        return self.member.instance

    @property
    def plans(self) -> list[DataFlowPlan]:
        """What there is to load."""
        return [load.plan for load in self.loads if load.plan is not None]


class Staging:
    """A `Loader`: rows of the flows of a transaction."""

    def __init__(self, target: Target, group: GroupTransaction) -> None:
        self._target = target
        self._group = group

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        """That of the target."""
        return self._target.sink_spec(run_id, plan)

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        """All but the end."""
        return self._group.stage(plan, flow, settle)

    def watcher(self, run_id: str, plans: Sequence[DataFlowPlan]) -> DestinationWatcher | None:
        """That of the target."""
        return self._target.watcher(run_id, plans)


class Transaction:
    """One try of one task with a transaction. `name`: its id in this run, under which the ledger has its mark."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        parts: Sequence[Part],
        place: Place,
        run_id: str,
        flows: Flows,
        events: EventLog,
    ) -> None:
        self._name = name
        self._connection = connection
        self._parts = parts
        self._place = place
        self._cancellation: Cancellation = place.cancellation
        self._run_id = run_id
        self._flows = flows
        self._events = events
        self._target = flows.destinations.target(connection)
        # Of a flow with several destinations, whose rows an error is about.
        self._at_work: str | None = None

    def run(self) -> list[FlowEnd]:
        """The ends of the tasks, in their order. Raises the error for which all of them were undone."""
        self._target.recover()
        finished = self._target.finished_task(self._run_id, self._name)
        if finished is not None:
            return self._done_before(json.loads(finished.result or "{}"))
        with self._flows.destinations.failing(self._target):
            self._prepare()
            try:
                times = self._executed()
            except BaseException as error:
                raise self._undone(error) from error
            return self._succeeded(times)

    def _prepare(self) -> None:
        """Binds and plans all flows before the first one moves a row."""
        for part in self._parts:
            if part.sql is not None:
                if target_key(part.sql.connection) != target_key(self._connection):
                    raise self._elsewhere(part, part.sql.connection.name)
                continue
            for load in part.loads:
                self._plan(part, load)
        self._refuse_two_loads()

    def _plan(self, part: Part, load: Load) -> None:
        planned, target = self._flows.ready(load.name, load.bind, self._place)
        if isinstance(planned, SkippedTask):
            load.nothing = planned
        elif isinstance(planned, FinishedTask) or target is None:
            raise InternalError(f"the ledger has {load.name}, but not the transaction of {self._name}")
        else:
            if target is not self._target:
                raise self._elsewhere(part, planned.connection)
            load.plan = planned

    def _refuse_two_loads(self) -> None:
        """Both were planned by the table as it is before."""
        first: dict[tuple[str, str], str] = {}
        name_key = self._target.capabilities.name_key
        for plan in (plan for part in self._parts for plan in part.plans):
            table = (name_key(plan.schema or self._target.default_schema or ""), name_key(plan.table))
            if first.setdefault(table, plan.task) != plan.task:
                raise TargetError(
                    f"tasks {first[table]} and {plan.task} of one transaction load the same table",
                    found=f"table {plan.table}",
                    hint="Give one data flow all files, or take one out of the transaction.",
                )

    def _elsewhere(self, part: Part, connection: str) -> TargetError:
        return TargetError(
            f"task {part.name} is a part of a transaction of {self._connection.name} and works elsewhere",
            found=f"connection {connection}",
            hint="Take the task out of the transaction.",
        )

    def _executed(self) -> dict[str, LoadTimes]:
        flows = [part for part in self._parts if part.plans]
        plans = [plan for part in flows for plan in part.plans]
        with self._target.transaction(self._run_id, self._name, plans, self._cancellation.is_set) as group:
            refuse_unseen(self._members(), self._connection, self._target, stages_first=group.stages_first)
            if not group.stages_first:
                # The ledger is written before the transaction begins.
                self._announce(flows)
            for part in flows if group.stages_first else ():
                self._announce([part])
                self._stage(part, group)
            group.begin()
            for part in self._parts:
                self._cancellation.check(f"task {self._name}")
                if part.sql is not None:
                    self._statements(part, part.sql, group)
                elif part.plans:
                    if not group.stages_first:
                        self._stage(part, group)
                    for plan in part.plans:
                        # Rows that are appended meet the table now.
                        self._at_work = plan.task
                        group.switch(plan)
                    self._at_work = None
            self._cancellation.check(f"task {self._name}")
            return dict(group.commit(self._mark()))

    def _members(self) -> list[MemberOfTransaction]:
        sql = [(part, None) for part in self._parts if part.sql is not None]
        loads = [(part, plan) for part in self._parts for plan in part.plans]
        own = sorted([*sql, *loads], key=lambda item: self._parts.index(item[0]))
        return [MemberOfTransaction(part.name, plan) for part, plan in own]

    def _announce(self, parts: Sequence[Part]) -> None:
        for part in parts:
            plans = part.plans
            for load in part.loads:
                if load.plan is not None:
                    load.plan = self._flows.loading.announced(load.plan, self._target, plans, plans)

    def _stage(self, part: Part, group: GroupTransaction) -> None:
        # Rows of flows that come first are staged before the transaction begins: it has changed nothing by then.
        others = committed_rows(self._flows.reading)
        rows_of = others if group.stages_first else rows_in_group(group, self._connection, others)
        loading, plans = self._flows.loading, part.plans
        if not plans[0].flow:
            outcomes = [loading.outcome(plans[0], Staging(self._target, group), self._cancellation, rows_of)]
            self._at_work = plans[0].task
        else:
            loader = StagingWays([PlaceOfWays(self._target, group, [plan.task for plan in plans])])
            outcomes = list(loading.outcomes(plans, loader, self._cancellation, rows_of))
            self._at_work = loader.at_work
        for load, outcome in zip((own for own in part.loads if own.plan is not None), outcomes, strict=True):
            load.outcome = outcome
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        self._at_work = None

    def _statements(self, part: Part, sql: SqlExecution, group: GroupTransaction) -> None:
        self._events.emit("task_started", task=part.name, kind="sql")
        part.is_running = True
        started = time.monotonic()
        try:
            with group.statements() as session:
                part.outputs = sql.inside(session)
            part.is_done = True
        finally:
            part.seconds = time.monotonic() - started

    def _mark(self) -> str:
        """What has to be known when all of it is found in the ledger."""
        tasks: dict[str, Any] = {}
        for part in self._parts:
            if part.sql is not None:
                tasks[part.name] = {"outputs": part.sql.marked(part.outputs)}
            for load in part.loads:
                if load.nothing is not None:
                    tasks[load.name] = {"reason": load.nothing.reason}
                elif load.outcome is not None and load.outcome.result and load.outcome.result.get("shared"):
                    tasks[load.name] = {"shared": load.outcome.result["shared"]}
        return json.dumps({"tasks": tasks}, ensure_ascii=False, separators=(",", ":"))

    def _succeeded(self, times: dict[str, LoadTimes]) -> list[FlowEnd]:
        ends = []
        for part in self._parts:
            if part.sql is not None:
                self._sql_ended(part, "success")
                ends.append(FlowEnd(outputs=part.outputs))
            else:
                ends.append(FlowEnd.of_ways([self._loaded(load, times) for load in part.loads]))
        return ends

    def _loaded(self, load: Load, times: dict[str, LoadTimes]) -> FlowEnd:
        if load.nothing is not None:
            end = self._flows.nothing_to_load(load.nothing)
            self._events.emit("task_skipped", task=load.name, kind="data_flow", reason=end.reason)
            return end
        assert load.plan is not None and load.outcome is not None
        own = times[load.plan.task]
        done = replace(load.outcome, times=own, warnings=own.warnings)
        return FlowEnd(warnings=self._flows.loading.ended(load.plan, done))

    def _undone(self, error: BaseException) -> BaseException:
        """Accounts for flows whose rows had come, and finds out which row the error is about."""
        for part in self._parts:
            if part.is_running:
                self._sql_ended(part, "cancelled" if part.is_done else "failed")
            for load in part.loads:
                if load.plan is not None and load.outcome is not None:
                    self._account(load.plan, load.outcome, error)
        if self._cancellation.is_set() and isinstance(error, HeadraceError):
            return self._cancellation.error(f"task {self._name}")
        return error

    def _account(self, plan: DataFlowPlan, outcome: FlowOutcome, error: BaseException) -> None:
        is_guilty = self._at_work == plan.task
        if outcome.error is None:
            own = error if is_guilty and isinstance(error, HeadraceError) else self._also_undone(plan, error)
            outcome = replace(outcome, times=None, error=own)
        if outcome.error is error and is_guilty:
            self._flows.loading.name_offender(plan, outcome, self._target, self._cancellation)
        with suppress(BaseException):  # it raises the error of the flow
            self._flows.loading.ended(plan, outcome)

    def _sql_ended(self, part: Part, status: str) -> None:
        """The error of one that has failed is told with the end of the whole."""
        self._events.emit(
            "task_finished", task=part.name, kind="sql", status=status, seconds=round(part.seconds, 6), error=None
        )

    def _also_undone(self, plan: DataFlowPlan, error: BaseException) -> HeadraceError:
        if self._cancellation.is_set():
            return CancelledError("cancelled; this task loaded nothing")
        why = error.what if isinstance(error, HeadraceError) else type(error).__name__
        return TargetError(
            f"nothing of task {plan.task} became visible: its transaction, {self._name}, was undone", found=why
        )

    def _done_before(self, mark: dict[str, Any]) -> list[FlowEnd]:
        """All of it was committed by an earlier attempt of the run."""
        tasks, ends = mark.get("tasks", {}), []
        for part in self._parts:
            known = tasks.get(part.name, {})
            if part.sql is not None:
                ends.append(FlowEnd(outputs=from_mark(known.get("outputs"), part.name)))
            else:
                ends.append(
                    FlowEnd.of_ways([self._loaded_before(load, tasks.get(load.name, {})) for load in part.loads])
                )
        return ends

    def _loaded_before(self, load: Load, known: dict[str, Any]) -> FlowEnd:
        if "reason" in known:
            return FlowEnd(reason=known["reason"])
        planned, _ = self._flows.ready(load.name, load.bind, self._place)
        if not isinstance(planned, FinishedTask):
            raise InternalError(f"the ledger has the transaction of {self._name}, but not {load.name}")
        return self._flows.nothing_to_load(planned)
