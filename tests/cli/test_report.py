"""`headrace report`: what it prints, where it writes, which folders it takes."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, Outcome
from tests.report.scenarios import damaged_run, empty_run, failed_run, run_with_rejects, running_run
from tests.snapshots import assert_snapshot

FIRST, SECOND = "20261120-010000-aaaaaa", "20261121-010000-bbbbbb"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default folder of runs below the current one, with a run that failed and a later one with rejects."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".headrace" / "runs"
    failed_run(folder / FIRST)
    run_with_rejects(folder / SECOND)
    return folder


def stable(outcome: Outcome, folder: Path) -> str:
    sizes = outcome.text().replace(str(folder), "FOLDER")
    return "\n".join(line.partition(" (")[0] if line.startswith("report:") else line for line in sizes.splitlines())


def test_the_last_run(headrace: CommandLine, runs: Path) -> None:
    outcome = headrace("report")
    assert_snapshot("report", stable(outcome, runs.parents[1]))
    assert (runs / SECOND / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not (runs / FIRST / "report.html").exists()


def test_beside_an_earlier_one(headrace: CommandLine, runs: Path) -> None:
    outcome = headrace("report", "last", "--against", FIRST[:8], "--output", "both.html")
    assert_snapshot("report_against", stable(outcome, runs.parents[1]))
    assert FIRST in Path("both.html").read_text(encoding="utf-8")
    assert not (runs / SECOND / "report.html").exists()


def test_as_json(headrace: CommandLine, runs: Path) -> None:
    told = json.loads(headrace("report", FIRST, "--json").stdout)
    path = runs / FIRST / "report.html"
    assert told == {
        "run_id": FIRST,
        "status": "failed",
        "report": str(path),
        "bytes": path.stat().st_size,
        "against": None,
        "notes": [],
    }


@pytest.mark.parametrize("make", [damaged_run, running_run, empty_run])
def test_what_a_report_lacks(headrace: CommandLine, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = make(tmp_path / FIRST)
    outcome = headrace("report", str(folder))
    assert outcome.exit_code == 0
    assert_snapshot(f"report_of_{make.__name__}", stable(outcome, tmp_path))


def test_a_run_of_which_little_is_left(headrace: CommandLine, runs: Path) -> None:
    for name in ("request.json", "summary.json", "events.jsonl"):
        (runs / FIRST / name).unlink()
    outcome = headrace("report", FIRST)
    assert outcome.exit_code == 0
    assert_snapshot("report_of_little", stable(outcome, runs.parents[1]))


@pytest.mark.parametrize(
    ("name", "note"), [("summary.json", "There is no summary.json"), ("metrics.jsonl", "There are no measures")]
)
def test_a_file_that_should_be_there_is_missed(headrace: CommandLine, runs: Path, name: str, note: str) -> None:
    if name == "summary.json":
        (runs / FIRST / name).unlink()
    else:
        (runs / FIRST / name).write_text("")
    notes = json.loads(headrace("report", FIRST, "--json").stdout)["notes"]
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_a_name_that_no_file_can_have(headrace: CommandLine, runs: Path) -> None:
    outcome = headrace("report", "x" * 300)
    assert outcome.exit_code == 6
    assert "error: there is no such run" in outcome.stderr


def test_shown_in_a_browser(headrace: CommandLine, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def refuse(url: str) -> bool:
        opened.append(url)
        return False

    monkeypatch.setattr(webbrowser, "open", refuse)
    outcome = headrace("report", "--open")
    assert opened == [(runs / SECOND / "report.html").as_uri()]
    assert outcome.stderr == "no browser could be opened\n"


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("no_such_run", ["2020"], 6),
        ("no_such_earlier_run", ["--against", "2020"], 6),
        ("several", ["2026"], 6),
        ("no_folder", ["--output", "nowhere/report.html"], 1),
        ("tilde", ["--output", "~/report.html"], 6),
    ],
)
def test_what_is_refused(headrace: CommandLine, runs: Path, name: str, arguments: list[str], code: int) -> None:
    outcome = headrace("report", *arguments)
    assert outcome.exit_code == code
    assert_snapshot(f"report_refused_{name}", stable(outcome, runs.parents[1]))
