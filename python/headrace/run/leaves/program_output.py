"""What a program writes: kept in the run folder without secrets, its last lines for errors; or taken for a variable."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Protocol

from headrace.errors import on_one_line
from headrace.model.suggest import shorten
from headrace.private_files import make_folder, open_file

# Of the texts that are read at once; longer lines are kept in pieces.
_PENDING_CHARACTERS: Final = 65_536
_SHOWN_LINES: Final = 20
_SHOWN_LINE_CHARACTERS: Final = 500
_NAME_CHARACTERS: Final = 120
# Colours, movements of the cursor, titles of windows.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


class Sink(Protocol):
    """Takes the bytes of one stream."""

    def take(self, content: bytes) -> bool:
        """False if it takes no more: the program is to be ended."""

    def close(self) -> None:
        """Nothing comes any more."""


class Collected:
    """All bytes, up to a limit."""

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self.content = bytearray()
        self.is_too_long = False

    def take(self, content: bytes) -> bool:
        """Keeps them, unless they are too many."""
        if len(self.content) + len(content) > self._maximum_bytes:
            self.is_too_long = True
            return False
        self.content += content
        return True

    def close(self) -> None:
        """Nothing to do."""


class LogFile:
    """A file of what a program prints, secrets replaced. It is made with the first text, and never ends the program:
    when it cannot be written, that is said once.
    """

    def __init__(
        self, path: Path, redact: Callable[[str], str], secrets: Collection[str], warn: Callable[[str], None]
    ) -> None:
        self.path = path
        self._is_open = True
        self.is_written = False
        self._redact = redact
        self._secrets = secrets
        self._warn = warn
        # Bytes of one character may come in two pieces.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._pending = ""
        self._last: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._open_line = ""

    def take(self, content: bytes) -> bool:
        """Keeps them; the end of the text waits, as a secret may be cut there."""
        # What is redacted twice is the same as what is redacted once.
        self._pending = self._redact(self._pending + self._decoder.decode(content))
        whole = len(self._pending) - self._longest_secret()
        end = self._pending.rfind("\n", 0, max(0, whole)) + 1
        if end == 0 and len(self._pending) > _PENDING_CHARACTERS:
            end = max(0, whole)
        if end:
            self._write(self._pending[:end])
            self._pending = self._pending[end:]
        return True

    def close(self) -> None:
        """Writes what has waited."""
        self._pending = self._redact(self._pending + self._decoder.decode(b"", final=True))
        if self._pending:
            self._write(self._pending)
            self._pending = ""
        if self._open_line:
            self._last.append(self._open_line)
            self._open_line = ""

    def last_lines(self) -> list[str]:
        """The last lines that say something, without what steers terminals."""
        return [line for text in self._last if (line := _plain(text))]

    def _longest_secret(self) -> int:
        # A copy: other tasks may find secrets meanwhile.
        return max((len(json.dumps(secret, ensure_ascii=False)) for secret in tuple(self._secrets)), default=0)

    def _write(self, text: str) -> None:
        *lines, rest = (self._open_line + text).split("\n")
        self._last.extend(lines)
        # Only the end of an endless line can be among the last ones.
        self._open_line = rest[-_PENDING_CHARACTERS:]
        if not self._is_open:
            return
        try:
            make_folder(self.path.parent, parents=True, exist_ok=True)
            with open_file(self.path, "a", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
            self.is_written = True
        except OSError as error:
            self._warn(f"what the program prints cannot be kept in {self.path}: {error.strerror}")
            self._is_open = False


def log_path(run_folder: Path, instance: str, stream: str) -> Path:
    """`processes/<task>.stdout` of the run folder; all attempts of a task share it."""
    name = re.sub(r"[^\w.\[\]=+-]", "_", instance)
    if name != instance or len(name) > _NAME_CHARACTERS:
        name = f"{name[:_NAME_CHARACTERS]}-{hashlib.sha256(instance.encode()).hexdigest()[:8]}"
    return run_folder / "processes" / f"{name}.{stream}"


def _plain(text: str) -> str:
    # Progress bars draw over their line: the last drawing counts.
    line = _ESCAPES.sub("", text.rstrip("\r\n")).rpartition("\r")[2].rstrip()
    if len(line) > _SHOWN_LINE_CHARACTERS:
        line = f"{line[:_SHOWN_LINE_CHARACTERS]}..."
    return "".join(character for character in line.replace("\t", " ") if character.isprintable())


def shown_program(command: str) -> str:
    """The name of a program in a message."""
    return on_one_line(shorten(command))
