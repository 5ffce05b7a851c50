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

Insert = Callable[[Sequence[object]], int]


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
    of_load = {"run_id": run_id, "task": plan.task, "rejected_at": datetime.now(UTC)}
    stored = 0
    for batch in _batches(plan, rejects, count):
        if is_cancelled():
            raise CancelledError(f"cancelled while storing rejects in table {table.shown}")
        values = [
            of_load[column.name] if column.of_load else dialect.array([row[column.name] for row in batch])
            for column in REJECT_COLUMNS
        ]
        stored += insert(values)
    if stored != count:
        raise AccountsError(
            f"table {table.shown} did not take all rejects",
            found=counted(stored, "row"),
            expected=counted(count, "row"),
            hint="A trigger or a rule of the table leaves rows out; drop it, or name another table.",
        )


def _batches(plan: DataFlowPlan, rejects: Mapping[str, Any], count: int) -> Iterator[list[dict[str, Any]]]:
    """The rejects by column, as many as go into one statement."""
    if count == 0:
        return
    lines, rows = (Path(path) for path in rejects["files"])

    def damaged(found: str, path: Path) -> LedgerError:
        return LedgerError(
            f"the rejects of task `{plan.task}` are not what was written",
            at={"file": str(path)},
            found=found,
            hint="Somebody else has changed the run folder, or the disk is damaged. Run again.",
        )

    batch: list[dict[str, Any]] = []
    batch_bytes = 0
    try:
        with rows.open("rb", buffering=_BYTES_READ_AT_ONCE) as originals:
            for row in read_rejects(lines, rows, count, damaged):
                values = _columns(row, originals)
                row_bytes = sum(len(value) for value in values.values() if isinstance(value, str | bytes))
                if batch and (len(batch) == BATCH_REJECTS or batch_bytes + row_bytes > BATCH_BYTES):
                    yield batch
                    batch, batch_bytes = [], 0
                batch.append(values)
                batch_bytes += row_bytes
    except OSError as error:
        raise damaged(error.strerror or str(error), rows) from error
    if batch:
        yield batch


def _columns(row: RejectRow, originals: BinaryIO) -> dict[str, Any]:
    """The columns of a reject that are its own."""
    members = row.members
    also = members["also"]
    return {
        "number": row.number,
        "file": members["file"],
        "row": members["row"],
        "byte": members["byte"],
        "column_name": members["column"],
        "column_number": members["column_number"],
        "type": members["type"],
        "value": _without_nul(members["value"]),
        "rule": members["rule"],
        "code": members["code"],
        "message": _without_nul(members["message"]),
        "also": json.dumps(also, ensure_ascii=False) if also else None,
        "row_byte": members["row_byte"],
        "row_bytes": members["row_bytes"],
        "original": _original(row, originals),
    }


def _without_nul(text: str | None) -> str | None:
    """No database stores NUL in every text, so it is written out, in all of them alike."""
    return None if text is None else text.replace("\0", r"\x00")


def _original(row: RejectRow, originals: BinaryIO) -> bytes | None:
    """The bytes of the row, with its row end if it has one; None if they are too many, or were not all kept."""
    length = int(row.members["bad_bytes"])
    if length > LONGEST_ORIGINAL_BYTES or length < int(row.members["row_bytes"]):
        return None
    if originals.tell() != row.begin_byte:
        originals.seek(row.begin_byte)
    return originals.read(length)
