"""Where the time of a run goes: seconds by phase. Phases of tasks that run side by side overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.executors import FlowOutcome

PHASES = ("plan", "start", "lookup", "prepare", "load", "commit", "finish")
# Told of runs that have some.
_RARE = ("lookup",)


class Phases:
    """Adds up `seconds`, from any thread."""

    def __init__(self) -> None:
        self.seconds = {name: 0.0 for name in PHASES if name not in _RARE}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """The time inside belongs to the phase."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._add(name, time.monotonic() - started)

    def add(self, outcome: FlowOutcome, *, is_beside: bool = False) -> None:
        """The time of a data flow. `is_beside`: its rows came in one pass with those of another one, whose time has
        been told.
        """
        if outcome.lookup_seconds:
            self._add("lookup", outcome.lookup_seconds)
        times = outcome.times
        if is_beside:
            if times is not None:
                self._add("prepare", times.prepare_seconds)
                self._add("commit", times.commit_seconds)
            return
        if times is None:
            self._add("load", outcome.seconds)
            return
        self._add("prepare", times.prepare_seconds)
        self._add("commit", times.commit_seconds)
        self._add("load", outcome.seconds - times.prepare_seconds - times.commit_seconds)

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            known = {**self.seconds, name: self.seconds.get(name, 0.0) + seconds}
            if name not in self.seconds:
                self.seconds.clear()  # the phases stand in their order
            self.seconds.update((own, known[own]) for own in PHASES if own in known)
