"""The rejects of one task as its run has kept them: `T.jsonl`, one object each, beside `T.bad`, the original bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from headrace.errors import LedgerError
from headrace.run.folder import RunFolder

# A last row of a source file that lacks its row end has got one; no row end is longer.
_LONGEST_ROW_END_BYTES: Final = 64
# What a line needs to be one: runs of versions that numbered no rejects have written other lines.
_MEMBERS: Final = frozenset({"number", "file_number", "row_bytes", "bad_byte", "bad_bytes"})


@dataclass(frozen=True, slots=True)
class RejectRow:
    """One reject: its members in `T.jsonl`, and where its bytes stand in `T.bad`, with a row end in any case.

    `number` counts from 1, in file order.
    """

    number: int
    members: Mapping[str, Any]
    begin_byte: int
    end_byte: int

    @property
    def is_cut(self) -> bool:
        """True if not all of its bytes were kept, because it is too long."""
        return int(self.members["bad_bytes"]) < int(self.members["row_bytes"])


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
        number = 0
        lines = self._lines()
        waiting = next(lines, None)
        while waiting is not None:
            # What ends a row is known by the next one.
            members, waiting = waiting, next(lines, None)
            number += 1
            begin = int(members["bad_byte"])
            end = self._size() if waiting is None else int(waiting["bad_byte"])
            surplus = end - begin - int(members["bad_bytes"])
            expected_begin = 0 if number == 1 else begin
            if int(members["number"]) != number:
                raise self._damaged(f"reject {members['number']} in the place of reject {number}", self.paths[0])
            if begin != expected_begin or not 0 <= surplus <= _LONGEST_ROW_END_BYTES:
                raise self._damaged(f"reject {number} has other bytes than it should", self.paths[1])
            yield RejectRow(number, members, begin, end)
        # Behind its limit a run that fails writes no more.
        if number > count or (self._is_complete and number != count):
            raise self._damaged(f"{number} rejects, and {count} were counted", self.paths[0])

    def open_rows(self) -> BinaryIO:
        """`T.bad`, to read the bytes of single rejects. Raises LedgerError."""
        try:
            return self.paths[1].open("rb")
        except OSError as error:
            raise self._damaged(error.strerror or str(error), self.paths[1]) from error

    def _lines(self) -> Iterator[dict[str, Any]]:
        path = self.paths[0]
        try:
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    members = json.loads(line)
                    if not isinstance(members, dict) or not members.keys() >= _MEMBERS:
                        raise self._damaged("a line that is no reject", path)
                    yield members
        except OSError as error:
            raise self._damaged(error.strerror or str(error), path) from error
        except ValueError as error:
            raise self._damaged("a line that is no JSON", path) from error

    def _size(self) -> int:
        try:
            return self.paths[1].stat().st_size
        except OSError as error:
            raise self._damaged(error.strerror or str(error), self.paths[1]) from error

    def _damaged(self, found: str, path: Path) -> LedgerError:
        return LedgerError(
            f"the rejects of run {self._folder.run_id} are not complete",
            at={"file": str(path)},
            found=found,
            hint="Restore the run folder, or load the source files again.",
        )
