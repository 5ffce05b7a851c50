"""A table of rejects in DuckDB: exactly once whatever is killed, those of replays, what is shown, what is hidden."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.driver import CREATE_ORDERS, GOOD_ROWS, PACKAGE, Project
from tests.integration.moments import Moments
from tests.integration.test_resume import SECOND
from tests.snapshots import assert_snapshot

REJECTS = 20_000
STORED = PACKAGE.replace('{limit: "${limit}"}', '{limit: "${limit}", table: bad_orders}')
# Of each run: rejects, different numbers, the last number.
ACCOUNTS = 'SELECT count(*), count(DISTINCT "number"), max("number") FROM bad_orders GROUP BY run_id ORDER BY run_id'
KILLS = 5


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "headrace", name, *arguments]


def rejects(project: Project) -> list[tuple[Any, ...]]:
    """The accounts of the table; nothing if there is none."""
    return project.query(ACCOUNTS) if "main.bad_orders" in project.tables() else []


@pytest.mark.faults
def test_killed_again_and_again(project: Project) -> None:
    """A run has stored all of its rejects, or none; with its rows, or without them."""
    project.package(STORED)
    project.file("orders.tbl.1", "".join(f"{number}|x|||\n{number}|1.00|||\n" for number in range(REJECTS)))
    seconds = project.run(limit=REJECTS).succeeded()["seconds"]
    done, moments = 1, Moments(seconds, KILLS)
    for moment in moments:
        with project.started(project.arguments(limit=REJECTS)) as running:
            project.wait_for_event(running, "task_started")
            running.wait_until(moment)
            running.end()
            assert running.ended is not None
            moments.in_time(running.ended.exit_code != 0)
        found = rejects(project)
        assert found == [(REJECTS, REJECTS, REJECTS)] * len(found)
        commits = project.query('SELECT count(DISTINCT run_id) FROM headrace."commit"')
        assert commits == [(len(found),)]
        assert done <= len(found) <= done + 1
        done = len(found)
    project.run(limit=REJECTS).succeeded()
    assert rejects(project) == [(REJECTS, REJECTS, REJECTS)] * (done + 1)


def test_a_resumed_run(project: Project) -> None:
    """Two tasks share a table; the second one fails at first, and stores its rejects when the run goes on."""
    late = SECOND.lstrip("\n").replace("data_flow:", "data_flow:\n      rejects: {limit: 9, table: bad_orders}")
    project.package(STORED + late)
    project.file("orders.tbl.1", GOOD_ROWS + "x|1.00|||\ny|1.00|||\n")
    project.file("late.tbl", "7|1.00|||\nz|1.00|||\n")
    project.execute(CREATE_ORDERS.replace("orders", "late").replace("id BIGINT", "id BIGINT CHECK (id > 9)"))
    failed = project.run(limit=9)
    tasks = 'SELECT run_id, task, "number", "row" FROM bad_orders ORDER BY ALL'
    run_id = failed.summary["run_id"]
    first = [(run_id, "load_orders", 1, 101), (run_id, "load_orders", 2, 102)]
    assert (failed.exit_code, project.query(tasks)) == (1, first)
    project.execute("DROP TABLE late")
    project.resume().succeeded()
    assert project.query(tasks) == [(run_id, "load_late", 1, 2), *first]


def test_a_replay_stores_its_own(project: Project) -> None:
    project.package(STORED)
    project.file("orders.tbl.1", GOOD_ROWS + "x|1.00|||\n7|y|||\n")
    run_id = str(project.run(limit=9).succeeded()["run_id"])
    repair = project.folder / "repair.tbl"
    repair.write_text("101|1.00|||\nstill bad|1.00|||\n")
    replay = project.command(command("replay", run_id, "repair.tbl", "--runs-dir", "runs", "--json")).succeeded()
    again = replay["run_id"]
    found = project.query('SELECT run_id, task, "number", value FROM bad_orders ORDER BY ALL')
    assert found == [
        (run_id, "load_orders", 1, "x"),
        (run_id, "load_orders", 2, "y"),
        (again, "load_orders", 1, "still bad"),
    ]


def test_secrets_in_names_are_hidden(project: Project) -> None:
    canary = "c4n4ry-S3cret-pw"
    folder = project.folder / canary
    folder.mkdir()
    (folder / "orders.tbl.1").write_text(GOOD_ROWS + "x|1.00|||\n")
    project.package(STORED.replace("path: inbox}", 'path: "${env:INBOX}"}'))
    project.run(limit=9, environment={"INBOX": str(folder)}).succeeded()
    [(file,)] = project.query("SELECT file FROM bad_orders")
    assert "***" in file
    assert canary.encode() not in project.database.read_bytes()


def test_what_is_shown(project: Project) -> None:
    """Plan, run, check, and what is refused."""
    project.package(STORED)
    project.file("orders.tbl.1", GOOD_ROWS + "x|1.00|||\n")
    plan = project.command(command("plan", "package.yaml"))
    done = project.command(command("run", "package.yaml", "--set", "limit=1", "--runs-dir", "runs"))
    assert (plan.exit_code, done.exit_code) == (0, 0)
    shown = {
        "plan": plan.stdout[plan.stdout.index("  steps") :],
        "run": done.stdout[done.stdout.index("orders: 1 row") : done.stdout.index("\nrun ")],
    }
    [table] = json.loads(next(project.runs.glob("*/summary.json")).read_text())["tables"]
    assert table["rejects"]["table"] == "warehouse.bad_orders"
    document = json.loads(project.command(command("plan", "package.yaml", "--json")).stdout)
    assert document["tasks"][0]["rejects"]["table"] == "warehouse.bad_orders"
    refused = {"a table of the run": project.run(limit=1, table="Bad_Orders")}
    project.execute('ALTER TABLE bad_orders ALTER COLUMN "row" TYPE INTEGER')
    refused |= {
        "another table": project.run(limit=1),
        "another table, checked": project.command(command("check", "package.yaml", "--connect")),
        "nothing stored": project.run("--connection", "warehouse=null:", limit=1),
    }
    assert {name: ended.exit_code for name, ended in refused.items()} == dict.fromkeys(refused, 1)
    shown |= {name: ended.error for name, ended in refused.items()}
    text = "".join(f"--- {name} ---\n{text}\n" for name, text in shown.items())
    assert_snapshot("reject_table", project.stable(text))


def test_names_that_cannot_be(project: Project) -> None:
    project.file("orders.tbl.1")
    for name in ("main.bad", "' '", '"a\\tb"'):
        project.package(STORED.replace("table: bad_orders", f"table: {name}"))
        ended = project.run()
        assert ended.exit_code == 5
        assert "this cannot be a table of rejects" in ended.stderr
