"""JSON from files that may be missing, damaged, or still being written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.report.values import Document
from headrace.run.redact import Redactor
from headrace.units import plural

# What the run itself has not hidden: logins in URLs. Secrets were replaced when the files were written.
_REDACTOR = Redactor(())


def read_document(path: Path, notes: list[str]) -> Document:
    """The document of a file; empty if there is none. What is wrong with it goes into `notes`."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        notes.append(unreadable(path, error))
        return {}
    except (ValueError, RecursionError):
        notes.append(f"{path.name} is damaged: it is not a JSON document. What it tells is missing here.")
        return {}
    if not isinstance(document, dict):
        notes.append(f"{path.name} is damaged: it holds something else. What it tells is missing here.")
        return {}
    return redacted(document)


def redacted(document: dict[str, Any]) -> Document:
    """The document without logins in URLs."""
    data = _REDACTOR.data(document)
    return data if isinstance(data, dict) else {}


class JsonLines:
    """The documents of a file with one on each line; iterate once, then ask what was wrong.

    `damaged`: lines that are no documents, or that the reader has refused (`refuse`). `is_cut`: the last line has no
    end: it was being written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines = 0
        self.damaged = 0
        self.is_cut = False
        self.is_missing = False
        self._problem: OSError | None = None

    def __iter__(self) -> Iterator[Document]:
        try:
            with self._path.open("rb") as file:
                for line in file:
                    self.is_cut = not line.endswith(b"\n")
                    document = _parsed(line)
                    if document is not None:
                        self.lines += 1
                        yield document
                    elif line.strip() and not self.is_cut:
                        self.damaged += 1
        except FileNotFoundError:
            self.is_missing = True
        except OSError as error:
            self._problem = error

    def refuse(self) -> None:
        """The last document was not what its reader needs."""
        self.lines -= 1
        self.damaged += 1

    def notes(self) -> list[str]:
        """What to say of the file, a sentence each."""
        found = [] if self._problem is None else [unreadable(self._path, self._problem)]
        return found + line_notes(self._path, self.damaged, is_cut=self.is_cut)


def line_notes(path: Path, damaged: int, *, is_cut: bool) -> list[str]:
    """What to say of a file with so many damaged lines, beside a last one that is cut off."""
    found = []
    if damaged:
        were = "was" if damaged == 1 else "were"
        found.append(f"{plural(damaged, 'line')} of {path.name} {were} damaged and left out.")
    if is_cut:
        found.append(f"The last line of {path.name} has no end: the run was writing it, or was killed while it did.")
    return found


def unreadable(path: Path, error: OSError) -> str:
    """What to say of a file that cannot be read to its end."""
    return f"{path.name} cannot be read: {error.strerror}."


def has_no_end(path: Path) -> bool:
    """Whether the last line of a file is cut off."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False


def _parsed(line: bytes) -> Document | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    # Nearly no line holds a URL, and looking through all of its texts would take longer than reading it.
    return redacted(document) if b":/" in line or b"\\u" in line else document
