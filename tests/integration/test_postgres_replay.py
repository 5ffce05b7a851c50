"""Replays into PostgreSQL: killed, gone on with, repeated, two at once; every reject is loaded once."""

from __future__ import annotations

import sys

import pytest

from tests.integration.driver import GOOD_ROWS
from tests.integration.postgres import PostgresProject

REJECTS = 300
CONTENT = "SELECT count(*), count(DISTINCT id) FROM orders"
BEFORE, BEHIND = ("100", "100"), (str(100 + REJECTS), str(100 + REJECTS))


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace", name, *arguments, "--runs-dir", "runs", "--json"]


@pytest.fixture
def of_run(warehouse: PostgresProject) -> str:
    """A run that has rejected rows, with a repaired copy of them."""
    project = warehouse
    project.sales()
    project.file("orders.tbl.1", GOOD_ROWS + "".join(f"{1000 + number}|x|||\n" for number in range(REJECTS)))
    run = str(project.run(limit=REJECTS).succeeded()["run_id"])
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    repair = project.folder / "repair.tbl"
    repair.write_text(repair.read_text().replace("|x|", "|1.00|"))
    return run


@pytest.mark.parametrize("event", ["task_started", "task_finished"])
def test_a_replay_that_is_killed(warehouse: PostgresProject, of_run: str, event: str) -> None:
    project = warehouse
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        project.wait_for_event(running, event)
        running.end()
    assert project.query(CONTENT)[0] in (BEFORE, BEHIND)
    if event == "task_started":
        resumed = project.resume()
        assert resumed.exit_code in (0, 6), resumed.stderr
    visible = project.query(CONTENT)[0]
    again = project.command(replay)
    if visible == BEHIND:
        assert again.exit_code == 1
        assert "were loaded already" in again.error
    else:
        again.succeeded()
    assert project.query(CONTENT) == [BEHIND]
    assert project.left_in_database() == []


def test_two_replays_at_once(warehouse: PostgresProject, of_run: str) -> None:
    """Who waits for the table looks again behind its lock."""
    project = warehouse
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as first, project.started(replay) as second:
        codes = sorted((first.wait().exit_code, second.wait().exit_code))
    assert codes == [0, 1]
    assert project.query(CONTENT) == [BEHIND]


def test_dropped_and_replaced(warehouse: PostgresProject, of_run: str) -> None:
    project = warehouse
    dropped = project.command(command("replay", of_run, "--drop", "1-10")).succeeded()["replay"]
    assert (dropped["dropped"], dropped["open"]) == (10, REJECTS - 10)
    assert project.command(command("replay", of_run, "--drop", "10")).exit_code == 1
    (project.folder / "some.tbl").write_text("7|x|||\n8|1.00|||\n")
    some = project.command(command("replay", of_run, "some.tbl", "--rows", "11,300")).succeeded()["replay"]
    assert (some["loaded"], some["rejected_again"], some["open"]) == (1, 1, REJECTS - 12)
    project.run(limit=REJECTS).succeeded()
    refused = project.command(command("replay", of_run, "--drop", "20"))
    assert refused.exit_code == 1
    assert "was loaded anew since" in refused.error
