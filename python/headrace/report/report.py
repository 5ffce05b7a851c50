"""Makes the report of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import OutputError
from headrace.private_files import open_file
from headrace.report.page import page
from headrace.report.run_files import read_run
from headrace.run.whole_file import written_whole

FILE_NAME = "report.html"


@dataclass(frozen=True)
class Report:
    """A report that was written. `notes`: what it lacks, a sentence each."""

    run_id: str
    status: str | None
    path: Path
    size_bytes: int
    against: str | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "report": str(self.path),
            "bytes": self.size_bytes,
            "against": self.against,
            "notes": list(self.notes),
        }


def write_report(folder: Path, output: Path | None = None, against: Path | None = None) -> Report:
    """Reads the folder of a run, and writes its report into it, or into the file `output`.

    `against`: the folder of an earlier run to compare with. Raises OutputError if the file cannot be written; whatever
    is wrong with the folder is said in the report.
    """
    run = read_run(folder)
    earlier = None if against is None else read_run(against)
    path = folder / FILE_NAME if output is None else output
    # A name that is not UTF-8 may be part of a text.
    document = page(run, earlier).encode("utf-8", "backslashreplace")
    _write(path, document, is_chosen=output is not None)
    notes = (*run.notes, *([] if earlier is None else [f"Run {earlier.run_id}: {note}" for note in earlier.notes]))
    return Report(run.run_id, run.status, path, len(document), None if earlier is None else earlier.run_id, notes)


def _write(path: Path, document: bytes, *, is_chosen: bool) -> None:
    """Whole or not at all: somebody may be looking at the report of a run that goes on."""
    try:
        # A file that somebody has named is theirs to share; that of the run folder is not.
        opened = open if is_chosen else open_file
        with written_whole(path) as unfinished, opened(unfinished, "wb") as file:
            file.write(document)
    except OSError as error:
        hint = "Choose another file with --output." if is_chosen else "Choose a file elsewhere with --output."
        raise OutputError(
            "the report cannot be written", at={"file": str(path)}, found=error.strerror, hint=hint
        ) from error
