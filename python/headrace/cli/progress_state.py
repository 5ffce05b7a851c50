"""What is known about a running load, folded from the events of the run. No output happens here.

Times are seconds of a monotonic clock that the caller reads; events arrive on any thread, so every method locks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.cli.limit_text import limit_words, slow_lines
from headrace.cli.progress_tasks import OtherTasks, is_other

# Rates of a running table are those of the last seconds: an average since the start would hide that it got slower.
RATE_WINDOW_SECONDS: Final = 3.0
# Before this much time a rate is noise and no estimate is shown.
MINIMUM_RATE_SECONDS: Final = 0.3

# Of more tables, those that have ended first are only counted.
MAXIMUM_TABLES: Final = 200

WAITING: Final = "waiting"
LOADING: Final = "loading"


@dataclass
class TableProgress:
    """One task that loads one table. `state` is waiting, loading, or the status it ended with."""

    task: str
    table: str
    state: str = WAITING
    rows_read: int = 0
    rows_rejected: int = 0
    bytes_read: int = 0
    source_bytes_read: int = 0
    counted_bytes: int = 0
    bytes_total: int = 0
    started: float = 0.0
    seconds: float = 0.0
    # Whether its source is read for it: not if it is for another destination of the same flow.
    is_source: bool = True
    # Its lookup that is being read.
    reading: str = ""
    # What limits it now, and streams that are late, as lines to be shown.
    limit: str = ""
    slow: list[str] = field(default_factory=list)
    samples: deque[tuple[float, int, int]] = field(default_factory=deque)

    def has_begun(self) -> bool:
        """Whether anything has happened to the table."""
        return self.started > 0

    def is_counting(self) -> bool:
        """Whether rows are counted for their numbers, before the first one is loaded."""
        return self.state == LOADING and self.counted_bytes > 0 and self.source_bytes_read == 0

    def rates(self, now: float) -> tuple[float, float] | None:
        """Rows and bytes per second: of the last seconds while loading, of the whole table afterwards."""
        if self.state != LOADING:
            return (self.rows_read / self.seconds, self.bytes_read / self.seconds) if self.seconds > 0 else None
        if not self.samples or now - self.samples[0][0] < MINIMUM_RATE_SECONDS:
            return None
        first_time, first_rows, first_bytes = self.samples[0]
        elapsed = now - first_time
        return (self.rows_read - first_rows) / elapsed, (self.bytes_read - first_bytes) / elapsed

    def percent(self) -> int | None:
        """How much of the files has been read, 0 to 100, rounded down; None when their size is not known."""
        return min(100, self.source_bytes_read * 100 // self.bytes_total) if self.bytes_total > 0 else None

    def seconds_left(self, now: float) -> float | None:
        """Estimated time until all files are read; None when it cannot be said."""
        rates = self.rates(now)
        left = self.bytes_total - self.source_bytes_read
        if self.state != LOADING or rates is None or rates[1] <= 0 or left <= 0 or self.source_bytes_read <= 0:
            return None
        # A byte of a compressed file is several bytes of text.
        return left * (self.bytes_read / self.source_bytes_read) / rates[1]


class RunProgress:
    """The tables of one run in the order of the run."""

    def __init__(self) -> None:
        self.started = 0.0
        self.run_id = ""
        self.run_folder = ""
        self.tables: dict[str, TableProgress] = {}
        self.others = OtherTasks()
        # Tables that have ended and are shown no more, added up.
        self.folded = TableProgress("", "", state="success")
        self.folded_count = 0
        # Of flows with several destinations the first task, with which their source is told.
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()

    def apply(self, event: Mapping[str, Any], now: float) -> None:
        """Take over what one event says."""
        with self._lock:
            self.others.apply(event, now)
            if is_other(event):
                return
            match event["event"]:
                case "run_started":
                    self._start_run(event, now)
                case "task_started":
                    self._start_table(event, now)
                case "lookup_started":
                    self._table(event).reading = str(event["lookup"])
                case "lookup_read":
                    self._end_lookup(event, now)
                case "progress":
                    self._advance(event, now)
                case "limit":
                    self._table(event).limit = limit_words(event)
                case "slow_streams":
                    self._table(event).slow = slow_lines(event["streams"])
                case "task_finished":
                    self._finish(event, now)
                case "task_skipped":
                    self._table(event).state = "skipped"

    def lines(self) -> list[TableProgress]:
        """The tables, in order."""
        with self._lock:
            return list(self.tables.values())

    def other_lines(self, now: float) -> list[str]:
        """Tasks that are no data flows and take their time, a line each."""
        with self._lock:
            return list(self.others.running(now))

    def _start_run(self, event: Mapping[str, Any], now: float) -> None:
        self.started = now
        self.run_id = str(event["run_id"])
        self.run_folder = str(event["run_folder"])
        for task in event["tasks"]:
            self._table(task).bytes_total = int(task.get("bytes_total") or 0)

    def _start_table(self, event: Mapping[str, Any], now: float) -> None:
        flow = str(event.get("flow_of") or "")
        if flow and event["bytes_total"]:
            # The first one of all may have been complete before.
            if first := self.tables.get(self._first.get(flow, "")):
                first.is_source = False
            self._first[flow] = str(event["task"])
        table = self._table(event)
        table.state = LOADING
        table.bytes_total = int(event["bytes_total"])
        table.started = now
        table.samples.append((now, 0, 0))

    def _end_lookup(self, event: Mapping[str, Any], now: float) -> None:
        table = self._table(event)
        table.reading = ""
        # Rates are those of loading.
        table.samples.clear()
        table.samples.append((now, 0, 0))

    def _advance(self, event: Mapping[str, Any], now: float) -> None:
        table = self._table(event)
        table.rows_read = int(event["rows_read"])
        table.rows_rejected = int(event["rows_rejected"])
        table.bytes_read = int(event["bytes_read"])
        table.source_bytes_read = int(event.get("source_bytes_read", event["bytes_read"]))
        table.counted_bytes = int(event.get("counted_bytes", 0))
        table.seconds = now - table.started
        if table.is_counting():
            # Rates are those of loading.
            table.samples.clear()
        table.samples.append((now, table.rows_read, table.bytes_read))
        while len(table.samples) > 2 and now - table.samples[0][0] > RATE_WINDOW_SECONDS:
            table.samples.popleft()

    def _finish(self, event: Mapping[str, Any], now: float) -> None:
        table = self._table(event)
        table.state, table.reading = str(event["status"]), ""
        if "rows_read" not in event:
            return  # it has failed before its first row, or its rows were told already
        table.rows_read = int(event["rows_read"])
        table.rows_rejected = int(event["rows_rejected"])
        table.bytes_read = int(event["bytes_read"])
        table.source_bytes_read = table.bytes_total
        table.seconds = float(event["seconds"])
        self._fold()

    def _fold(self) -> None:
        """A loop may load any number of tables."""
        if len(self.tables) <= MAXIMUM_TABLES:
            return
        ended = next((task for task, table in self.tables.items() if table.state not in (WAITING, LOADING)), None)
        if ended is not None:
            table = self.tables.pop(ended)
            self.folded_count += 1
            if not table.is_source:
                return
            self.folded.rows_read += table.rows_read
            self.folded.rows_rejected += table.rows_rejected
            self.folded.bytes_read += table.bytes_read
            self.folded.source_bytes_read += table.source_bytes_read
            self.folded.bytes_total += table.bytes_total

    def _table(self, event: Mapping[str, Any]) -> TableProgress:
        task = str(event["task"])
        if task not in self.tables:
            self.tables[task] = TableProgress(task, str(event.get("table") or task))
        if event.get("flow_of"):
            self.tables[task].is_source = self._first.setdefault(str(event["flow_of"]), task) == task
        return self.tables[task]
