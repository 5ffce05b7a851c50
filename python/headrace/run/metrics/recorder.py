"""Measures one attempt of a run, once a second and where a data flow begins and ends."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, runtime_checkable

from headrace.machine.sampler import MachineSampler
from headrace.machine.ticks import Ticks
from headrace.planning import DataFlowPlan
from headrace.run.judging import Judging
from headrace.run.metrics.file import MetricsFile
from headrace.run.metrics.places import WatchedPlace, with_connections
from headrace.targets import DestinationWatcher, Flow

PERIOD_SECONDS: Final = 1.0
_BETWEEN_SECONDS: Final = 0.1
# A sample takes milliseconds; one that hangs is left behind.
_PATIENCE_SECONDS: Final = 1.0
Document = Mapping[str, Any]


@runtime_checkable
class MeasuredFlow(Protocol):
    """A flow that counts what it does."""

    def measure(self) -> dict[str, Any]:
        """The members of a `flow` line from `bytes_read` on."""


@dataclass(eq=False)
class _Measured:
    """A data flow that runs. `watchers`: of the connections that can be looked at. `lock`: no line of it comes behind
    its last one.
    """

    plan: DataFlowPlan
    flow: Flow
    places: Sequence[WatchedPlace]
    watchers: Sequence[tuple[str, DestinationWatcher]]
    lock: threading.Lock = field(default_factory=threading.Lock)
    has_ended: bool = False


class MetricsRecorder:
    """Writes `metrics.jsonl`. Nothing that goes wrong here raises: what cannot be measured is left out and told once.

    `t` counts from here on.
    """

    def __init__(
        self,
        file: MetricsFile,
        notice: Callable[[str], None],
        machine: Callable[[], Document] | None = None,
        period_seconds: float = PERIOD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        judge: Judging | None = None,
    ) -> None:
        self._file = file
        self._notice = notice
        self._machine = machine or MachineSampler().sample
        self._period_seconds = period_seconds
        self._clock = clock
        self._began = clock()
        self._attempt = 1
        self._flows: list[_Measured] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: set[str] = set()
        self._machine_lock = threading.Lock()
        self._looked_at = -math.inf
        self._last_machine: Document | None = None
        self._judge = judge

    def start(self, attempt: int) -> None:
        """Begins to measure. `attempt`: of the run, from 1."""
        self._attempt = attempt
        self._thread = threading.Thread(target=self._run, name="metrics of the run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Measures a last time, and closes the file."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
            self._sample_machine(_BETWEEN_SECONDS)
        self._file.close()

    @contextmanager
    def measuring(self, plan: DataFlowPlan, flow: Flow, places: Sequence[WatchedPlace]) -> Iterator[None]:
        """Measures the flow and the places its rows go to while the block runs, at its beginning and at its end."""
        if self._judge is not None:
            self._judge.begin(plan)
        watchers = [(place.connection, watcher) for place in places if (watcher := self._watcher(place)) is not None]
        measured = _Measured(plan, flow, places, watchers)
        self._sample_machine(_BETWEEN_SECONDS)
        self._sample_flow(measured)
        self._flows.append(measured)
        try:
            yield
        finally:
            self._flows.remove(measured)
            self._sample_machine(_BETWEEN_SECONDS)
            for _, watcher in measured.watchers:
                with self._guarded("destination"):
                    watcher.close()
            self._sample_flow(measured, is_last=True)

    def _watcher(self, place: WatchedPlace) -> DestinationWatcher | None:
        try:
            return place.make_watcher()
        except Exception as error:
            self._left_out("destination", error)
            return None

    def _run(self) -> None:
        ticks = Ticks(self._period_seconds, self._clock)
        self._sample_machine()
        while ticks.wait(self._stop):
            self._sample_machine()
            for measured in list(self._flows):
                self._sample_flow(measured)

    def _sample_machine(self, least_seconds: float = 0.0) -> None:
        """Unless the last look is younger than that: tasks of a loop may begin and end many times a second."""
        with self._guarded("machine"), _held(self._machine_lock):  # its counters are kept from look to look
            if self._clock() - self._looked_at >= least_seconds:
                self._looked_at = self._clock()
                self._last_machine = {**self._stamp("machine"), **self._machine()}
                self._file.append(self._last_machine)

    def _sample_flow(self, measured: _Measured, *, is_last: bool = False) -> None:
        with self._guarded("flow"), _held(measured.lock):
            if measured.has_ended:
                return
            measured.has_ended = is_last
            task = {"task": measured.plan.task}
            counted: Document | None = None
            watched: list[Document] = []
            if isinstance(measured.flow, MeasuredFlow):
                with self._guarded("flow"):
                    own = with_connections(measured.flow.measure(), measured.places)
                    counted = {**self._stamp("flow"), **task, **own}
                    self._file.append(counted)
            for connection, watcher in measured.watchers:
                names = {**task, "connection": connection}
                with self._guarded("destination"):
                    line = {**self._stamp("destination"), **names, **watcher.look()}
                    watched.append(line)
                    self._file.append(line)
            if counted is not None and self._judge is not None:
                with self._guarded("verdict"):
                    verdict = self._judge.look(measured.plan, counted, self._last_machine, watched, is_last=is_last)
                    if verdict is not None:
                        self._file.append({**self._stamp("verdict"), **task, **verdict})

    def _stamp(self, kind: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"kind": kind, "at": now, "t": round(self._clock() - self._began, 6), "attempt": self._attempt}

    @contextmanager
    def _guarded(self, kind: str) -> Iterator[None]:
        """Leaves out what fails inside."""
        try:
            yield
        except Exception as error:
            self._left_out(kind, error)

    def _left_out(self, kind: str, error: Exception) -> None:
        """Says so, once."""
        if kind not in self._told:
            self._told.add(kind)
            self._notice(f"lines of kind `{kind}` are missing in the metrics of the run: {error!r}")


@contextmanager
def _held(lock: threading.Lock) -> Iterator[None]:
    """Holds a lock. Raises TimeoutError if it is not free soon: who writes to a disk that hangs keeps it for ever."""
    if not lock.acquire(timeout=_PATIENCE_SECONDS):
        raise TimeoutError(f"the sample before has not ended within {_PATIENCE_SECONDS:g} s")
    try:
        yield
    finally:
        lock.release()
