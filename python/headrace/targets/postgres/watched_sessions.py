"""What looks at the sessions of a load have found so far. Pure: rows of `sql/watched_sessions.sql` in, counters out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.targets.postgres.connection import Row
from headrace.targets.postgres.local_server import NOT_READ, ProcessReading

HIDDEN_SESSIONS: Final = "what its sessions do: the role may not see them"
NO_ACTIVITIES: Final = "whether its sessions are idle: track_activities is off"
HIDDEN_CHECKPOINTER: Final = "what the checkpointer does: the role is not a member of pg_monitor"
_DECIMALS: Final = 6
# Sessions that have ended stay in the lines, so that the last line has all of them; of very many the last ones.
_KEPT_ENDED: Final = 100


@dataclass(slots=True)
class WatchedProcess:
    """One process of the server. `found`: how often it was found doing what; `is_told`: whether the server says it."""

    process_id: int
    found: Counter[str] = field(default_factory=Counter)
    is_told: bool = False
    is_there: bool = True
    blocked_by: list[int] = field(default_factory=list)
    reading: ProcessReading = NOT_READ
    tuples: int | None = None
    tuples_of_copy: int = 0

    def look(self, doing: str | None) -> None:
        """Counts one look; None: the server does not say."""
        self.is_there = True
        if doing is not None:
            self.is_told = True
            self.found[doing] += 1

    def copy_tuples(self, tuples: int) -> None:
        """Rows of the COPY that runs; each counts from 0."""
        more = tuples if tuples < self.tuples_of_copy else tuples - self.tuples_of_copy
        self.tuples = (self.tuples or 0) + more
        self.tuples_of_copy = tuples

    def to_dict(self) -> dict[str, Any]:
        """A member of `sessions`."""
        reading = self.reading
        return {
            "process_id": self.process_id,
            "found": dict(self.found) if self.is_told else None,
            "blocked_by": list(self.blocked_by),
            "tuples": self.tuples,
            "cpu_seconds": _rounded(reading.cpu_seconds),
            "run_queue_seconds": _rounded(reading.run_queue_seconds),
            "io_seconds": _rounded(reading.io_seconds),
        }


class WatchedSessions:
    """All sessions of a load, and the checkpointer of its server."""

    def __init__(self) -> None:
        self.samples = 0
        self.checkpointer: WatchedProcess | None = None
        self.denied: set[str] = set()
        # By process and start, because numbers of processes are used again.
        self._sessions: dict[tuple[int, str], WatchedProcess] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Takes what one look has found."""
        self.samples += 1
        for session in self._sessions.values():
            session.is_there, session.blocked_by = False, []
        sees_checkpointer = False
        for process_id, started_at, is_checkpointer, state, wait_type, wait_event, tuples, blocked_by in rows:
            number = int(process_id or 0)
            if is_checkpointer == "t":
                sees_checkpointer = True
                self._look_at_checkpointer(number, wait_type, wait_event)
                continue
            session = self._sessions.setdefault((number, started_at or ""), WatchedProcess(number))
            session.look(_doing(state, wait_type, wait_event))
            session.blocked_by = [int(blocker) for blocker in (blocked_by or "").split()]
            if tuples is not None:
                session.copy_tuples(int(tuples))
            if state is None:
                self.denied.add(HIDDEN_SESSIONS)
            elif state == "disabled":
                self.denied.add(NO_ACTIVITIES)
        if not sees_checkpointer:
            self.denied.add(HIDDEN_CHECKPOINTER)
        self._forget()

    def name_checkpointer(self, process_id: int) -> None:
        """Says which process it is, where the server does not."""
        if self.checkpointer is None:
            self.checkpointer = WatchedProcess(process_id)

    def are_few(self, most: int) -> bool:
        """Whether the last look has found at most so many."""
        return sum(session.is_there for session in self._sessions.values()) <= most

    def living(self) -> Iterator[WatchedProcess]:
        """Those that the last look has found, and the checkpointer."""
        yield from (session for session in self._sessions.values() if session.is_there)
        if self.checkpointer is not None:
            yield self.checkpointer

    def to_dict(self) -> dict[str, Any]:
        """The members `samples`, `sessions` and `checkpointer`."""
        return {
            "samples": self.samples,
            "sessions": [session.to_dict() for session in self._sessions.values()],
            "checkpointer": self._checkpointer_counters(),
        }

    def _checkpointer_counters(self) -> dict[str, float] | None:
        if self.checkpointer is None:
            return None
        cpu_seconds = _rounded(self.checkpointer.reading.cpu_seconds)
        return {**self.checkpointer.found, **({} if cpu_seconds is None else {"cpu_seconds": cpu_seconds})}

    def _look_at_checkpointer(self, process_id: int, wait_type: str | None, wait_event: str | None) -> None:
        if self.checkpointer is None or self.checkpointer.process_id != process_id:
            self.checkpointer = WatchedProcess(process_id)
        # It has no state; between two checkpoints it waits for its latch.
        is_idle = wait_type == "Activity"
        self.checkpointer.look("idle" if is_idle else _doing("active", wait_type, wait_event))

    def _forget(self) -> None:
        ended = [key for key, session in self._sessions.items() if not session.is_there]
        for key in ended[: max(0, len(ended) - _KEPT_ENDED)]:
            del self._sessions[key]


def _doing(state: str | None, wait_type: str | None, wait_event: str | None) -> str | None:
    """A word for what a session does. A state that is `disabled` says nothing, but waits are told all the same."""
    if state is None:
        return None
    if state.startswith("idle"):
        return "idle"
    if wait_type is None:
        return "cpu"
    return "client" if (wait_type, wait_event) == ("Client", "ClientRead") else f"{wait_type}:{wait_event}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, _DECIMALS)
