"""The folder of one run: `<runs>/<run id>/` with events.jsonl, summary.json and rejects/."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.errors import LedgerError

DEFAULT_RUNS_FOLDER = Path(".headrace") / "runs"
_ATTEMPTS = 5


def new_run_id(now: datetime) -> str:
    """An id that sorts by time of start (UTC): `20261120-101530-ab12cd`."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class RunFolder:
    """A folder that belongs to one run alone. All paths are absolute."""

    def __init__(self, run_id: str, path: Path) -> None:
        self.run_id = run_id
        self.path = path
        self.rejects = path / "rejects"
        self.spill = path / "spill"
        self.events = path / "events.jsonl"
        self.summary = path / "summary.json"

    @classmethod
    def create(cls, runs_folder: Path, now: datetime) -> RunFolder:
        """Makes the folder of a new run. Raises LedgerError if that is not possible."""
        runs_folder = runs_folder.absolute()
        try:
            runs_folder.mkdir(parents=True, exist_ok=True)
            for _ in range(_ATTEMPTS):
                folder = cls((run_id := new_run_id(now)), runs_folder / run_id)
                try:
                    folder.path.mkdir()
                except FileExistsError:
                    continue
                folder.rejects.mkdir()
                return folder
        except OSError as error:
            raise LedgerError(
                "cannot create the folder of the run",
                at={"folder": str(runs_folder)},
                found=error.strerror,
                hint="Choose another place with --runs-dir.",
            ) from error
        raise LedgerError("cannot find a new run id", at={"folder": str(runs_folder)})

    def write_summary(self, document: dict[str, Any]) -> None:
        """Writes summary.json whole or not at all: a temporary name, then rename. Raises LedgerError."""
        temporary = self.path / ".summary.json"
        try:
            with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
                json.dump(document, file, indent=2, ensure_ascii=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.summary)
        except OSError as error:
            raise LedgerError(
                "cannot write the summary of the run",
                at={"file": str(self.summary)},
                found=error.strerror,
                hint="Free space there, or choose another place with --runs-dir.",
            ) from error

    def tidy(self) -> None:
        """Removes what an ended run does not need: empty folders for rejects and spilling. What cannot stays."""
        with suppress(OSError):
            for folder in (self.rejects, self.spill):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
