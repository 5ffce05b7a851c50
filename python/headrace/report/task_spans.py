"""What events.jsonl tells: attempts, when tasks began and ended, notices, and how far data flows were."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from headrace.report.json_files import JsonLines
from headrace.report.tracks import Track
from headrace.report.values import Document, document, moment, number, text, whole

# More cannot be looked at.
MOST_TASKS: Final = 2_000
_MOST_NOTICES: Final = 200
# By how much the time of day may differ from the time that a run has taken before it is called changed.
_CLOCK_SECONDS: Final = 2.0
_CLOCK_SHARE: Final = 0.05


@dataclass
class TaskSpan:
    """One task of one attempt. `begin` and `end` are seconds of the attempt; `end` is None if it was not told."""

    task: str
    kind: str
    begin: float
    table: str | None = None
    end: float | None = None
    status: str | None = None
    finished: Document = field(default_factory=dict)
    started: Document = field(default_factory=dict)


@dataclass
class AttemptEvents:
    """The events of one attempt. `progress`: bytes that each data flow had read."""

    number: int
    started_at: datetime | None
    started: Document = field(default_factory=dict)
    seconds: float = 0.0
    status: str | None = None
    error: Document = field(default_factory=dict)
    tasks: dict[str, TaskSpan] = field(default_factory=dict)
    progress: dict[str, Track] = field(default_factory=dict)


class Events:
    """The events of a run."""

    def __init__(self) -> None:
        self.attempts: list[AttemptEvents] = []
        self.notices: list[tuple[str | None, str]] = []
        self.tasks_left_out = 0
        self.clock_changed: list[int] = []

    @property
    def started(self) -> Document:
        """The first line of the last attempt."""
        return self.attempts[-1].started if self.attempts else {}

    def take(self, line: Document) -> bool:
        """Takes over a line; False for one that is damaged."""
        event, at = text(line, "event"), moment(line, "at")
        if event is None:
            return False
        if event == "run_started" or not self.attempts:
            started = line if event == "run_started" else {}
            self.attempts.append(AttemptEvents(len(self.attempts) + 1, at, started))
        attempt = self.attempts[-1]
        seconds = attempt.seconds
        if at is not None and attempt.started_at is not None:
            # Clocks that are put back do not take the run back.
            seconds = max(seconds, (at - attempt.started_at).total_seconds())
        attempt.seconds = seconds
        if event == "task_started":
            self._started(attempt, line, seconds)
        elif event == "task_finished":
            self._finished(attempt, line, seconds)
        elif event == "progress":
            self._progress(attempt, line, seconds)
        elif event == "notice" and len(self.notices) < _MOST_NOTICES:
            self.notices.append((text(line, "task"), text(line, "text") or ""))
        elif event == "run_finished":
            self._ended(attempt, line, seconds)
        return True

    def _started(self, attempt: AttemptEvents, line: Document, seconds: float) -> None:
        name = text(line, "task")
        if name is None:
            return
        known = attempt.tasks.get(name)
        if known is None:
            if len(attempt.tasks) >= MOST_TASKS:
                self.tasks_left_out += 1
                return
            known = attempt.tasks[name] = TaskSpan(name, text(line, "kind") or "task", seconds)
        if text(line, "table") is not None:
            known.table, known.started = text(line, "table"), line

    def _finished(self, attempt: AttemptEvents, line: Document, seconds: float) -> None:
        known = attempt.tasks.get(text(line, "task") or "")
        if known is not None:
            known.end, known.status, known.finished = seconds, text(line, "status"), line

    def _progress(self, attempt: AttemptEvents, line: Document, seconds: float) -> None:
        name, size = text(line, "task"), number(line, "bytes_read")
        if name is not None and size is not None:
            attempt.progress.setdefault(name, Track(1)).add(seconds, [size])

    def _ended(self, attempt: AttemptEvents, line: Document, seconds: float) -> None:
        attempt.status, attempt.error = text(line, "status"), document(line, "error")
        taken = number(line, "seconds")
        if taken is None:
            return
        if abs(taken - seconds) > max(_CLOCK_SECONDS, _CLOCK_SHARE * taken):
            self.clock_changed.append(attempt.number)
        attempt.seconds = taken
        for span in attempt.tasks.values():
            span.begin = min(span.begin, taken)
            span.end = None if span.end is None else min(span.end, taken)


def read_events(path: Path, notes: list[str]) -> Events:
    """What the file tells; what is wrong with it goes into `notes`."""
    events, lines = Events(), JsonLines(path)
    for line in lines:
        if not events.take(line):
            lines.refuse()
    for attempt in events.attempts:
        for track in attempt.progress.values():
            track.close()
    notes += lines.notes()
    if lines.is_missing:
        notes.append("There is no events.jsonl: when tasks began and ended is not known.")
    if events.tasks_left_out:
        notes.append(f"{events.tasks_left_out:,} more tasks than the first {MOST_TASKS:,} are not drawn.")
    notes += [
        f"The clock was changed during attempt {number}: where its tasks are drawn is not exact."
        for number in events.clock_changed
    ]
    return events


def table_of(span: TaskSpan) -> str:
    """What a data flow is called in figures."""
    return span.table or span.task


def slices_of(span: TaskSpan) -> int | None:
    """The number of slices of a data flow."""
    return whole(span.started, "slices")
