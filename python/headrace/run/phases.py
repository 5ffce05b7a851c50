"""Where the time of a run goes: seconds by phase. Phases of tasks that run side by side overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.executors import FlowOutcome

PHASES = ("plan", "start", "prepare", "load", "commit", "finish")


class Phases:
    """Adds up `seconds`, from any thread."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._lock = threading.Lock()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """The time inside belongs to the phase."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._add(name, time.monotonic() - started)

    def add(self, outcome: FlowOutcome) -> None:
        """The time of a data flow."""
        times = outcome.times
        if times is None:
            self._add("load", outcome.seconds)
            return
        self._add("prepare", times.prepare_seconds)
        self._add("commit", times.commit_seconds)
        self._add("load", outcome.seconds - times.prepare_seconds - times.commit_seconds)

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self.seconds[name] += seconds
