"""Stores the rejects of a flow in a table of its destination: the one place where rows go through Python.

A target says how it writes types and takes arrays; statements, batches and checks are the same for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from headrace.errors import AccountsError, CancelledError, LedgerError
from headrace.planning import REJECT_COLUMNS, REJECT_KEY, DataFlowPlan, RejectTable, counted
from headrace.targets.reject_files import RejectRow, read_rejects

# An array is sent when it has as many rejects, or as many bytes.
BATCH_REJECTS: Final = 1_000
BATCH_BYTES: Final = 4_000_000
# The bytes of longer rows stay in the run folder.
LONGEST_ORIGINAL_BYTES: Final = 1_000_000
_BYTES_READ_AT_ONCE: Final = 1 << 20

# As much as a reject is counted with beside the bytes of its row: its value is cut, names are short.
_OTHER_BYTES: Final = 2_000

Insert = Callable[[Sequence[object]], int]
_Values = tuple[Any, ...]


@dataclass(frozen=True)
class RejectDialect:
    """How a target writes the table. `types`: its names of types, by kind; `has_key`: whether a table that is made gets
    a primary key; `unnest`: its function from an array to rows; `array`: an array as its client takes it.
    """

    types: Mapping[str, str]
    has_key: bool
    quote: Callable[[str], str]
    unnest: str
    array: Callable[[Sequence[object]], object]

    def create(self, table: str) -> str:
        """CREATE TABLE, unless there is one of that full, quoted name."""
        columns = [
            f"{self.quote(column.name)} {self.types[column.kind]}{'' if column.nullable else ' NOT NULL'}"
            for column in REJECT_COLUMNS
        ]
        key = [f"PRIMARY KEY ({', '.join(map(self.quote, REJECT_KEY))})"] if self.has_key else []
        members = ",\n  ".join([*columns, *key])
        return f"CREATE TABLE IF NOT EXISTS {table} (\n  {members}\n)"

    def insert(self, table: str) -> str:
        """INSERT of one batch: a parameter for each column, one value or an array."""
        names = ", ".join(self.quote(column.name) for column in REJECT_COLUMNS)
        values = ", ".join(
            f"${number}::{self.types[column.kind]}"
            if column.of_load
            else f"{self.unnest}(${number}::{self.types[column.kind]}[])"
            for number, column in enumerate(REJECT_COLUMNS, start=1)
        )
        return f"INSERT INTO {table} ({names})\nSELECT {values}"


def store_rejects(
    plan: DataFlowPlan,
    table: RejectTable,
    run_id: str,
    rejects: Mapping[str, Any],
    dialect: RejectDialect,
    insert: Insert,
    is_cancelled: Callable[[], bool],
) -> None:
    """Stores all rejects of a flow; `rejects` is the member of its result. `insert` executes `dialect.insert` inside
    the caller's transaction and returns the number of rows that were taken.

    Raises AccountsError if the table does not take them all, LedgerError if the files of the run are not complete,
    CancelledError, and what `insert` raises.
    """
    count = int(rejects["count"])
    of_load = {"run_id": run_id, "task": plan.flow or plan.task, "rejected_at": datetime.now(UTC)}
    stored = 0
    for batch in _batches(plan, rejects, count):
        if is_cancelled():
            raise CancelledError(f"cancelled while storing rejects in table {table.shown}")
        arrays = map(dialect.array, zip(*batch, strict=True))
        stored += insert([of_load[column.name] if column.of_load else next(arrays) for column in REJECT_COLUMNS])
    if stored != count:
        raise AccountsError(
            f"table {table.shown} did not take all rejects",
            found=counted(stored, "row"),
            expected=counted(count, "row"),
            hint="A trigger or a rule of the table leaves rows out; drop it, or name another table.",
        )


def _batches(plan: DataFlowPlan, rejects: Mapping[str, Any], count: int) -> Iterator[list[_Values]]:
    """The rejects, as many as go into one statement."""
    if count == 0:
        return
    lines, rows = (Path(path) for path in rejects["files"])

    def damaged(found: str, path: Path) -> LedgerError:
        return LedgerError(
            f"the rejects of task `{plan.flow or plan.task}` are not what was written",
            at={"file": str(path)},
            found=found,
            hint="Somebody else has changed the run folder, or the disk is damaged. Run again.",
        )

    batch: list[_Values] = []
    batch_bytes = 0
    try:
        with rows.open("rb", buffering=_BYTES_READ_AT_ONCE) as originals:
            for row in read_rejects(lines, rows, count, damaged):
                values = _values(row, originals)
                row_bytes = len(values[-1] or b"") + _OTHER_BYTES
                if batch and (len(batch) == BATCH_REJECTS or batch_bytes + row_bytes > BATCH_BYTES):
                    yield batch
                    batch, batch_bytes = [], 0
                batch.append(values)
                batch_bytes += row_bytes
    except OSError as error:
        raise damaged(error.strerror or str(error), rows) from error
    if batch:
        yield batch


def _values(row: RejectRow, originals: BinaryIO) -> _Values:
    """The columns that are a reject's own, in the order of the table."""
    members = row.members
    also = members["also"]
    return (
        row.number,
        members["file"],
        members["row"],
        members["byte"],
        members["column"],
        members["column_number"],
        members["type"],
        _without_nul(members["value"]),
        members["rule"],
        members["code"],
        _without_nul(members["message"]),
        json.dumps(also, ensure_ascii=False) if also else None,
        members["row_byte"],
        members["row_bytes"],
        _original(row, originals),
    )


def _without_nul(text: str | None) -> str | None:
    """No database stores NUL in every text, so it is written out, in all of them alike."""
    return text.replace("\0", r"\x00") if text and "\0" in text else text


def _original(row: RejectRow, originals: BinaryIO) -> bytes | None:
    """The bytes of the row, with its row end if it has one; None if they are too many, or were not all kept."""
    length = int(row.members["bad_bytes"])
    if length > LONGEST_ORIGINAL_BYTES or length < int(row.members["row_bytes"]):
        return None
    if originals.tell() != row.begin_byte:
        originals.seek(row.begin_byte)
    return originals.read(length)
