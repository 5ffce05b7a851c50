"""A line that was cut off while it was written must not damage the lines behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.errors import LedgerError
from headrace.run.control.journal import Journal
from headrace.run.flow_records import add_record, records
from headrace.run.folder import RunFolder


def test_a_journal_goes_on_behind_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal.jsonl", lambda: True)
    journal.ended("one", "success", {}, 1)
    write = os.write

    def full(file: int, content: bytes) -> int:
        monkeypatch.setattr(os, "write", refused)
        return write(file, content[:5])

    def refused(_file: int, _content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LedgerError):
        journal.ended("two", "success", {}, 1)
    monkeypatch.setattr(os, "write", write)
    journal.ended("three", "success", {}, 1)
    journal.close()
    again = Journal(tmp_path / "journal.jsonl", lambda: True)
    assert [again.before(name).status for name in ("one", "two", "three")] == ["success", None, "success"]
    again.close()


@pytest.mark.parametrize("size", [0, 10, 200_000])
def test_records_of_flows_go_on_behind_one_that_was_cut_off(tmp_path: Path, size: int) -> None:
    folder = RunFolder("run", tmp_path)
    add_record(folder, {"task": "one"})
    with folder.flows.open("ab") as file:
        file.write(b"x" * size)
    add_record(folder, {"task": "two"})
    assert [record["task"] for record in records(folder)] == ["one", "two"]
