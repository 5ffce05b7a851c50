"""The destinations of one data flow that store nothing: they need no transaction, and have none."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from headrace.errors import InternalError
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, Settle, SharedFlow, WithoutLookupRows
from headrace.targets.sql import SqlSession


class NullGroup(WithoutLookupRows):
    """See `GroupTransaction`."""

    stages_first = True
    at_work: str | None = None

    def __init__(self) -> None:
        self._times: dict[str, LoadTimes] = {}

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        raise InternalError("a connection of type null has no transactions")

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        started = time.monotonic()
        flow.start()
        for plan, settle in zip(plans, settles, strict=True):
            rows = sum(int(item["out"]) for item in settle(None)["slices"])
            # The rows of all ways come at once: their time is told of the first.
            seconds = time.monotonic() - started if plan is plans[0] else 0.0
            self._times[plan.task] = LoadTimes(0.0, seconds, 0.0, rows)
        return [self._times[plan.task] for plan in plans]

    def begin(self) -> None:
        return None

    def statements(self) -> AbstractContextManager[SqlSession]:
        raise InternalError("a connection of type null executes no SQL")

    def switch(self, plan: DataFlowPlan) -> None:
        return None

    def prove(self) -> None:
        return None

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        return self._times
