"""Rejects on their way into a table: arrays of bounded size, complete or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import AccountsError, CancelledError, LedgerError
from headrace.planning import REJECT_COLUMNS, DataFlowPlan, RejectTable
from headrace.targets.reject_store import BATCH_BYTES, BATCH_REJECTS, RejectDialect, store_rejects

TABLE = RejectTable("main", "bad", "warehouse.bad", exists=False)
TYPES = {"string": "TEXT", "int64": "INTEGER", "json": "JSON", "bytes": "BLOB", "timestamptz": "INSTANT"}
DIALECT = RejectDialect(TYPES, has_key=True, quote=lambda name: f"<{name}>", unnest="rows_of", array=list)
PLAN = cast(DataFlowPlan, SimpleNamespace(task="load", flow=""))


def written(folder: Path, rows: Sequence[bytes], **members: object) -> dict[str, Any]:
    """The files of such rejects, as the result of a flow names them."""
    begin, lines = 0, []
    for number, row in enumerate(rows, start=1):
        reject = {"number": number, "row": number, "bad_byte": begin, "file": "f", "file_number": 1, "row_byte": begin}
        reject |= {"row_bytes": len(row), "byte": begin, "column": "day", "column_number": 2, "type": "date"}
        reject |= {
            "value": "x\0",
            "rule": "bad_date",
            "code": "HR305",
            "message": "m",
            "bad_bytes": len(row),
            "also": [],
        }
        lines.append(json.dumps({**reject, **members}))
        begin += len(row)
    (folder / "t.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "t.bad").write_bytes(b"".join(rows))
    return {"count": len(rows), "files": [str(folder / "t.jsonl"), str(folder / "t.bad")]}


class Database:
    """Takes batches."""

    def __init__(self) -> None:
        self.batches: list[dict[str, Any]] = []

    def insert(self, values: Sequence[object]) -> int:
        batch: dict[str, Any] = dict(zip((column.name for column in REJECT_COLUMNS), values, strict=True))
        self.batches.append(batch)
        return len(batch["number"])

    def store(self, rejects: dict[str, Any], *, is_cancelled: bool = False) -> None:
        store_rejects(PLAN, TABLE, "run", rejects, DIALECT, self.insert, lambda: is_cancelled)


def test_arrays_are_bounded(tmp_path: Path) -> None:
    many = Database()
    many.store(written(tmp_path, [b"row\n"] * (2 * BATCH_REJECTS + 1)))
    assert [len(batch["number"]) for batch in many.batches] == [BATCH_REJECTS, BATCH_REJECTS, 1]
    assert [number for batch in many.batches for number in batch["number"]] == list(range(1, 2 * BATCH_REJECTS + 2))
    long = Database()
    long.store(written(tmp_path, [b"y" * 900_000] * 9))
    assert [len(batch["number"]) for batch in long.batches] == [4, 4, 1]
    assert all(sum(map(len, batch["original"])) <= BATCH_BYTES for batch in long.batches)


def test_what_is_sent(tmp_path: Path) -> None:
    database = Database()
    database.store(written(tmp_path, [b"one\n", b"\0\xff\n"]))
    [batch] = database.batches
    assert (batch["run_id"], batch["task"]) == ("run", "load")
    assert batch["rejected_at"].utcoffset().total_seconds() == 0
    assert (batch["value"], batch["original"]) == ([r"x\x00"] * 2, [b"one\n", b"\0\xff\n"])
    assert (batch["column_name"], batch["code"], batch["also"]) == (["day"] * 2, ["HR305"] * 2, [None, None])


@pytest.mark.parametrize("members", [{"bad_bytes": 1_000_001, "row_bytes": 1_000_001}, {"row_bytes": 2_000_000}])
def test_bytes_that_are_too_many_or_not_all_there(tmp_path: Path, members: dict[str, int]) -> None:
    database = Database()
    database.store(written(tmp_path, [b"y" * 1_000_001 if "bad_bytes" in members else b"y" * 10], **members))
    assert database.batches[0]["original"] == [None]


def test_no_rejects(tmp_path: Path) -> None:
    database = Database()
    database.store({"count": 0, "files": []})
    assert database.batches == []


def test_files_that_are_not_what_was_written(tmp_path: Path) -> None:
    rejects = written(tmp_path, [b"one\n", b"two\n"])
    for count, found in ((1, "2 rejects, and 1 were counted"), (3, "2 rejects, and 3 were counted")):
        with pytest.raises(LedgerError) as caught:
            Database().store({**rejects, "count": count})
        assert (caught.value.what, caught.value.found) == ("the rejects of task `load` are not what was written", found)
    (tmp_path / "t.bad").write_bytes(b"one\n")
    with pytest.raises(LedgerError, match="not what was written"):
        Database().store(rejects)
    (tmp_path / "t.bad").unlink()
    with pytest.raises(LedgerError, match="not what was written"):
        Database().store(rejects)


def test_a_table_that_leaves_rows_out_and_a_cancel(tmp_path: Path) -> None:
    rejects = written(tmp_path, [b"one\n", b"two\n"])
    with pytest.raises(AccountsError) as caught:
        store_rejects(PLAN, TABLE, "run", rejects, DIALECT, lambda _values: 1, lambda: False)
    assert (caught.value.found, caught.value.expected) == ("1 row", "2 rows")
    with pytest.raises(CancelledError):
        Database().store(rejects, is_cancelled=True)


def test_statements() -> None:
    assert DIALECT.create("t").splitlines()[0] == "CREATE TABLE IF NOT EXISTS t ("
    assert DIALECT.create("t").splitlines()[-2:] == ["  PRIMARY KEY (<run_id>, <task>, <number>)", ")"]
    insert = DIALECT.insert("t")
    assert "SELECT $1::TEXT, $2::TEXT, rows_of($3::INTEGER[])" in insert
    assert insert.endswith("rows_of($17::BLOB[]), $18::INSTANT")
