"""A data flow with several destinations: one pass over its source, and one transaction for each place that they are in.

The places commit one after the other, when all rows are read and every place could. What comes between two of these
commits leaves the first place complete and the others as they were: each has a mark of its own in its ledger, by which
`resume` finds what is there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headrace.errors import CancelledError, HeadraceError, InternalError, LedgerError, TargetError
from headrace.executors import FlowOutcome
from headrace.model import Connection, DataFlowTask
from headrace.planning import DataFlowPlan, FinishedTask, SkippedTask
from headrace.run.control.place import Place
from headrace.run.control.work import FlowEnd
from headrace.run.events import EventLog
from headrace.run.flows import Flows, WayOfFlow
from headrace.run.lookup_tables import committed_rows, rows_in_group
from headrace.run.parts_of_flow import PlaceOfWays, StagingWays
from headrace.run.two_loads import same_table
from headrace.targets import GroupTransaction, Target, target_key

# Said when it is asked to stop between two commits.
_GOES_ON: Final = "some of its tables are visible already, so the others are completed, too; the run stops behind that"


@dataclass
class _Way:
    """What leads to one destination. The rest is what becomes of it; `nothing`: why there is nothing to load for it, or
    was nothing when its place became complete.
    """

    way: WayOfFlow
    plan: DataFlowPlan | None = None
    nothing: SkippedTask | None = None
    outcome: FlowOutcome | None = None
    end: FlowEnd | None = None

    @property
    def task(self) -> DataFlowTask:
        """As it is bound."""
        return self.way.task

    def lacks_what(self, other: _Way) -> bool:
        """Whether it has nothing to load, although the other one, which reads the same, had."""
        if self.nothing is None or other.end is None:
            return False
        front = self.task.front
        return not other.task.is_apart if front is None else other.task.front == front

    @property
    def shown(self) -> str:
        """Its table, for messages."""
        destination = self.task.destination
        return f"{destination.connection.name}.{destination.table}"


@dataclass
class _Group:
    """The ways into one place, which become visible together. `mark`: of one that has committed before, what it says;
    `has_committed`: in this try, or before.
    """

    key: tuple[str, str]
    connection: Connection
    target: Target
    ways: list[_Way] = field(default_factory=list)
    mark: dict[str, Any] | None = None
    has_committed: bool = False
    transaction: GroupTransaction | None = None

    @property
    def opened(self) -> GroupTransaction:
        """Its transaction."""
        if self.transaction is None:
            raise InternalError("a place takes rows before its transaction is there")
        return self.transaction

    @property
    def plans(self) -> list[DataFlowPlan]:
        """What it has to load."""
        return [way.plan for way in self.ways if way.plan is not None]


class SharedLoad:
    """One try of one data flow. `name`: its id in this run, under which the ledgers have its marks."""

    def __init__(
        self, name: str, ways: Sequence[WayOfFlow], place: Place, run_id: str, flows: Flows, events: EventLog
    ) -> None:
        self._name = name
        self._place = place
        self._cancellation = place.cancellation
        self._run_id = run_id
        self._flows = flows
        self._events = events
        self._at_work: str | None = None
        groups: dict[tuple[str, str], _Group] = {}
        for way in ways:
            connection = way.task.destination.connection
            key = target_key(connection)
            if key not in groups:
                groups[key] = _Group(key, connection, flows.destinations.target(connection))
            groups[key].ways.append(_Way(way))
        self._groups = list(groups.values())
        self._ways = [way for group in self._groups for way in group.ways]

    @property
    def _left(self) -> list[_Group]:
        """Those that have not committed before."""
        return [group for group in self._groups if group.mark is None]

    def run(self) -> FlowEnd:
        """How it has ended. Raises the error for which all of it was undone, or for which a part of it is missing."""
        for group in self._groups:
            group.target.recover()
            finished = group.target.finished_task(self._run_id, self._name)
            if finished is not None:
                group.mark, group.has_committed = json.loads(finished.result or "{}"), True
        with ExitStack() as failing:
            for group in self._groups if self._left else ():
                failing.enter_context(self._flows.destinations.failing(group.target))
            try:
                self._prepare()
                if self._left:
                    self._execute()
            except BaseException as error:
                raise self._undone(error) from error
            self._succeeded()
        return FlowEnd.of_ways([way.end for way in self._ways if way.end is not None])

    def _prepare(self) -> None:
        """Binds and plans all ways before a row moves, and accounts for those that have ended before."""
        for group in self._groups:
            for way in group.ways:
                if group.mark is None:
                    self._plan(way, group)
                else:
                    self._known(way, group.mark)
            self._refuse_one_table(group)
        for way in self._ways:
            if way.nothing is not None and any(way.lacks_what(other) for other in self._ways):
                raise LedgerError(
                    f"{self._name} cannot go on: there is nothing to load any more",
                    found=way.nothing.reason,
                    hint="Put the files back as they were, or start a new run: `headrace run`.",
                )

    def _plan(self, way: _Way, group: _Group) -> None:
        planned, target = self._flows.ready(way.task.id, way.way.bind, self._place)
        if isinstance(planned, SkippedTask):
            way.nothing = planned
        elif isinstance(planned, FinishedTask) or target is not group.target:
            raise InternalError(f"the ledger has {way.task.id}, but not the transaction of {self._name}")
        else:
            way.plan = planned

    def _known(self, way: _Way, mark: dict[str, Any]) -> None:
        known = mark.get("tasks", {}).get(way.task.id, {})
        if "reason" in known:
            way.nothing = SkippedTask(way.task.id, way.task.destination.table, known["reason"], missing_files=True)
        else:
            way.end = self._loaded_before(way)

    def _loaded_before(self, way: _Way) -> FlowEnd:
        if self._flows.has_loaded(way.task.id):
            return FlowEnd()
        planned, _ = self._flows.ready(way.task.id, way.way.bind, self._place)
        if not isinstance(planned, FinishedTask):
            raise InternalError(f"the ledger has the transaction of {self._name}, but not {way.task.id}")
        return self._flows.nothing_to_load(planned)

    def _refuse_one_table(self, group: _Group) -> None:
        """Both were planned by the table as it is before."""
        first: dict[tuple[str, str], str] = {}
        name_key = group.target.capabilities.name_key
        for plan in group.plans:
            table = (name_key(plan.schema or group.target.default_schema or ""), name_key(plan.table))
            if first.setdefault(table, plan.task) != plan.task:
                raise same_table(first[table], plan.task, plan.table)

    def _execute(self) -> None:
        with ExitStack() as opened:
            # In one order, so that two runs do not wait for each other.
            for group in sorted(self._left, key=lambda group: group.key):
                transaction = group.target.transaction(self._run_id, self._name, group.plans, self._must_end)
                group.transaction = opened.enter_context(transaction)
            self._announce()
            self._begin(stages_first=False)
            self._stage()
            self._begin(stages_first=True)
            self._cancellation.check(f"task {self._name}")
            for group in self._left:
                for plan in group.plans:
                    # Rows that are appended meet the table now.
                    self._at_work = plan.task
                    group.opened.switch(plan)
            self._at_work = None
            for group in self._left if len(self._left) > 1 else ():
                group.opened.prove()
            self._cancellation.check(f"task {self._name}")
            self._commit()

    def _must_end(self) -> bool:
        """Whether waits end. What is left behind a commit is brought to its end."""
        return self._cancellation.is_set() and not any(group.has_committed for group in self._left)

    def _announce(self) -> None:
        plans = [plan for group in self._left for plan in group.plans]
        for place, way in ((group, way) for group in self._left for way in group.ways):
            if way.plan is None:
                continue
            way.plan = self._flows.loading.announced(
                way.plan,
                place.target,
                place.plans,
                plans,
                places=len(self._groups),
                is_half=len(self._left) < len(self._groups),
            )

    def _begin(self, *, stages_first: bool) -> None:
        for group in self._left:
            if group.opened.stages_first == stages_first:
                group.opened.begin()

    def _stage(self) -> None:
        rows_of = committed_rows(self._flows.reading)
        for group in self._left:
            if not group.opened.stages_first:
                rows_of = rows_in_group(group.opened, group.connection, rows_of)
        loaded = [way for group in self._left for way in group.ways if way.plan is not None]
        plans = [plan for group in self._left for plan in group.plans]
        if not plans:
            return
        taking = [own for own in self._left if own.plans]
        places = [PlaceOfWays(own.target, own.opened, [plan.task for plan in own.plans]) for own in taking]
        loader = StagingWays(places)
        is_told = loaded[0] is next(way for way in self._ways if way.nothing is None)
        outcomes = self._flows.loading.outcomes(plans, loader, self._cancellation, rows_of, is_told=is_told)
        # Whose rows an error is about; the core has told the place of a row that it was giving to a destination.
        self._at_work = loader.at_work
        for way, outcome in zip(loaded, outcomes, strict=True):
            way.outcome = outcome
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        self._at_work = None

    def _commit(self) -> None:
        is_told = False
        for group in self._left:
            if self._cancellation.is_set() and not self._must_end() and not is_told:
                self._events.notice(_GOES_ON, self._name)
                is_told = True
            times = group.opened.commit(self._mark(group))
            group.has_committed = True
            for way in group.ways:
                if way.plan is not None and way.outcome is not None:
                    own = times[way.plan.task]
                    way.outcome = replace(way.outcome, times=own, warnings=own.warnings)

    def _mark(self, group: _Group) -> str:
        """What has to be known when it is found in the ledger."""
        tasks: dict[str, Any] = {}
        for way in group.ways:
            if way.nothing is not None:
                tasks[way.task.id] = {"reason": way.nothing.reason}
            elif way.outcome is not None and way.outcome.result and way.outcome.result.get("shared"):
                # What is told once of several destinations: their rows of the ledger do not add up to it.
                tasks[way.task.id] = {"shared": way.outcome.result["shared"]}
        return json.dumps({"tasks": tasks}, ensure_ascii=False, separators=(",", ":"))

    def _succeeded(self) -> None:
        for way in self._ways:
            if way.nothing is not None:
                way.end = self._flows.nothing_to_load(way.nothing)
                self._events.emit("task_skipped", task=way.task.id, kind="data_flow", reason=way.end.reason)
            elif way.plan is not None and way.outcome is not None:
                way.end = FlowEnd(warnings=self._flows.loading.ended(way.plan, way.outcome))

    def _undone(self, error: BaseException) -> BaseException:
        """Accounts for ways whose rows had come, and finds out which row the error is about."""
        for group in self._groups:
            for way in group.ways:
                if way.plan is not None and way.outcome is not None:
                    self._account(way, way.plan, way.outcome, group, error)
        if self._cancellation.is_set() and isinstance(error, HeadraceError):
            error = self._cancellation.error(f"task {self._name}")
        if isinstance(error, HeadraceError) and any(group.has_committed for group in self._groups):
            self._say_what_is_there(error)
        return error

    def _account(
        self, way: _Way, plan: DataFlowPlan, outcome: FlowOutcome, group: _Group, error: BaseException
    ) -> None:
        if not group.has_committed:
            # Of ways that all get rows at once it is not known whose it is; the core knows then where the row stands.
            is_guilty = self._at_work == plan.task
            if outcome.error is None:
                own = error if is_guilty and isinstance(error, HeadraceError) else self._also_undone(plan, error)
                outcome = replace(outcome, times=None, error=own)
            if outcome.error is error and is_guilty:
                self._flows.loading.name_offender(plan, outcome, group.target, self._cancellation)
        with suppress(BaseException):  # it raises the error of the flow
            self._flows.loading.ended(plan, outcome)

    def _also_undone(self, plan: DataFlowPlan, error: BaseException) -> HeadraceError:
        if self._cancellation.is_set():
            return CancelledError("cancelled; this task loaded nothing")
        why = error.what if isinstance(error, HeadraceError) else type(error).__name__
        return TargetError(
            f"nothing of task {plan.task} became visible: its transaction, {self._name}, was undone", found=why
        )

    def _say_what_is_there(self, error: HeadraceError) -> None:
        for what, is_there in (("visible already", True), ("left to load", False)):
            groups = [group for group in self._groups if group.has_committed is is_there]
            # Whatever has nothing to load is neither.
            tables = [way.shown for group in groups for way in group.ways if way.nothing is None]
            error.what += f"; {what}: {', '.join(tables)}" if tables else ""
        if self._run_id not in (error.hint or ""):
            error.hint = f"{error.hint or ''} Load the rest: headrace resume {self._run_id}".lstrip()
