"""Files of a run folder with one JSON document in each line, written while others may be killed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from headrace.errors import LedgerError
from headrace.private_files import open_file
from headrace.run.true_hints import NEW_RUN

_BLOCK_BYTES: Final = 1 << 16


def add_line(path: Path, document: Mapping[str, Any], what: str) -> None:
    """Writes a line; it is on disk when this returns. `what` it says, for messages. Raises LedgerError."""
    try:
        with open_file(path, "a+b") as file:
            file.truncate(_end_of_lines(file))
            file.write(json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LedgerError(
            f"cannot write {what}",
            at={"file": str(path)},
            found=error.strerror,
            hint="Free space there, or choose another place with --runs-dir.",
        ) from error


def lines(run_id: str, path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Documents in the order in which they were written, and how many bytes each has; one that was cut off is left out.
    Raises LedgerError for a file that is damaged.
    """
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line), len(line)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"run {run_id} cannot be repeated: its folder is not complete",
            at={"file": str(path)},
            found=getattr(error, "strerror", None) or "not JSON",
            hint=NEW_RUN,
        ) from error


def _end_of_lines(file: IO[bytes]) -> int:
    """Behind the last whole line: what follows was cut off while it was written, and would damage the next one."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - _BLOCK_BYTES)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
