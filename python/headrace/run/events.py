"""The events of a run: to the listener as they happen, and into events.jsonl."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from headrace.errors import LedgerError
from headrace.private_files import open_file
from headrace.run.redact import Redactor

Listener = Callable[[Mapping[str, Any]], None]
# How much of what happens is written into the file, each with what the ones before have.
LEVELS: Final = ("error", "warning", "information", "verbose")
_PROGRESS_FILE_SECONDS = 1.0


class EventLog:
    """Redacts, stamps and hands on events.

    The file holds every event, but `progress` at most once a second. Telling of a run must not be able to break it, and
    rows may be committed already: a file that cannot be written (any more) is given up with a notice to the listener,
    and a listener that raises is not called again.
    """

    def __init__(self, path: Path, redactor: Redactor, listener: Listener | None, level: str = "information") -> None:
        """Events of a resumed run go behind those of its first attempt. `level`: how much goes into the file."""
        self._level = LEVELS.index(level)
        self._lock = threading.Lock()
        self._owner = threading.get_ident()
        self._waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._path = path
        self._redactor = redactor
        self._listener = listener
        self._progress_written_at = 0.0
        self._given_up = False
        try:
            # A name that is not UTF-8 may be part of a message.
            self._file = open_file(path, "a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise LedgerError(
                "cannot write the events of the run",
                at={"file": str(path)},
                found=error.strerror,
                hint="Free space there, or choose another place with --runs-dir.",
            ) from error

    def emit(self, event: str, **members: Any) -> None:
        """Sends one event, from any thread; never raises for a file or listener that fails."""
        document = {"event": event, "at": _now(), **self._redactor.data(members)}
        with self._lock:
            problem = self._write(document)
            self._tell(document)
            if problem is not None:
                text = f"the events of the run are no longer written to {self._path}: {problem.strerror}"
                self._tell(_notice(self._redactor.text(text)))

    def pump(self, seconds: float) -> None:
        """Tells the listener what other threads have sent; waits up to `seconds` for it. For the thread that has made
        the log: the listener is called on it alone.
        """
        with suppress(queue.Empty):
            document = self._waiting.get(timeout=seconds) if seconds > 0 else self._waiting.get_nowait()
            while True:
                if document is not None:
                    self._call(document)
                document = self._waiting.get_nowait()

    def wake(self) -> None:
        """Ends the wait of `pump`, from another thread."""
        self._waiting.put(None)

    def notice(self, text: str, task: str | None = None) -> None:
        """Sends a notice: something the user should know that is no error."""
        self.emit("notice", task=task, text=text)

    def close(self) -> None:
        """Closes the file. Every event has been written or given up before: here nothing new can be said."""
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, document: Mapping[str, Any]) -> OSError | None:
        """Writes one event; returns the error after which no more are written."""
        if self._given_up or self._level < _level_of(document):
            return None
        if document["event"] == "progress":
            now = time.monotonic()
            if now - self._progress_written_at < _PROGRESS_FILE_SECONDS:
                return None
            self._progress_written_at = now
        try:
            self._file.write(json.dumps(document, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            self._given_up = True
            return error
        return None

    def _tell(self, document: Mapping[str, Any]) -> None:
        if self._listener is None:
            return
        if threading.get_ident() == self._owner and self._waiting.empty():
            self._call(document)
        else:
            self._waiting.put(document)

    def _call(self, document: Mapping[str, Any]) -> None:
        if self._listener is None:
            return
        try:
            self._listener(document)
        except Exception as error:
            self._listener = None
            self._write(_notice(self._redactor.text(f"the listener failed: {error!r}")))


def _level_of(document: Mapping[str, Any]) -> int:
    """The least level of a log that has the event."""
    name = document["event"]
    if name in ("run_started", "run_finished") or document.get("status") == "failed":
        return LEVELS.index("error")
    return LEVELS.index({"notice": "warning", "variables_set": "verbose"}.get(name, "information"))


def _notice(text: str) -> dict[str, Any]:
    return {"event": "notice", "at": _now(), "task": None, "text": text}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
