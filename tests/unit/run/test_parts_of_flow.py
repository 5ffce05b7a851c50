"""One flow for several places: they start together, one that fails stops the others, and the cause is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import CancelledError, SourceError, TargetError
from headrace.planning import DataFlowPlan
from headrace.run.parts_of_flow import PlaceOfWays, StagingWays
from headrace.targets import DestinationWatcher, LoadTimes, Settle, SharedFlow
from tests.patience import HANG_SECONDS

PLANS = [cast(DataFlowPlan, SimpleNamespace(task=f"load/{name}", flow="load", connection=name)) for name in "abc"]
SETTLES: list[Settle] = [lambda _rows: {}] * 3


class Flow:
    """Ends when it is stopped, or was told to."""

    def __init__(self, error: dict[str, Any] | None = None) -> None:
        self.error = error
        self.started = False
        self.stopped = threading.Event()
        self.seen: list[tuple[int, Sequence[int]]] = []
        # Destinations whose streams have ended with an error.
        self.told: set[int] = set()

    def start(self) -> None:
        self.started = True

    def cancel(self, reason: str) -> None:
        self.error = self.error or {"kind": "cancelled", "what": reason}
        self.stopped.set()

    def join(self, _seconds: float) -> dict[str, Any]:
        return {"error": self.error}

    def has_stream_failed(self, destination: int) -> bool:
        return destination in self.told

    def seen_at_work_of(self, destination: int, process_ids: Sequence[int]) -> None:
        self.seen.append((destination, process_ids))


Stage = Callable[[Sequence[DataFlowPlan], SharedFlow], None]


class Transaction:
    """Of one place. `ready` is done before the start, `ends` behind it."""

    at_work = None

    def __init__(self, ready: Stage, ends: Stage) -> None:
        self.ready = ready
        self.ends = ends

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, _settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        self.ready(plans, flow)
        flow.start()
        self.ends(plans, flow)
        return [LoadTimes(0.0, 0.0, 0.0, int(plan.task.endswith("c"))) for plan in plans]


def well(_plans: Sequence[DataFlowPlan], _flow: SharedFlow) -> None:
    return None


def raising(error: Exception) -> Stage:
    def stage(_plans: Sequence[DataFlowPlan], _flow: SharedFlow) -> None:
        raise error

    return stage


def behind(flow: Flow, error: Exception) -> Stage:
    """Fails once another place has stopped the flow."""

    def stage(_plans: Sequence[DataFlowPlan], _flow: SharedFlow) -> None:
        assert flow.stopped.wait(HANG_SECONDS)
        raise error

    return stage


def load(flow: Flow, *stages: tuple[Stage, Stage]) -> Sequence[LoadTimes]:
    """Two places: `a` and `c` in the first, `b` in the second."""
    tasks = (("load/a", "load/c"), ("load/b",))
    places = [
        PlaceOfWays(cast(Any, None), cast(Any, Transaction(*own)), names)
        for own, names in zip(stages, tasks, strict=True)
    ]
    return StagingWays(places).load_ways(PLANS, cast(SharedFlow, flow), SETTLES)


def test_times_come_in_the_order_of_the_plans() -> None:
    assert [times.rows_loaded for times in load(Flow(), (well, well), (well, well))] == [0, 0, 1]


def test_it_starts_when_all_are_ready() -> None:
    flow, begun = Flow(), list[bool]()

    def late(_plans: Sequence[DataFlowPlan], _flow: SharedFlow) -> None:
        threading.Event().wait(0.05)
        begun.append(flow.started)

    load(flow, (late, well), (well, well))
    assert (begun, flow.started) == ([False], True)


@pytest.mark.parametrize("first", [0, 1])
def test_one_that_is_never_ready_lets_nobody_wait(first: int) -> None:
    flow = Flow()
    stages: list[tuple[Stage, Stage]] = [(well, well), (well, well)]
    stages[first] = (raising(TargetError("no room")), well)
    with pytest.raises(TargetError, match="no room"):
        load(flow, *stages)
    assert not flow.started


@pytest.mark.parametrize("first", [0, 1])
def test_the_cause_is_told_and_not_what_followed_from_it(first: int) -> None:
    flow = Flow()
    stages = [(well, behind(flow, CancelledError("a consequence"))), (well, behind(flow, TargetError("another one")))]
    stages[first] = (well, raising(TargetError("no room")))
    with pytest.raises(TargetError, match="no room"):
        load(flow, *stages)


def test_who_was_told_of_an_error_is_not_its_cause() -> None:
    """A place may stop to take rows, and say so when others have said that theirs do not come any more."""
    flow = Flow()

    def told(_plans: Sequence[DataFlowPlan], part: SharedFlow) -> None:
        flow.told = {0, 2}
        part.cancel("no rows")
        raise TargetError("no rows")

    with pytest.raises(TargetError, match="no room"):
        load(flow, (well, told), (well, behind(flow, TargetError("no room"))))


@pytest.mark.parametrize(("destination", "told"), [("b", "second"), ("c", "first"), (None, "first")])
def test_an_error_of_the_flow_is_told_by_the_place_that_it_is_about(destination: str | None, told: str) -> None:
    flow = Flow({"kind": "source", "what": "bad", "destination": destination})
    with pytest.raises(SourceError, match=told):
        load(flow, (well, raising(SourceError("first"))), (well, raising(SourceError("second"))))


def test_processes_of_a_server_count_for_its_own_destinations() -> None:
    flow = Flow()

    def seen(_plans: Sequence[DataFlowPlan], part: SharedFlow) -> None:
        part.seen_at_work([7])

    load(flow, (well, seen), (well, well))
    assert flow.seen == [(0, [7]), (2, [7])]


class Watchable:
    """A target that remembers who was to be watched, and who else has sessions."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []

    def watcher(
        self, _run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        self.asked.append(([plan.task for plan in plans], [plan.task for plan in others]))
        return None


def test_every_place_is_watched_and_knows_who_else_has_sessions() -> None:
    """A query over all rows for a table of the same connection has none."""
    plans = [*PLANS[:2], cast(DataFlowPlan, SimpleNamespace(task="load/c", flow="load", connection="b"))]
    tasks = {"first": ["load/a"], "second": ["load/b"], "query": ["load/c"]}
    targets = {name: Watchable() for name in tasks}
    places = [PlaceOfWays(cast(Any, targets[name]), cast(Any, None), own) for name, own in tasks.items()]
    watched = StagingWays(places).watched("run", [plans[1], plans[0], plans[2]])
    assert [place.connection for place in watched] == ["b", "a", "b"]
    assert [place.destinations for place in watched] == [["b"], ["a"], ["c"]]
    for place in watched:
        assert place.make_watcher() is None
    assert targets["first"].asked == [(["load/a"], ["load/b", "load/c"])]
    assert targets["second"].asked == [(["load/b"], ["load/a"])]
    assert [place.connection for place in StagingWays(places).watched("run", plans[:1])] == ["a"]
