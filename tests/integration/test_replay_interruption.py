"""Replays that are killed, gone on with and repeated: every reject is loaded once, nothing half-loaded is visible."""

from __future__ import annotations

import sys

import pytest

from tests.integration.driver import GOOD_ROWS, Project

REJECTS = 3000
CONTENT = "SELECT count(*), count(DISTINCT id) FROM orders"
BEFORE, BEHIND = (100, 100), (100 + REJECTS, 100 + REJECTS)


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace", name, *arguments, "--runs-dir", "runs", "--json"]


@pytest.fixture
def of_run(project: Project) -> str:
    """A run that has rejected rows, with a repaired copy of them."""
    project.file("orders.tbl.1", GOOD_ROWS + "".join(f"{1000 + number}|x|||\n" for number in range(REJECTS)))
    run = str(project.run(limit=REJECTS).succeeded()["run_id"])
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    repair = project.folder / "repair.tbl"
    repair.write_text(repair.read_text().replace("|x|", "|1.00|"))
    return run


@pytest.mark.parametrize("event", ["run_started", "task_started", "progress", "task_finished"])
def test_a_replay_that_is_killed(project: Project, of_run: str, event: str) -> None:
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        project.wait_for_event(running, event)
        running.end()
    visible = project.query(CONTENT)[0]
    assert visible in (BEFORE, BEHIND)
    if event == "progress":
        resumed = project.resume()  # exit code 6: it had ended, or not come to the ledger
        assert resumed.exit_code in (0, 6), resumed.stderr
        visible = project.query(CONTENT)[0]
    again = project.command(replay)
    if visible == BEHIND:
        assert again.exit_code == 1
        assert "were loaded already" in again.error
    else:
        again.succeeded()
    assert project.query(CONTENT) == [BEHIND]
    assert project.command(replay).exit_code == 1
    assert project.query(CONTENT) == [BEHIND]


def test_two_replays_at_once(project: Project, of_run: str) -> None:
    """The second one finds the file of the database in use, or the rejects taken."""
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as first, project.started(replay) as second:
        codes = sorted((first.wait().exit_code, second.wait().exit_code))
    assert codes == [0, 1]
    assert project.query(CONTENT) == [BEHIND]


def test_a_file_that_changes_behind_the_copy(project: Project, of_run: str) -> None:
    """What is resumed is the copy in the run folder."""
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        project.wait_for_event(running, "task_started")
        running.end()
    (project.folder / "repair.tbl").unlink()
    (kept,) = project.runs.glob("*/replay/repair.tbl")
    assert kept.read_text().count("\n") == REJECTS
    resumed = project.resume()
    assert resumed.exit_code in (0, 6), resumed.stderr
    assert project.query(CONTENT) == [BEHIND]
    if resumed.exit_code == 0:
        assert resumed.summary["replay"]["loaded"] == REJECTS
