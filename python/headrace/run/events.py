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

    The file holds every event, but `progress` at most once a second. A listener that raises is not called again:
    showing a run must not be able to break it.
    """

    def __init__(self, path: Path, redactor: Redactor, listener: Listener | None) -> None:
        self._path = path
        self._redactor = redactor
        self._listener = listener
        self._progress_written_at = 0.0
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise self._failure(error) from error

    def emit(self, event: str, **members: Any) -> None:
        """Sends one event. Raises LedgerError if the file cannot be written."""
        document = {"event": event, "at": _now(), **self._redactor.data(members)}
        self._write(document)
        self._tell(document)

    def notice(self, text: str, task: str | None = None) -> None:
        """Sends a notice: something the user should know that is no error."""
        self.emit("notice", task=task, text=text)

    def close(self) -> None:
        """Closes the file. Every event has been written or has failed before: here nothing new can be said."""
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, document: Mapping[str, Any]) -> None:
        if document["event"] == "progress":
            now = time.monotonic()
            if now - self._progress_written_at < _PROGRESS_FILE_SECONDS:
                return
            self._progress_written_at = now
        try:
            self._file.write(json.dumps(document, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _tell(self, document: Mapping[str, Any]) -> None:
        if self._listener is None:
            return
        try:
            self._listener(document)
        except Exception as error:
            self._listener = None
            self._write({"event": "notice", "at": _now(), "task": None, "text": f"the listener failed: {error!r}"})

    def _failure(self, error: OSError) -> LedgerError:
        return LedgerError(
            "cannot write the events of the run",
            at={"file": str(self._path)},
            found=error.strerror,
            hint="Free space there, or choose another place with --runs-dir.",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
