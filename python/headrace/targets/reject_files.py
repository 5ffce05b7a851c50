"""Reads the rejects of one task as its flow has written them: an object each in `T.jsonl`, their bytes in `T.bad`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.errors import HeadraceError

# A last row of a source file that lacks its row end has got one; no row end is longer.
_LONGEST_ROW_END_BYTES: Final = 64
# What a line needs to be one: runs of versions that numbered no rejects have written other lines.
_MEMBERS: Final = frozenset({"number", "file_number", "row_bytes", "bad_byte", "bad_bytes"})
# Makes the error for files that do not agree: what was found, and where.
Damaged = Callable[[str, Path], HeadraceError]


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


def read_rejects(
    lines: Path, rows: Path, count: int, damaged: Damaged, *, is_complete: bool = True
) -> Iterator[RejectRow]:
    """All rejects of the files `lines` and `rows`, in order. Raises, behind the last one at the latest, what `damaged`
    makes if the files do not agree with each other, or with `count`; there may be fewer unless `is_complete`.
    """
    number = 0
    found = _objects(lines, damaged)
    waiting = next(found, None)
    while waiting is not None:
        # What ends a row is known by the next one.
        members, waiting = waiting, next(found, None)
        number += 1
        begin = int(members["bad_byte"])
        end = _size(rows, damaged) if waiting is None else int(waiting["bad_byte"])
        surplus = end - begin - int(members["bad_bytes"])
        expected_begin = 0 if number == 1 else begin
        if int(members["number"]) != number:
            raise damaged(f"reject {members['number']} in the place of reject {number}", lines)
        if begin != expected_begin or not 0 <= surplus <= _LONGEST_ROW_END_BYTES:
            raise damaged(f"reject {number} has other bytes than it should", rows)
        yield RejectRow(number, members, begin, end)
    if number > count or (is_complete and number != count):
        raise damaged(f"{number} rejects, and {count} were counted", lines)


def _objects(path: Path, damaged: Damaged) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                members = json.loads(line)
                if not isinstance(members, dict) or not members.keys() >= _MEMBERS:
                    raise damaged("a line that is no reject", path)
                yield members
    except OSError as error:
        raise damaged(error.strerror or str(error), path) from error
    except ValueError as error:
        raise damaged("a line that is no JSON", path) from error


def _size(path: Path, damaged: Damaged) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise damaged(error.strerror or str(error), path) from error
