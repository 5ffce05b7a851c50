"""Shows a running load on stderr: a live table on a terminal, plain lines elsewhere, nothing with `--quiet`.

A shower is the listener of a run and a context manager; everything it knows is in `progress_state`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TextIO

from headrace import units
from headrace.cli.console import talk_console, write_talk
from headrace.cli.limit_text import limit_words, slow_lines
from headrace.cli.progress_state import LOADING, RunProgress, TableProgress
from headrace.cli.progress_tasks import is_other
from headrace.cli.signals import STOPPING, write_now
from headrace.errors import on_one_line, rows_are, without_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

PLAIN_INTERVAL_SECONDS: Final = 5.0
LIVE_REFRESH_PER_SECOND: Final = 8
TABLE_NAME_CHARACTERS: Final = 22

Event = Mapping[str, Any]
_ENDS: Final = ("task_finished", "task_skipped")


class Shower(AbstractContextManager["Shower"], Protocol):
    """What a command needs of the progress display."""

    def listen(self, event: Event) -> None:
        """Take one event of the run, on any thread."""

    def stopping(self) -> None:
        """Say that the run was asked to stop. Called from a signal handler: must not block."""


def open_progress(*, quiet: bool, clock: Callable[[], float] = time.monotonic) -> Shower:
    """The display that suits stderr."""
    if quiet:
        return SilentProgress()
    if sys.stderr is None:
        return SilentProgress()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return LiveProgress(talk_console(), clock)
    return PlainProgress(sys.stderr, clock)


class SilentProgress:
    """`--quiet`: only the answer to Ctrl-C is shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def listen(self, event: Event) -> None:
        """Show nothing."""

    def stopping(self) -> None:
        """Say that the run stops."""
        write_now(STOPPING)


