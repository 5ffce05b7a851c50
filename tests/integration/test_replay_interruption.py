"""Replays that are killed, gone on with and repeated: every reject is loaded once, nothing half-loaded is visible."""

from __future__ import annotations

import pytest

from tests.integration.driver import PACKAGE, Project
from tests.integration.replays import command, rejecting_run, replay_folders, wait_for_replay

pytestmark = pytest.mark.faults

REJECTS = 3000
CONTENT = "SELECT count(*), count(DISTINCT id) FROM orders"
BEFORE, BEHIND = (100, 100), (100 + REJECTS, 100 + REJECTS)


@pytest.fixture
def of_run(project: Project) -> str:
    """A run that has rejected rows, with a repaired copy of them."""
    return rejecting_run(project, REJECTS)


@pytest.mark.parametrize("goes_on", [True, False], ids=["resumed", "repeated"])
@pytest.mark.parametrize("event", ["run_started", "task_started", "progress", "task_finished"])
def test_a_replay_that_is_killed(project: Project, of_run: str, event: str, *, goes_on: bool) -> None:
    """Before its claim, behind it, among the rows and behind the commit."""
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        wait_for_replay(project, running, event)
        running.end()
    visible = project.query(CONTENT)[0]
    assert visible in (BEFORE, BEHIND)
    if goes_on:
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
    (table,) = project.command(command("rejects", of_run)).summary["tables"]
    assert (table["open"], table["loaded"], table["unfinished"]) == (0, REJECTS, 0)


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
        wait_for_replay(project, running, "task_started")
        running.end()
    (project.folder / "repair.tbl").unlink()
    (kept,) = project.runs.glob("*/replay/repair.tbl")
    assert kept.read_text().count("\n") == REJECTS
    resumed = project.resume()
    assert resumed.exit_code in (0, 6), resumed.stderr
    assert project.query(CONTENT) == [BEHIND]
    if resumed.exit_code == 0:
        assert resumed.summary["replay"]["loaded"] == REJECTS


def test_another_run_between(project: Project, of_run: str) -> None:
    """A run that appends is in nobody's way; behind one that replaces nothing of the dead replay is loaded."""
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        wait_for_replay(project, running, "task_started")
        running.end()
    dead = replay_folders(project)[0].name
    project.file("more.1", "7777|1.00|||\n")
    project.run(target="append", files="more.*").succeeded()
    project.command(command("resume", dead)).succeeded()
    assert project.query(CONTENT) == [(101 + REJECTS, 101 + REJECTS)]
    project.run(target="replace", files="more.*").succeeded()
    refused = project.command(replay)
    assert refused.exit_code == 1
    assert "was loaded anew since" in refused.error
    assert project.query(CONTENT) == [(1, 1)]


def test_a_full_disk_where_the_file_is_copied(project: Project, of_run: str) -> None:
    """Nothing has begun: no run stays behind, and the same replay is possible when there is room."""
    replay = command("replay", of_run, "repair.tbl")
    limited = project.command(["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *replay])
    assert limited.exit_code == 1
    assert "the file of repaired rows cannot be kept" in limited.error
    assert replay_folders(project) == []
    assert len(list(project.runs.iterdir())) == 1
    project.command(replay).succeeded()
    assert project.query(CONTENT) == [BEHIND]


def test_a_flow_of_a_loop(project: Project) -> None:
    """It has no loop around it when its rejects are loaded."""
    head, _, flow = PACKAGE.partition("tasks:\n  load_orders:\n")
    flow = flow.replace('"${files}"', '"orders.${n}"').replace('"${table}"', '"orders_${n}"')
    indented = "".join(f"      {line}\n" for line in flow.splitlines())
    loop = "tasks:\n  turns:\n    foreach:\n      item: n\n      in: [1, 2]\n      tasks:\n        load:\n"
    project.package(head + loop + indented)
    project.file("orders.1", "1|1.00|||\n")
    project.file("orders.2", "x|1.00|||\n2|1.00|||\n")
    run = str(project.run(limit=1).succeeded()["run_id"])
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    (project.folder / "repair.tbl").write_text("5|1.00|||\n")
    project.command(command("replay", run, "repair.tbl")).succeeded()
    assert project.query("SELECT id FROM orders_2 ORDER BY id") == [(2,), (5,)]


def test_a_flow_behind_a_statement(project: Project) -> None:
    """It is known before the run, and planned when it starts: it is one flow, for replays and for comparisons."""
    statement = "tasks:\n  first:\n    sql: {connection: warehouse, text: CREATE TABLE other (n BIGINT)}\n"
    flow = "  load_orders:\n    after: {first: success}\n"
    project.package(PACKAGE.replace("tasks:\n  load_orders:\n", statement + flow))
    project.file("orders.tbl.1", "x|1.00|||\n2|1.00|||\n")
    run = str(project.run(limit=1).succeeded()["run_id"])
    verified = project.command(command("verify", run)).succeeded()
    assert [table["status"] for table in verified["tables"]] == ["equal"]
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    (project.folder / "repair.tbl").write_text("5|1.00|||\n")
    project.command(command("replay", run, "repair.tbl")).succeeded()
    assert project.query("SELECT id FROM orders ORDER BY id") == [(2,), (5,)]
