"""Runs one data flow inside this process.

Three parties: the core's streams, the target on a worker thread, and the caller's thread, which waits in short steps so
that Ctrl-C always works. The target starts the streams when it is ready for rows. Whoever fails first stops the others:

- a stream fails: the Arrow stream ends with an error, the target rolls back;
- the target fails: the flow is cancelled, which also wakes streams that wait for it;
- the user cancels: the flow is cancelled, the target rolls back.

In each case both are waited for, so nothing runs on after `run` has returned.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from headrace.errors import CancelledError, HeadraceError, InternalError, error_from_dict
from headrace.executors.accounts import check_accounts, refuse_empty
from headrace.executors.ignored import keep_ignored
from headrace.executors.joined import keep_joined
from headrace.executors.sql_instances import QueriedFlow, Shown, sql_instances
from headrace.executors.transformed import keep_transformed
from headrace.executors.united import keep_united
from headrace.planning import DataFlowPlan, SharedPlan
from headrace.targets import DestinationWatcher, Flow, LoadTimes, Settle, SharedFlow

Times = TypeVar("Times")

POLL_SECONDS = 0.1
_CANCELLED_BY_USER = "cancelled by the user"
_STOPPED_BY_TARGET = "the destination stopped"


class Loader(Protocol):
    """A target, or a transaction of several tasks of one: see `Target`."""

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]: ...
    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes: ...
    def watcher(self, run_id: str, plans: Sequence[DataFlowPlan]) -> DestinationWatcher | None: ...


class SharedLoader(Protocol):
    """The same of a flow with several destinations."""

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]: ...
    def load_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]: ...


class Cancel(Protocol):
    """A request to stop, that others may make and this module, for Ctrl-C."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...


CreateFlow = Callable[[dict[str, Any]], Flow]
Progress = Callable[[dict[str, Any]], None]
Settled = Callable[[dict[str, Any]], None]
SettledWay = Callable[[int, dict[str, Any]], None]
# Measures the flow while the block runs, from before its start until everything has ended.
Measuring = Callable[[Flow], AbstractContextManager[None]]


@dataclass(frozen=True)
class FlowOutcome:
    """How a data flow ended. `result` is the core's RESULT; `error` is None exactly when the rows are committed.

    `cpu_seconds`: of the whole process, user and system, while the flow ran. `lookups`: what the core says of each, and
    `lookup_seconds`: how long reading them took, before that. `warnings`: what went wrong behind the
    commit, which cannot undo it.
    """

    result: dict[str, Any] | None
    times: LoadTimes | None
    error: BaseException | None
    seconds: float
    cpu_seconds: float
    warnings: tuple[str, ...] = ()
    lookups: tuple[dict[str, Any], ...] = ()
    lookup_seconds: float = 0.0

    @property
    def rows_committed(self) -> int:
        """Of a load that has failed: rows that are in its table all the same."""
        return self.error.rows_committed if isinstance(self.error, HeadraceError) else 0

    @property
    def status(self) -> str:
        """success, failed or cancelled."""
        if self.error is None:
            return "success"
        return "cancelled" if isinstance(self.error, CancelledError) else "failed"