class PlainProgress:
    """Lines for log files: each start, each end, and every five seconds what is loading."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._state = RunProgress()
        self._last_line: dict[str, float] = {}
        self._said_notes: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def listen(self, event: Event) -> None:
        """Print the line that the event deserves, if any."""
        now = self._clock()
        self._state.apply(event, now)
        line = self._line(event, now)
        if line is not None:
            with self._lock:
                write_talk(f"{without_controls(line)}\n", self._stream)

    def stopping(self) -> None:
        """Say that the run stops."""
        write_now(STOPPING)

    def _line(self, event: Event, now: float) -> str | None:
        if is_other(event):
            return self._state.others.ended_line(event) if event["event"] in _ENDS else None
        if event["event"] in _LINES:
            return _LINES[event["event"]](event)
        match event["event"]:
            case "task_started":
                self._last_line[str(event["task"])] = now
                return "\n".join([table_started_line(event), *self._new_notes(event)])
            case "progress":
                task = str(event["task"])
                if now - self._last_line.get(task, 0.0) < PLAIN_INTERVAL_SECONDS:
                    return None
                self._last_line[task] = now
                return progress_line(self._state.tables[task], now)
            case "task_finished" if "table" in event:
                if event["status"] == "success":
                    self._last_line.pop(str(event["task"]), None)
                return finished_line(event)
            case "task_finished" if str(event["task"]) not in self._last_line:
                return self._state.others.ended_line(event)  # it has failed before it began to load
            case "task_skipped":
                return self._skipped_line(event)
        return None

    def _skipped_line(self, event: Event) -> str | None:
        if "table" not in event:
            return self._state.others.ended_line(event)
        return f"{event.get('table') or event['task']}: skipped, {event['reason']}"

    def _new_notes(self, event: Event) -> list[str]:
        """Notes of the plan that were not said for an earlier table."""
        notes = [str(note) for note in event["notes"] if note not in self._said_notes]
        self._said_notes.update(notes)
        return [f"  {note}" for note in notes]


class LiveProgress:
    """A table that is redrawn in place; notices scroll above it."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._state = RunProgress()
        self._stopping = False
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(
            console=self._console,
            get_renderable=self.render,
            refresh_per_second=LIVE_REFRESH_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._console.print()  # what follows is not part of the table

    def listen(self, event: Event) -> None:
        """Take the event over; the next redraw shows it."""
        self._state.apply(event, self._clock())
        text = started_line(event) if event["event"] == "run_started" else None
        if event["event"] == "notice":
            text = notice_line(event)
        if event["event"] == "task_finished" and is_other(event) and event.get("error") is not None:
            text = self._state.others.ended_line(event)
        if text is not None:
            self._console.print(without_controls(text), markup=False, highlight=False, soft_wrap=True)

    def stopping(self) -> None:
        """Say that the run stops, with the next redraw: a handler must not wait for the terminal."""
        self._stopping = True

    def render(self) -> RenderableType:
        """The table as it is now."""
        from headrace.cli.progress_table import live_table

        return live_table(self._state, self._clock(), STOPPING if self._stopping else None)


def started_line(event: Event) -> str:
    """The first line of a run."""
    tasks = f"{units.plural(len(event['tasks']), 'task')}, " if event["tasks"] else ""
    return (
        f"run {event['run_id']}: {event['package']}, {tasks}"
        f"{units.plural(int(event['streams']), 'stream')}, memory {units.size(int(event['memory_bytes']))}"
    )


def table_started_line(event: Event) -> str:
    """A table begins to load."""
    files = units.plural(int(event["files"]), "file")
    slices = units.plural(int(event["slices"]), "slice")
    text = f", {units.size(int(event['bytes_total']))}" if event["bytes_total"] else ""
    return f"{event['table']}: loading {files}{text}, {slices}, {units.plural(int(event['streams']), 'stream')}"


def lookup_started_line(event: Event) -> str:
    """A lookup is read, before the rows of the table."""
    size = f", {units.size(int(event['bytes_total']))}" if event["bytes_total"] else ""
    return f"{event['table']}: reading lookup {event['lookup']}, {event['rows_from']}{size}"


def lookup_read_line(event: Event) -> str:
    """A lookup is in memory."""
    return (
        f"{event['table']}: lookup {event['lookup']} has {units.plural(int(event['rows']), 'row')}, read in "
        f"{units.duration(float(event['seconds']))}, {units.size(int(event['bytes']))} of memory"
    )


def progress_line(table: TableProgress, now: float) -> str:
    """Where a table is."""
    if table.is_counting():
        return f"{table.table}: counting rows, {units.size(table.counted_bytes)} read"
    parts = [f"{units.count(table.rows_read)} rows"]
    percent = table.percent()
    if percent is not None:
        parts.append(f"{percent} % of {units.size(table.bytes_total)}")
    rates = table.rates(now)
    if rates is not None:
        parts.append(f"{units.per_second(rates[0], 1)} rows/s")
        parts.append(f"{units.megabytes_per_second(rates[1], 1)} MB/s")
    parts.append(f"{units.count(table.rows_rejected)} rejected")
    left = table.seconds_left(now)
    if left is not None:
        parts.append(f"{units.remaining(left)} left")
    return f"{table.table}: {', '.join(parts)}"


def finished_line(event: Event) -> str:
    """How a table ended."""
    name, seconds = event["table"], float(event["seconds"])
    if event["status"] != "success":
        visible = rows_are(int(event["rows_loaded"])) if event["rows_loaded"] else "nothing of it is"
        return f"{name}: {event['status']} after {units.duration(seconds)}, {visible} visible"
    return (
        f"{name}: loaded {units.plural(int(event['rows_loaded']), 'row')} in {units.duration(seconds)}, "
        f"{units.megabytes_per_second(int(event['bytes_read']), seconds)} MB/s, "
        f"{units.count(int(event['rows_rejected']))} rejected"
    )


def limit_line(event: Event) -> str | None:
    """What limits a table now, or its streams that are late. What has limited all of it stands in the accounts."""
    if event["event"] == "slow_streams":
        return "\n".join(f"{event['table']}: {line}" for line in slow_lines(event["streams"]))
    return None if event["is_final"] else f"{event['table']}: {limit_words(event)}"


def notice_line(event: Event) -> str:
    """Something worth knowing."""
    task = event.get("task")
    return f"note: {f'{task}: ' if task else ''}{event['text']}"


def shown_name(table: TableProgress) -> str:
    """A table's name in a narrow column."""
    name = on_one_line(table.table)
    return name if len(name) <= TABLE_NAME_CHARACTERS else name[: TABLE_NAME_CHARACTERS - 1] + "…"


def shown_state(table: TableProgress) -> str:
    """The state of a table in one word, or how much of it is read."""
    if table.state != LOADING:
        return "done" if table.state == "success" else table.state
    if table.is_counting():
        return f"counting {units.size(table.counted_bytes)}"
    percent = table.percent()
    if percent is None:
        return LOADING
    # All files are read, the last rows are being written and committed.
    return "ending" if table.source_bytes_read >= table.bytes_total else f"{percent} %"


# What some events are told by, whatever the state of the run is.
_LINES: Final[Mapping[str, Callable[[Event], str | None]]] = {
    "run_started": started_line,
    "lookup_started": lookup_started_line,
    "lookup_read": lookup_read_line,
    "limit": limit_line,
    "slow_streams": limit_line,
    "notice": notice_line,
}
