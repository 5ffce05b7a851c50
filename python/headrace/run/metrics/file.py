"""Lines of `metrics.jsonl`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from headrace.private_files import FILE_MODE
from headrace.run.redact import Redactor

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
# Their texts are words of Headrace, which readers look up; a password that is one of them must not break that.
_OWN_WORDS: Final = frozenset({"kind", "at", "type", "doing", "transport", "limit", "next_limit"})


class MetricsFile:
    """Appends JSON documents, one per line, without secrets; from any thread.

    Measuring must not be able to break a run: a file that cannot be written (any more) is given up with one notice.
    Nothing is written when another process has resumed the run (`is_ours`).
    """

    def __init__(
        self, path: Path, redactor: Redactor, notice: Callable[[str], None], is_ours: Callable[[], bool] = lambda: True
    ) -> None:
        """Lines of a resumed run go behind those of its earlier attempts."""
        self._path = path
        self._redactor = redactor
        self._notice = notice
        self._is_ours = is_ours
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, _FLAGS, FILE_MODE)
            self._end_last_line(self._descriptor)
        except OSError as error:
            self._give_up(error)

    def append(self, document: Mapping[str, Any]) -> None:
        """Writes one line. Raises ValueError for what is no JSON, such as a number that is not finite."""
        line = self._line(document)
        problem = None
        with self._lock:
            if self._descriptor is None or not self._is_ours():
                return
            try:
                _write(self._descriptor, line)
            except OSError as error:
                problem = error
                self._close()
        if problem is not None:
            self._tell(problem)

    def close(self) -> None:
        """Closes the file; what comes later is dropped."""
        with self._lock:
            self._close()

    def _line(self, document: Mapping[str, Any]) -> bytes:
        text = _json(document)
        # Looking for secrets in one long text is 20 times cheaper than in each of 1,000 values. What JSON writes in
        # another way than it is has a backslash.
        if "\\" in text or self._redactor.text(text) != text:
            text = _json(self._without_secrets(document))
        return text.encode("utf-8", "backslashreplace") + b"\n"

    def _without_secrets(self, data: Any, name: str = "") -> Any:
        if isinstance(data, str):
            return data if name in _OWN_WORDS else self._redactor.text(data)
        if isinstance(data, Mapping):
            return {member: self._without_secrets(value, member) for member, value in data.items()}
        if isinstance(data, list | tuple):
            return [self._without_secrets(item, name) for item in data]
        return data

    def _end_last_line(self, descriptor: int) -> None:
        """A process that died in the middle of a line must not spoil the first one of its successor."""
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            _write(descriptor, b"\n")

    def _give_up(self, error: OSError) -> None:
        self._close()
        self._tell(error)

    def _tell(self, error: OSError) -> None:
        self._notice(f"what the run measures is not written to {self._path} (any more): {error.strerror}")

    def _close(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _write(descriptor: int, data: bytes) -> None:
    """All of it; a disk that becomes full takes a part and refuses the rest."""
    while data:
        data = data[os.write(descriptor, data) :]