class LocalExecutor:
    """Executes plans one after the other, in this process."""

    def __init__(
        self, create_flow: CreateFlow, poll_seconds: float = POLL_SECONDS, shown: Shown = lambda text: text
    ) -> None:
        """`shown`: takes secrets out of what the engines of queries say."""
        self._create_flow = create_flow
        self._poll_seconds = poll_seconds
        self._shown = shown

    def run(
        self,
        run_id: str,
        plan: DataFlowPlan,
        target: Loader,
        rejects_folder: str,
        progress: Progress,
        cancel: Cancel,
        measuring: Measuring = lambda _flow: nullcontext(),
        settled: Settled = lambda _result: None,
    ) -> FlowOutcome:
        """Executes `plan`. Never raises for a failed flow: `FlowOutcome.error` says it.

        `progress` is called on this thread about ten times a second with the flow's snapshot; `measuring` must not
        raise. `settled` sees the result once its accounts are checked, before the commit; what it raises fails the
        load.
        """
        begun = _Begun()
        try:
            sink = target.sink_spec(run_id, plan)
            flow = self._create_flow(plan.flow_spec(rejects_folder, sink))
        except Exception as error:
            return begun.outcome(None, None, error)

        def settle(rows_inserted: int | None) -> dict[str, Any]:
            result = _settled(plan, load.result(), rows_inserted, Path(rejects_folder))
            settled(result)
            return result

        def execute() -> LoadTimes:
            return target.load(run_id, plan, flow, settle)

        load = _Load(execute, flow, self._poll_seconds, plan.table)
        result, failure, warnings = self._executed(plan, load, flow, progress, cancel, measuring)
        times = load.times
        return begun.outcome(result, times, failure, (*(times.warnings if times else ()), *warnings))

    def run_ways(
        self,
        run_id: str,
        shared: SharedPlan,
        target: SharedLoader,
        rejects_folder: str,
        progress: Progress,
        cancel: Cancel,
        measuring: Measuring = lambda _flow: nullcontext(),
        settled: SettledWay = lambda _number, _result: None,
    ) -> tuple[FlowOutcome, ...]:
        """The same of a flow with several destinations: an outcome for each way. All have failed if one has. `settled`
        sees the results one by one, with the number of the way.
        """
        begun, folder = _Begun(), Path(rejects_folder)
        try:
            sinks = [target.sink_spec(run_id, way) for way in shared.ways]
            flow = cast(SharedFlow, self._create_flow(shared.core_spec(rejects_folder, sinks)))
        except Exception as error:
            return tuple(begun.outcome(None, None, error) for _ in shared.ways)

        def settling(number: int, way: DataFlowPlan) -> Settle:
            def settle(rows_inserted: int | None) -> dict[str, Any]:
                result = _settled(way, load.result(), rows_inserted, folder, partial(shared.result_of, number))
                settled(number, result)
                return result

            return settle

        def execute() -> Sequence[LoadTimes]:
            settles = [settling(number, way) for number, way in enumerate(shared.ways)]
            return target.load_ways(shared.ways, flow, settles)

        load = _Load(execute, flow, self._poll_seconds, shared.whole.task)
        result, failure, warnings = self._executed(shared.whole, load, flow, progress, cancel, measuring)
        outcomes = []
        for number, _ in enumerate(shared.ways):
            own = None if result is None else shared.told(number, result)
            times = None if load.times is None else load.times[number]
            outcome = begun.outcome(
                own, times, failure, (*(times.warnings if times else ()), *(warnings if not number else ()))
            )
            # What the process has used is told once.
            outcomes.append(outcome if number == 0 else replace(outcome, cpu_seconds=0.0))
        return tuple(outcomes)

    def _executed(
        self,
        plan: DataFlowPlan,
        load: _Load[Times],
        flow: Flow,
        progress: Progress,
        cancel: Cancel,
        measuring: Measuring,
    ) -> tuple[dict[str, Any] | None, BaseException | None, tuple[str, ...]]:
        """The core's result, why it failed if it did, and what went wrong behind the commit."""
        cancelled = False
        watch_error: Exception | None = None
        with measuring(flow):
            try:
                with sql_instances(plan, cast(QueriedFlow, flow), self._shown):
                    cancelled = self._watch(load, flow, progress, cancel)
                    load.end()
            except KeyboardInterrupt:
                cancel.set()
                cancelled = True
            except Exception as error:  # also: a thread could not be started
                watch_error = error
            result = load.end()
        if load.times is None:
            kept = load.error.rows_committed if isinstance(load.error, HeadraceError) else 0
            failure = _first_error(watch_error or load.error, result, cancelled, has_loaded=kept > 0)
            if isinstance(failure, HeadraceError):
                failure.keep_committed(load.error)
            return result, failure, ()
        return result, None, () if watch_error is None else (f"watching the load failed: {watch_error!r}",)

    def _watch(self, load: _Load[Times], flow: Flow, progress: Progress, cancel: Cancel) -> bool:
        """Waits for the end of the load; True if the user cancelled it before."""
        load.start()
        cancelled = False
        while load.wait(self._poll_seconds):
            if cancel.is_set() and not cancelled:
                cancelled = True
                flow.cancel(_CANCELLED_BY_USER)
            progress(flow.snapshot())
        progress(flow.snapshot())
        return cancelled


