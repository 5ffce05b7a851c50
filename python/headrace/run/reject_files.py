"""The rejects of one task as its run has kept them: `T.jsonl`, one object each, beside `T.bad`, the original bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from headrace.errors import LedgerError
from headrace.run.folder import RunFolder
from headrace.targets.reject_files import RejectRow, read_rejects

__all__ = ["RejectFiles", "RejectRow"]


class RejectFiles:
    """The files of one task. `table` is its member of the run's summary."""

    def __init__(self, folder: RunFolder, table: Mapping[str, Any]) -> None:
        self._folder = folder
        self._rejects: Mapping[str, Any] = table["rejects"]
        self._is_complete = table["status"] == "success"

    @property
    def paths(self) -> list[Path]:
        """`T.jsonl` and `T.bad`, where the run folder is now; empty if nothing was written."""
        return [self._folder.rejects / Path(str(path)).name for path in self._rejects.get("files", [])]

    def rows(self) -> Iterator[RejectRow]:
        """All rejects, in order. Raises LedgerError, behind the last one at the latest, if the files do not agree with
        each other, or with the number of rejects that the summary tells.
        """
        count = int(self._rejects.get("count", 0))
        if count == 0:
            return
        if not self.paths:
            raise self._damaged("the run could not write them", self._folder.rejects)
        # Behind its limit a run that fails writes no more.
        lines, rows = self.paths
        yield from read_rejects(lines, rows, count, self._damaged, is_complete=self._is_complete)

    def open_rows(self) -> BinaryIO:
        """`T.bad`, to read the bytes of single rejects. Raises LedgerError."""
        try:
            return self.paths[1].open("rb")
        except OSError as error:
            raise self._damaged(error.strerror or str(error), self.paths[1]) from error

    def _damaged(self, found: str, path: Path) -> LedgerError:
        return LedgerError(
            f"the rejects of run {self._folder.run_id} are not complete",
            at={"file": str(path)},
            found=found,
            hint="Restore the run folder.",
        )
