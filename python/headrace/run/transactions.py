"""Tasks of one transaction: data flows and SQL of one destination that become visible together."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.errors import CancelledError, HeadraceError, InternalError, TargetError
from headrace.executors import FlowOutcome
from headrace.model import Connection
from headrace.planning import DataFlowPlan, FinishedTask, SkippedTask
from headrace.run.cancellation import Cancellation
from headrace.run.control.place import Place
from headrace.run.control.work import FlowEnd, Member
from headrace.run.events import EventLog
from headrace.run.flows import Flows
from headrace.run.leaves.sql import SqlExecution
from headrace.run.lookup_tables import MemberOfTransaction, committed_rows, refuse_unseen, rows_in_group
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
class Part:
    """A task of the transaction: a data flow, or with `sql` statements. The rest is what became of it."""

    member: Member
    sql: SqlExecution | None = None
    plan: DataFlowPlan | None = None
    nothing: SkippedTask | None = None
    outcome: FlowOutcome | None = None
    outputs: dict[str, object] = field(default_factory=dict)
    is_running: bool = False
    is_done: bool = False
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Its id in this run."""
        return self.member.instance


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
            planned, target = self._flows.ready(part.name, part.member.flow, self._place)
            if isinstance(planned, SkippedTask):
                part.nothing = planned
            elif isinstance(planned, FinishedTask) or target is None:
                raise InternalError(f"the ledger has {part.name}, but not the transaction of {self._name}")
            else:
                if target is not self._target:
                    raise self._elsewhere(part, planned.connection)
                part.plan = planned
        self._refuse_two_loads()

    def _refuse_two_loads(self) -> None:
        """Both were planned by the table as it is before."""
        first: dict[tuple[str, str], str] = {}
        for part in self._parts:
            if part.plan is None:
                continue
            name_key = self._target.capabilities.name_key
            table = (name_key(part.plan.schema or self._target.default_schema or ""), name_key(part.plan.table))
            if first.setdefault(table, part.name) != part.name:
                raise TargetError(
                    f"tasks {first[table]} and {part.name} of one transaction load the same table",
                    found=f"table {part.plan.table}",
                    hint="Give one data flow all files, or take one out of the transaction.",
                )

    def _elsewhere(self, part: Part, connection: str) -> TargetError:
        return TargetError(
            f"task {part.name} is a part of a transaction of {self._connection.name} and works elsewhere",
            found=f"connection {connection}",
            hint="Take the task out of the transaction.",
        )

    def _executed(self) -> dict[str, LoadTimes]:
        flows = [part for part in self._parts if part.plan is not None]
        plans = [part.plan for part in flows if part.plan is not None]
        with self._target.transaction(self._run_id, self._name, plans, self._cancellation.is_set) as group:
            if group.stages_first:
                members = [MemberOfTransaction(part.name, part.plan) for part in self._parts if part.nothing is None]
                refuse_unseen(members, self._connection, self._target.default_schema)
            else:
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
                elif part.plan is not None:
                    if not group.stages_first:
                        self._stage(part, group)
                    group.switch(part.plan)
            self._cancellation.check(f"task {self._name}")
            return dict(group.commit(self._mark()))

    def _announce(self, parts: Sequence[Part]) -> None:
        for part in parts:
            assert part.plan is not None
            part.plan = self._flows.loading.announced(part.plan, self._target)

    def _stage(self, part: Part, group: GroupTransaction) -> None:
        assert part.plan is not None
        # Rows of flows that come first are staged before the transaction begins: it has changed nothing by then.
        others = committed_rows(self._flows.reading)
        rows_of = others if group.stages_first else rows_in_group(group, self._connection, others)
        part.outcome = self._flows.loading.outcome(part.plan, Staging(self._target, group), self._cancellation, rows_of)
        if part.outcome.error is not None:
            raise part.outcome.error

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
            elif part.nothing is not None:
                tasks[part.name] = {"reason": part.nothing.reason}
        return json.dumps({"tasks": tasks}, ensure_ascii=False, separators=(",", ":"))

    def _succeeded(self, times: dict[str, LoadTimes]) -> list[FlowEnd]:
        ends = []
        for part in self._parts:
            if part.nothing is not None:
                ends.append(self._flows.nothing_to_load(part.nothing))
                self._events.emit("task_skipped", task=part.name, kind="data_flow", reason=ends[-1].reason)
            elif part.plan is not None and part.outcome is not None:
                own = times[part.plan.task]
                done = replace(part.outcome, times=own, warnings=own.warnings)
                ends.append(FlowEnd(warnings=self._flows.loading.ended(part.plan, done)))
            else:
                self._sql_ended(part, "success")
                ends.append(FlowEnd(outputs=part.outputs))
        return ends

    def _undone(self, error: BaseException) -> BaseException:
        """Accounts for flows whose rows had come, and finds out which row the error is about."""
        for part in self._parts:
            if part.is_running:
                self._sql_ended(part, "cancelled" if part.is_done else "failed")
            if part.plan is None or part.outcome is None:
                continue
            outcome = part.outcome
            if outcome.error is None:
                outcome = replace(outcome, times=None, error=self._also_undone(part, error))
            if outcome.error is error:
                self._flows.loading.name_offender(part.plan, outcome, self._target, self._cancellation)
            with suppress(BaseException):  # it raises the error of the flow
                self._flows.loading.ended(part.plan, outcome)
        if self._cancellation.is_set() and isinstance(error, HeadraceError):
            return self._cancellation.error(f"task {self._name}")
        return error

    def _sql_ended(self, part: Part, status: str) -> None:
        """The error of one that has failed is told with the end of the whole."""
        self._events.emit(
            "task_finished", task=part.name, kind="sql", status=status, seconds=round(part.seconds, 6), error=None
        )

    def _also_undone(self, part: Part, error: BaseException) -> HeadraceError:
        if self._cancellation.is_set():
            return CancelledError("cancelled; this task loaded nothing")
        why = error.what if isinstance(error, HeadraceError) else type(error).__name__
        return TargetError(
            f"nothing of task {part.name} became visible: its transaction, {self._name}, was undone", found=why
        )

    def _done_before(self, mark: dict[str, Any]) -> list[FlowEnd]:
        """All of it was committed by an earlier attempt of the run."""
        tasks, ends = mark.get("tasks", {}), []
        for part in self._parts:
            known = tasks.get(part.name, {})
            if part.sql is not None:
                ends.append(FlowEnd(outputs=from_mark(known.get("outputs"), part.name)))
            elif "reason" in known:
                ends.append(FlowEnd(reason=known["reason"]))
            else:
                planned, _ = self._flows.ready(part.name, part.member.flow, self._place)
                if not isinstance(planned, FinishedTask):
                    raise InternalError(f"the ledger has the transaction of {self._name}, but not {part.name}")
                ends.append(self._flows.nothing_to_load(planned))
        return ends