class _Begun:
    """The moment when a flow has begun."""

    def __init__(self) -> None:
        self._seconds = time.monotonic()
        self._cpu_seconds = _cpu_seconds()

    def outcome(
        self,
        result: dict[str, Any] | None,
        times: LoadTimes | None,
        error: BaseException | None,
        warnings: tuple[str, ...] = (),
    ) -> FlowOutcome:
        """How it has ended, now."""
        seconds, cpu_seconds = time.monotonic() - self._seconds, _cpu_seconds() - self._cpu_seconds
        return FlowOutcome(result, times, error, seconds, cpu_seconds, warnings)


def _settled(
    plan: DataFlowPlan,
    joined: dict[str, Any],
    rows_inserted: int | None,
    rejects_folder: Path,
    of_way: Callable[[dict[str, Any]], dict[str, Any]] = lambda result: result,
) -> dict[str, Any]:
    """The core's result, once its accounts are checked. `of_way`: takes that of one way out of it."""
    error = _flow_error(joined)
    if error is not None:
        raise error
    result = of_way(joined)
    check_accounts(plan, result, rows_inserted)
    refuse_empty(plan, result)
    keep_ignored(rejects_folder, plan, result)
    keep_joined(rejects_folder, plan, result)
    keep_united(rejects_folder, plan, result)
    keep_transformed(rejects_folder, plan, result)
    return result


class _Load(Generic[Times]):
    """The target's side, on its own thread. `execute` loads, and asks for the result of the flow meanwhile."""

    def __init__(self, execute: Callable[[], Times], flow: Flow, poll_seconds: float, name: str) -> None:
        self._execute = execute
        self._flow = flow
        self._poll_seconds = poll_seconds
        self._result: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._run, name=f"load {name}")
        self.times: Times | None = None
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds` for the end; True while it still runs."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    def end(self) -> dict[str, Any] | None:
        """Waits until both the target and the flow have ended; returns the flow's result, None if it never started."""
        while self._thread.is_alive():
            self._flow.cancel(_STOPPED_BY_TARGET)
            self._thread.join(self._poll_seconds)
        if self._result is None:  # nobody takes the rows (any more), or nobody ever did
            self._flow.cancel(_STOPPED_BY_TARGET)
        return self.result() if self._flow.started else None

    def _run(self) -> None:
        try:
            self.times = self._execute()
        except BaseException as error:
            self.error = error
            # Streams may be waiting for a destination that takes no more rows.
            self._flow.cancel(_STOPPED_BY_TARGET)

    def result(self) -> dict[str, Any]:
        """What the core says of the flow, once it has ended. It is asked each time: whoever takes rows of a merged
        stream counts on, behind the last row that others have taken.
        """
        result = None
        while result is None:
            result = self._flow.join(self._poll_seconds)
        self._result = result
        return result


def _flow_error(result: dict[str, Any]) -> HeadraceError | None:
    if result["status"] == "ok":
        return None
    if result["error"] is not None:
        return error_from_dict(result["error"])
    if result["status"] == "cancelled":
        return CancelledError(_CANCELLED_BY_USER)
    return InternalError("the flow failed without saying why", found=f"status {result['status']}")


def _first_error(
    load_error: BaseException | None, result: dict[str, Any] | None, cancelled: bool, *, has_loaded: bool = False
) -> BaseException:
    """The error to report when both sides have ended and the target has not committed. `has_loaded`: but some rows.

    What a stream says is better than what the target says about the stream; only an error of cancelling is a
    consequence. A load that failed after the user's cancel is cancelled, not failed: the streams may have ended well
    just before, and only the target knows that the Arrow stream broke.
    """
    error = None if result is None else _flow_error(result)
    if error is not None and not isinstance(error, CancelledError):
        return load_error if load_error is not None and _explains(load_error, error) else error
    if cancelled:
        return CancelledError("cancelled" if has_loaded else "cancelled; this task loaded nothing")
    return load_error or error or InternalError("the load ended without saying how")


def _explains(load_error: BaseException, error: HeadraceError) -> bool:
    """True if the target has put the flow's error into its own words."""
    cause = load_error.__cause__
    return isinstance(cause, HeadraceError) and cause.to_dict() == error.to_dict()


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
