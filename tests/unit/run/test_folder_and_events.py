"""The run folder and its event log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CommandLineError, LedgerError
from headrace.run.events import EventLog
from headrace.run.folder import RESUME, RunFolder, new_run_id
from headrace.run.redact import Redactor
from tests.snapshots import assert_snapshot

NOW = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)
NOBODY = Redactor(())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_ids_sort_by_time_wherever_they_were_made() -> None:
    assert re.fullmatch(r"20261120-101530-[0-9a-f]{6}", new_run_id(NOW))
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert new_run_id(east)[:15] == new_run_id(NOW)[:15]
    moments = [NOW + timedelta(microseconds=step * 250) for step in (0, 1, 2, 2000, 3999, 4000)]
    ids = [new_run_id(moment) for moment in moments]
    assert ids == sorted(ids)
    assert len({own[:19] for own in ids}) == len(ids), "they are told apart without the random number"


def test_runs_that_begin_at_one_moment_have_ids_of_their_own() -> None:
    assert len({new_run_id(NOW) for _ in range(100)}) > 90


def test_a_folder_per_run(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "deep" / "runs", NOW)
    second = RunFolder.create(tmp_path / "deep" / "runs", NOW)
    assert first.path != second.path
    assert first.path.name == first.run_id
    assert first.rejects.is_dir()


def test_summary_is_written_whole(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, NOW)
    folder.write_summary({"status": "failed"})
    folder.write_summary({"status": "success", "name": "Zürich"})
    assert json.loads(folder.summary.read_text()) == {"status": "success", "name": "Zürich"}
    assert sorted(item.name for item in folder.path.iterdir()) == ["rejects", "summary.json"]


def test_tidy_keeps_what_is_not_empty(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, NOW)
    (folder.rejects / "orders.jsonl").write_text("{}")
    folder.spill.mkdir()
    folder.tidy()
    assert folder.rejects.is_dir()
    assert not folder.spill.exists()


def test_runs_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(LedgerError) as caught:
        RunFolder.create(tmp_path / "runs", NOW)
    assert_snapshot("runs_folder_is_a_file", caught.value.render().replace(str(tmp_path), "FOLDER"))


def test_events_are_stamped_redacted_and_kept(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    with EventLog(tmp_path / "events.jsonl", Redactor({"hunter22"}), seen.append) as events:
        events.emit("run_started", run_id="1", note="hunter22")
        events.notice("waiting", task="t")
    assert [event["event"] for event in seen] == ["run_started", "notice"]
    assert seen[0]["note"] == "***"
    assert datetime.fromisoformat(str(seen[0]["at"])).tzinfo is not None
    assert lines(tmp_path / "events.jsonl") == seen


def test_progress_reaches_the_file_once_a_second(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    with EventLog(tmp_path / "events.jsonl", NOBODY, seen.append) as events:
        for number in range(10):
            events.emit("progress", rows_read=number)
    assert len(seen) == 10
    assert len(lines(tmp_path / "events.jsonl")) == 1


def test_a_listener_that_fails_is_left_alone(tmp_path: Path) -> None:
    calls = 0

    def broken(event: Mapping[str, Any]) -> None:
        nonlocal calls
        calls += 1
        raise OSError("the terminal is gone")

    with EventLog(tmp_path / "events.jsonl", NOBODY, broken) as events:
        events.emit("run_started")
        events.emit("run_finished")
    assert calls == 1
    assert [event["event"] for event in lines(tmp_path / "events.jsonl")] == ["run_started", "notice", "run_finished"]


def test_a_file_that_cannot_be_written_is_said_once_and_given_up(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    seen: list[Mapping[str, Any]] = []
    with EventLog(tmp_path / "events.jsonl", NOBODY, seen.append) as events:
        for number in range(3):
            events.emit("progress", rows_read=number)
    assert [event["event"] for event in seen] == ["progress", "notice", "progress", "progress"]


def test_names_that_are_not_utf_8_can_be_written(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, NOW)
    with EventLog(folder.events, NOBODY, None) as events:
        events.notice("a\udcff.csv")
    folder.write_summary({"file": "a\udcff.csv"})
    assert lines(folder.events)[0]["text"] == "a\udcff.csv"
    assert json.loads(folder.summary.read_text()) == {"file": "a\udcff.csv"}


def test_the_last_of_two_runs_of_the_same_second_is_the_one_that_began_later(tmp_path: Path) -> None:
    earlier, later = (new_run_id(NOW.replace(microsecond=moment)) for moment in (400_000, 500_000))
    for name in (later, earlier, "20261120-101529-ffffff"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "request.json").write_text("{}")
    assert RunFolder.find(tmp_path, "last", RESUME).run_id == later


def _begun(runs: Path, name: str, package: str, status: str | None = None, **more: object) -> None:
    (runs / name).mkdir()
    request = {"package": package, "connections": {}, "environment": None, **more}
    (runs / name / "request.json").write_text(json.dumps(request))
    if status is not None:
        (runs / name / "summary.json").write_text(json.dumps({"status": status}))


def test_the_last_run_that_can_be_resumed_is_none_that_a_later_one_has_followed(tmp_path: Path) -> None:
    """As one that was given up with `--abandon`: its ledger would refuse to go on with it."""
    _begun(tmp_path, "20261120-101500-000001", "other.yaml")
    _begun(tmp_path, "20261120-101500-000002", "sales.yaml", "failed")
    _begun(tmp_path, "20261120-101500-000003", "sales.yaml", "success")
    assert RunFolder.find(tmp_path, "last", RESUME).run_id.endswith("1")
    _begun(tmp_path, "20261120-101500-000004", "sales.yaml", "cancelled")
    assert RunFolder.find(tmp_path, "last", RESUME).run_id.endswith("4")
    # Into other databases nobody is in the way of anybody.
    elsewhere = {"connections": {"warehouse": "duckdb:///other.duckdb"}}
    _begun(tmp_path, "20261120-101500-000005", "sales.yaml", "success", **elsewhere)
    assert RunFolder.find(tmp_path, "last", RESUME).run_id.endswith("4")
    _begun(tmp_path, "20261120-101500-000006", "sales.yaml", "success")
    assert RunFolder.find(tmp_path, "last", RESUME).run_id.endswith("1")
    _begun(tmp_path, "20261120-101500-000007", "other.yaml", "success")
    with pytest.raises(CommandLineError, match="there is no unfinished run") as refused:
        RunFolder.find(tmp_path, "last", RESUME)
    followed = "run 20261120-101500-000004 was not finished, and run 20261120-101500-000006 of its package"
    assert str(refused.value.found).startswith(followed)
    assert RunFolder.find(tmp_path, "20261120-101500-000002", RESUME).status() == "failed", "who names it, may try"
