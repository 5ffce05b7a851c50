"""One pass over a source for destinations in several places: each place takes its rows on a thread of its own.

Whoever fails stops the flow, and so the others: who was first is remembered, because what the others say then is a
consequence.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from headrace.errors import CancelledError, HeadraceError, InternalError, error_from_dict
from headrace.planning import DataFlowPlan
from headrace.run.metrics import WatchedPlace
from headrace.targets import DestinationWatcher, LoadTimes, Settle, SharedFlow

_STOPPED: Final = "another destination stopped"
_POLL_SECONDS: Final = 0.1


class Sinks(Protocol):
    """Who knows how rows come to a place: its target, or a query over all rows."""

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]: ...
    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None: ...


class Staging(Protocol):
    """Who takes them: a transaction of the target, or the query."""

    @property
    def at_work(self) -> str | None: ...
    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]: ...


@dataclass
class PlaceOfWays:
    """What a flow has in one place. `tasks`: of the ways that lead there."""

    target: Sinks
    transaction: Staging
    tasks: Sequence[str]
    times: Sequence[LoadTimes] = ()
    error: BaseException | None = field(default=None, repr=False)

    def takes(self, task: str) -> bool:
        """Whether a way leads there."""
        return task in self.tasks


class StagingWays:
    """A `SharedLoader`: rows of the ways of a flow, in all places."""

    def __init__(self, places: Sequence[PlaceOfWays]) -> None:
        self._places = places
        self._meeting = _Meeting(len(places))
        self._guilty: PlaceOfWays | None = None
        self._last_pass: StagingWays | None = None

    def of_pass(self, tasks: Collection[str], others: Sequence[PlaceOfWays] = ()) -> StagingWays:
        """The same for one of several passes, one after the other: rows for these tasks, and for `others` beside these
        places.
        """
        known = [(place, [task for task in place.tasks if task in tasks]) for place in self._places]
        own = [PlaceOfWays(place.target, place.transaction, names) for place, names in known if names]
        self._last_pass = StagingWays([*own, *others])
        return self._last_pass

    @property
    def has_stopped(self) -> bool:
        """Whether one of several places has stopped: nothing becomes of what the others do."""
        return (self._last_pass or self)._meeting.first_to_stop is not None

    @property
    def at_work(self) -> str | None:
        """The task whose rows an error of `load_ways` is about, as far as that is known."""
        if self._last_pass is not None:
            return self._last_pass.at_work
        return None if self._guilty is None else self._guilty.transaction.at_work

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        """That of the target."""
        return self._place(plan).target.sink_spec(run_id, plan)

    def watched(self, run_id: str, plans: Sequence[DataFlowPlan]) -> Sequence[WatchedPlace]:
        """All places that get rows of these ways, in the order of the ways."""
        numbers = dict.fromkeys(self._places.index(self._place(plan)) for plan in plans)
        return [_watched(self._places[number], run_id, plans) for number in numbers]

    def load_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        """All but the end."""
        if len(self._places) == 1:
            self._guilty = self._places[0]
            return self._places[0].transaction.stage_ways(plans, flow, settles)
        threads = []
        for place in self._places:
            numbers = [number for number, plan in enumerate(plans) if place.takes(plan.task)]
            part = PartOfFlow(flow, numbers, place, self._meeting)
            own = ([plans[number] for number in numbers], part, [settles[number] for number in numbers])
            name = f"rows for {plans[numbers[0]].connection}"
            threads.append(threading.Thread(target=_stage, args=(place, *own), name=name))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failed = [place for place in self._places if place.error is not None]
        if failed:
            guilty = self._guilty = _of_destination(failed, plans, flow) or self._by_itself(failed, plans, flow)
            raise guilty.error or failed[0].error or InternalError("a place has stopped without an error")
        times = {task: own for place in self._places for task, own in zip(place.tasks, place.times, strict=True)}
        return [times[plan.task] for plan in plans]

    def _by_itself(self, failed: Sequence[PlaceOfWays], plans: Sequence[DataFlowPlan], flow: SharedFlow) -> PlaceOfWays:
        """Of places that have failed one whose failure is no consequence; if several are, who was first. A place stops
        to take rows before it says so: others may have said before that theirs do not come any more.
        """

        def is_consequence(place: PlaceOfWays) -> bool:
            numbers = (number for number, plan in enumerate(plans) if place.takes(plan.task))
            return isinstance(place.error, CancelledError) or all(map(flow.has_stream_failed, numbers))

        first = self._meeting.first_to_stop
        causes = [place for place in failed if not is_consequence(place)]
        return first if first is not None and (first in causes or not causes) else (causes or failed)[0]

    def _place(self, plan: DataFlowPlan) -> PlaceOfWays:
        return next(place for place in self._places if place.takes(plan.task))


def _watched(place: PlaceOfWays, run_id: str, plans: Sequence[DataFlowPlan]) -> WatchedPlace:
    own = [plan for plan in plans if place.takes(plan.task)]
    # A query over all rows is a place, too, but has no sessions: its connection is that of the tables behind it.
    others = [plan for plan in plans if plan.connection != own[0].connection]
    return WatchedPlace(
        own[0].connection,
        lambda: place.target.watcher(run_id, own, others),
        [plan.task.removeprefix(f"{plan.flow}/") for plan in own],
    )


def _stage(place: PlaceOfWays, plans: Sequence[DataFlowPlan], part: PartOfFlow, settles: Sequence[Settle]) -> None:
    try:
        place.times = place.transaction.stage_ways(plans, part, settles)
    except BaseException as error:
        place.error = error
        part.cancel(_STOPPED)


def _of_destination(
    failed: Sequence[PlaceOfWays], plans: Sequence[DataFlowPlan], flow: SharedFlow
) -> PlaceOfWays | None:
    """Where the destination is that an error of the flow itself is about; None if no stream has failed by itself. One
    that is about none of them, such as a source, is told by the first.
    """
    error = _flow_error(flow) if flow.started else None
    if error is None or isinstance(error, CancelledError):
        return None
    task = f"{plans[0].flow}/{error.destination}"
    return next((place for place in failed if place.takes(task)), failed[0])


def _flow_error(flow: SharedFlow) -> HeadraceError | None:
    """Why it has failed, if it has; it is about to end, or has ended."""
    result = None
    while result is None:
        result = flow.join(_POLL_SECONDS)
    return None if result["error"] is None else error_from_dict(result["error"])


class _Meeting:
    """All places are ready for rows, or one has stopped before."""

    def __init__(self, places: int) -> None:
        self._changed = threading.Condition()
        self._awaited = places
        self.first_to_stop: PlaceOfWays | None = None

    def ready(self) -> None:
        """Waits for the others. Raises CancelledError if one of them will never be ready."""
        with self._changed:
            self._awaited -= 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._awaited == 0 or self.first_to_stop is not None)
            if self._awaited:
                raise CancelledError(_STOPPED)

    def stopped(self, place: PlaceOfWays) -> None:
        """A place stops the flow."""
        with self._changed:
            self.first_to_stop = self.first_to_stop or place
            self._changed.notify_all()


class PartOfFlow:
    """A `SharedFlow`: a flow as one place sees it. `numbers`: those that its destinations have in the whole."""

    def __init__(self, flow: SharedFlow, numbers: Sequence[int], place: PlaceOfWays, meeting: _Meeting) -> None:
        self._flow = flow
        self._numbers = numbers
        self._place = place
        self._meeting = meeting
        self._is_ready = False

    @property
    def started(self) -> bool:
        """Whether rows may come."""
        return self._flow.started

    def start(self) -> None:
        """Starts the flow once all places are ready for rows."""
        if not self._is_ready:
            self._is_ready = True
            self._meeting.ready()
            self._flow.start()

    def arrow_stream(self) -> object:
        """Of the first of its destinations."""
        return self.arrow_stream_of(0)

    def arrow_stream_of(self, destination: int) -> object:
        """As the flow has it."""
        return self._flow.arrow_stream_of(self._numbers[destination])

    def has_stream_failed(self, destination: int) -> bool:
        """As the flow has it."""
        return self._flow.has_stream_failed(self._numbers[destination])

    def cancel(self, reason: str) -> None:
        """Stops the whole flow."""
        self._meeting.stopped(self._place)
        self._flow.cancel(reason)

    def commit(self) -> None:
        """Never: writers of several tables cannot commit together."""
        raise InternalError("the writers of one place were asked to commit by themselves")

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """Processes of this place alone: another server has others by the same numbers."""
        for number in self._numbers:
            self._flow.seen_at_work_of(number, process_ids)

    def seen_at_work_of(self, destination: int, process_ids: Sequence[int]) -> None:
        """The same of one destination."""
        self._flow.seen_at_work_of(self._numbers[destination], process_ids)

    def snapshot(self) -> dict[str, Any]:
        """Of the whole flow."""
        return self._flow.snapshot()

    def join(self, timeout_seconds: float) -> dict[str, Any] | None:
        """Of the whole flow."""
        return self._flow.join(timeout_seconds)
