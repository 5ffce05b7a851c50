"""One transaction of several tasks: rows are staged first, then one short transaction executes the statements and the
switches. It has a session of its own, so that nothing a script sets or leaves behind meets the control session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from headrace.errors import HeadraceError, InternalError, TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, Settle, SharedFlow, WithoutLookupRows
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.failures import explained
from headrace.targets.postgres.finishing import NOTHING
from headrace.targets.postgres.free_sessions import refuse_too_few_sessions
from headrace.targets.postgres.load import TableLoad
from headrace.targets.postgres.sql_sessions import PostgresSqlSession, PostgresSqlSessions
from headrace.targets.sql import SqlSession

NewLoad = Callable[[DataFlowPlan], TableLoad]
_TAKE_OUT = "Take the task out of the transaction."


@contextmanager
def group_transaction(
    control: Control,
    sessions: PostgresSqlSessions,
    task: str,
    locks: Sequence[AbstractContextManager[None]],
    new_load: NewLoad,
    is_cancelled: Callable[[], bool],
) -> Iterator[PostgresGroup]:
    """The transaction of a task that holds others. `locks`: those of its tables, held from here to the end. Without a
    commit it is rolled back, and what was staged is dropped unless trying again can help.
    """
    with ExitStack() as held:
        held.callback(sessions.close)
        for lock in locks:
            held.enter_context(lock)
        loads: dict[str, TableLoad] = {}
        try:
            with ExitStack() as inside:
                yield PostgresGroup(control, sessions, task, loads, inside, new_load, is_cancelled)
        except BaseException as error:
            for load in loads.values():
                load.clean_up(error)
            raise


def refuse_alone(plans: Sequence[DataFlowPlan], shown: Callable[[DataFlowPlan], str]) -> None:
    """Raises TargetError for a flow that commits by itself, or holds a transaction of its own open meanwhile."""
    for plan in plans:
        if plan.switch == "none":
            raise TargetError(
                f"the rows of {shown(plan)} cannot be part of a transaction: its writers commit by themselves",
                found=f"task {plan.task} with `target: append` and without hidden tables",
                expected="`load: staged` with a partition clause, or another `target`",
                hint=_TAKE_OUT,
            )
        if plan.options.lock:
            raise TargetError(
                f"the load of {shown(plan)} cannot be part of a transaction: it holds one of its own open",
                found=f"`lock: true` of task {plan.task}",
                hint="Leave `lock` out.",
            )


class PostgresGroup(WithoutLookupRows):
    """See `GroupTransaction`. `loads` is filled with what was staged; sessions are opened inside of `inside`."""

    stages_first = True
    at_work: str | None = None

    def __init__(
        self,
        control: Control,
        sessions: PostgresSqlSessions,
        task: str,
        loads: dict[str, TableLoad],
        inside: ExitStack,
        new_load: NewLoad,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._control = control
        self._sessions = sessions
        self._task = task
        self._loads = loads
        self._inside = inside
        self._new_load = new_load
        self._is_cancelled = is_cancelled
        self._opened: PostgresSqlSession | None = None
        self._losses: list[HeadraceError] = []

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        load = self._loads[plan.task] = self._new_load(plan)
        return load.stage(flow, settle)

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        self.at_work = None  # of an earlier flow
        refuse_too_few_sessions(self._control, plans)
        loads = [self._loads.setdefault(plan.task, self._new_load(plan)) for plan in plans]
        for load in loads:
            load.prepare()
        results = self._taken(plans, loads, flow, settles)
        times = []
        for plan, load, result in zip(plans, loads, results, strict=True):
            self.at_work = plan.task
            times.append(load.finish(flow, result))
        return times

    def _taken(
        self, plans: Sequence[DataFlowPlan], loads: Sequence[TableLoad], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[Mapping[str, Any]]:
        """The results of all ways. An error of one of their tables is told as one of that table."""
        what = f"loading the tables of {plans[0].flow}"
        try:
            return loads[0].take_rows(flow, settles, what)
        except HeadraceError as error:
            guilty = next((plan for plan in plans if plan.task == f"{plan.flow}/{error.destination}"), None)
            self.at_work = None if guilty is None else guilty.task
            with loads[0].explained(what) if guilty is None else self._loads[guilty.task].explained():
                raise

    def begin(self) -> None:
        # The locks of the tables are those of the control session.
        self._inside.enter_context(self._control.heartbeat(self._is_cancelled, self._losses.append))
        self._opened = self._inside.enter_context(self._sessions.session(self._task, self._is_cancelled))
        self._opened.begin()
        self._opened.mark()

    @contextmanager
    def statements(self) -> Iterator[SqlSession]:
        with self._session.own_settings():
            yield self._session

    def switch(self, plan: DataFlowPlan) -> None:
        self._loads[plan.task].switch(self._session.connection, self._session.ledger)

    def prove(self) -> None:
        """Constraints that are deferred; and that both sessions are still there."""
        if self._losses:
            raise self._losses[0]
        try:
            self._session.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except HeadraceError as error:
            raise explained(error, f"loading the tables of {self._task}", NOTHING) from error

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        self._session.set_result(result)
        if self._losses:
            raise self._losses[0]
        self._session.commit()
        loads = dict(self._loads)
        self._loads.clear()  # nothing of it can be undone any more
        self._inside.close()  # behind that the control session is free
        for load in loads.values():
            load.analyze()
        return {task: load.times for task, load in loads.items()}

    @property
    def _session(self) -> PostgresSqlSession:
        if self._opened is None:
            raise InternalError("a transaction of several tasks is used before it has begun")
        return self._opened
