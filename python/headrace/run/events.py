"""The events of a run: to the listener as they happen, and into events.jsonl."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.errors import LedgerError
from headrace.run.redact import Redactor

Listener = Callable[[Mapping[str, Any]], None]
_PROGRESS_FILE_SECONDS = 1.0


class EventLog:
    """Redacts, stamps and hands on events.

    The file holds every event, but `progress` at most once a second. Telling of a run must not be able to break it, and
    rows may be committed already: a file that cannot be written (any more) is given up with a notice to the listener,
    and a listener that raises is not called again.
    """

    def __init__(self, path: Path, redactor: Redactor, listener: Listener | None) -> None:
        """Events of a resumed run go behind those of its first attempt."""
        self._path = path
        self._redactor = redactor
        self._listener = listener
        self._progress_written_at = 0.0
        self._given_up = False
        try:
            # A name that is not UTF-8 may be part of a message.
            self._file = path.open("a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise LedgerError(
                "cannot write the events of the run",
                at={"file": str(path)},
                found=error.strerror,
                hint="Free space there, or choose another place with --runs-dir.",
            ) from error

    def emit(self, event: str, **members: Any) -> None:
        """Sends one event; never raises for a file or listener that fails."""
        document = {"event": event, "at": _now(), **self._redactor.data(members)}
        problem = self._write(document)
        self._tell(document)
        if problem is not None:
            text = f"the events of the run are no longer written to {self._path}: {problem.strerror}"
            self._tell(_notice(self._redactor.text(text)))

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
        if self._given_up:
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
        try:
            self._listener(document)
        except Exception as error:
            self._listener = None
            self._write(_notice(self._redactor.text(f"the listener failed: {error!r}")))


def _notice(text: str) -> dict[str, Any]:
    return {"event": "notice", "at": _now(), "task": None, "text": text}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
