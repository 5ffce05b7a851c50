"""What a run says when something fails beside the load: what is committed is a success, and the first error counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace.run as run
from headrace.diagnose import History, RunJudge
from headrace.errors import LedgerError
from headrace.model import load_package
from headrace.run import Summary
from headrace.run.folder import RunFolder
from headrace.targets.duckdb.ledger import Ledger

PACKAGE = """
headrace: 1
package: sales
connections:
  inbox: {type: files, path: .}
  warehouse: {type: duckdb, path: w.duckdb}
tasks:
  load_orders:
    data_flow:
      sources:
        orders: {connection: inbox, files: "*.tbl", layout: {delimiter: "|", columns: [{name: id, type: int64}]}}
      destinations:
        sales: {input: orders, connection: warehouse, table: orders, target: append}
"""


class Run:
    """One run of `PACKAGE` on three good rows, or with a bad one behind them."""

    def __init__(self, folder: Path, *, bad_row: bool = False) -> None:
        self.folder = folder
        (folder / "orders.tbl").write_text("1\n2\n3\n" + "x\n" * bad_row)
        (folder / "package.yaml").write_text(PACKAGE)
        self.events: list[Mapping[str, Any]] = []

    def execute(self) -> Summary:
        package = load_package(self.folder / "package.yaml", environ={})
        return run.execute(package, runs_dir=self.folder / "runs", listener=self.events.append)

    def notices(self) -> str:
        return "\n".join(event["text"] for event in self.events if event["event"] == "notice")

    def rows(self) -> int:
        with duckdb.connect(str(self.folder / "w.duckdb"), read_only=True) as connection:
            return len(connection.execute("FROM orders").fetchall())

    def check_success(self, summary: Summary) -> None:
        """The three rows are there, and both the summary and the listener say so."""
        assert (summary.status, summary.exit_code, summary.failure) == ("success", 0, None)
        assert [table["rows_loaded"] for table in summary.to_dict()["tables"]] == [3]
        assert self.rows() == 3
        assert self.events[-1]["event"] == "run_finished"
        assert self.events[-1]["status"] == "success"


def spoil_folder(monkeypatch: pytest.MonkeyPatch, *, full: bool = False, no_summary: bool = False) -> None:
    """The events are written to a full disk; the summary cannot be written."""
    create = RunFolder.create

    def spoiled(runs_folder: Path, now: datetime) -> RunFolder:
        folder = create(runs_folder, now)
        if full:
            folder.events.symlink_to("/dev/full")
        if no_summary:
            (folder.path / ".summary.json").mkdir()
        return folder

    monkeypatch.setattr(RunFolder, "create", spoiled)


def test_events_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil_folder(monkeypatch, full=True)
    load = Run(tmp_path)
    load.check_success(load.execute())
    assert load.notices().count("the events of the run are no longer written to") == 1
    assert "No space left on device" in load.notices()
    assert [event["event"] for event in load.events][:2] == ["run_started", "notice"]


def test_a_summary_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil_folder(monkeypatch, no_summary=True)
    load = Run(tmp_path)
    load.check_success(load.execute())
    assert "after the last commit: cannot write summary.json of the run (Is a directory)" in load.notices()


def test_the_first_error_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil_folder(monkeypatch, full=True, no_summary=True)
    load = Run(tmp_path, bad_row=True)
    summary = load.execute()
    assert (summary.status, summary.exit_code) == ("failed", 1)
    assert summary.failure is not None
    assert (summary.failure.at or {}).get("row") == 4
    assert "after the error: cannot write summary.json of the run" in load.notices()


def test_a_commit_that_cannot_be_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise duckdb.IOException("IO Error: could not read from file")

    monkeypatch.setattr(Ledger, "check_committed", fails)
    load = Run(tmp_path)
    load.check_success(load.execute())
    assert "warehouse.orders was committed, but the commit could not be verified: IO Error" in load.notices()


def test_a_commit_that_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("the commit of load_orders was not kept")

    monkeypatch.setattr(Ledger, "check_committed", fails)
    summary = Run(tmp_path).execute()
    assert (summary.status, summary.to_dict()["rows_loaded"]) == ("failed", 0)
    assert isinstance(summary.failure, LedgerError)


@pytest.mark.parametrize("method", ["end_run", "close"])
def test_an_end_that_fails_in_an_unknown_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    from headrace.targets.duckdb.target import DuckdbTarget

    original = getattr(DuckdbTarget, method)

    def fails(target: DuckdbTarget, *arguments: object) -> None:
        original(target, *arguments)
        raise ValueError("nobody expected this")

    monkeypatch.setattr(DuckdbTarget, method, fails)
    load = Run(tmp_path)
    load.check_success(load.execute())
    assert "after the last commit: internal: ValueError" in load.notices()


def test_a_verdict_that_fails(tmp_path: Path) -> None:
    class Failing(RunJudge):
        def flow(self, files: Sequence[str] = ()) -> History:
            raise ZeroDivisionError("division by zero")

    load = Run(tmp_path)
    package = load_package((tmp_path / "package.yaml"), environ={})
    summary = run.execute(package, runs_dir=tmp_path / "runs", listener=load.events.append, judge=Failing())
    load.check_success(summary)
    assert json.loads((Path(summary.run_folder) / "summary.json").read_text())["status"] == "success"
