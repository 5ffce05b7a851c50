"""Runs that are killed, stopped or cancelled: nothing half-loaded is ever visible, and the next run is undisturbed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Project, Running
from tests.integration.moments import START_SECONDS, Moments
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.faults

# Loaded in this order.
LOADED = ("orders", "lineitem", "partsupp")
CONTENT = "SELECT count(*), sum(hash({table}))::VARCHAR FROM {table}"
KILLS = 6


class Target:
    """Three tables with one row each, and what they hold after an undisturbed run."""

    def __init__(self, project: Project, undisturbed: Project, files: Path) -> None:
        self.project = project
        self.expected = {table: self._content(undisturbed, table) for table in LOADED}
        project.tpch(*LOADED)
        project.link(files.glob("*.tbl.*"))
        for table in LOADED:
            [(ddl,)] = undisturbed.query(f"SELECT sql FROM duckdb_tables() WHERE table_name = '{table}'")
            columns = undisturbed.query(f"DESCRIBE {table}")
            values = ", ".join("DATE '1970-01-01'" if column[1] == "DATE" else "0" for column in columns)
            project.execute(ddl, f"INSERT INTO {table} VALUES ({values})")
        self.before = {table: self._content(project, table) for table in LOADED}

    @staticmethod
    def _content(project: Project, table: str) -> tuple[Any, ...]:
        return project.query(CONTENT.format(table=table))[0]

    def loaded(self) -> list[str]:
        """The tables that hold the new rows; each of the others must be as before, not anything between."""
        loaded = []
        for table in LOADED:
            content = self._content(self.project, table)
            assert content in (self.before[table], self.expected[table]), table
            if content == self.expected[table]:
                loaded.append(table)
        assert self.project.tables() == sorted(f"main.{table}" for table in LOADED)
        return loaded

    def commits(self) -> list[str]:
        """The tables of the latest run in the ledger that have commit rows."""
        rows = self.project.query(
            'SELECT DISTINCT task FROM headrace."commit" '
            "WHERE run_id = (SELECT arg_max(run_id, started_at) FROM headrace.run)"
        )
        return sorted(task.removeprefix("load_") for (task,) in rows)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, tpch_files: Path) -> Project:
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    project.tpch(*LOADED)
    project.link(tpch_files.glob("*.tbl.*"))
    project.run().succeeded()
    return project


@pytest.fixture
def target(project: Project, undisturbed: Project, tpch_files: Path) -> Target:
    return Target(project, undisturbed, tpch_files)


def test_killed_again_and_again(project: Project, target: Target, undisturbed: Project) -> None:
    """At moments spread over the whole run, each time on what the run before has left."""
    [seconds] = [json.loads(path.read_text())["seconds"] for path in undisturbed.runs.glob("*/summary.json")]
    loaded: list[str] = []
    moments = Moments(seconds, KILLS, first=START_SECONDS)
    for moment in moments:
        with project.started(project.arguments()) as running:
            running.wait_until(moment)
            running.end()
            assert running.ended is not None
            moments.in_time(running.ended.exit_code == -signal.SIGKILL)
        found = target.loaded()
        assert set(loaded) <= set(found), f"killed after {moment:.3f} s"
        loaded = found
    project.run().succeeded()
    assert target.loaded() == list(LOADED)
    states = project.ledger()
    assert states[-1] == "success"
    assert set(states[:-1]) <= {"success", "lost"}


@pytest.mark.parametrize(
    ("event", "members", "loaded"),
    [
        ("run_started", {}, []),
        ("task_started", {"table": "orders"}, []),
        ("task_finished", {"table": "orders"}, ["orders"]),
        ("task_started", {"table": "lineitem"}, ["orders"]),
        ("task_finished", {"table": "lineitem"}, ["orders", "lineitem"]),
        ("task_finished", {"table": "partsupp"}, list(LOADED)),
    ],
    ids=["at the start", "in the first table", "between", "in the second table", "before the last", "at the end"],
)
def test_killed_at(project: Project, target: Target, event: str, members: dict[str, str], loaded: list[str]) -> None:
    with project.started(project.arguments()) as running:
        project.wait_for_event(running, event, **members)
        running.end()
        assert running.ended is not None and running.ended.exit_code == -signal.SIGKILL
    found = target.loaded()
    # The process may have got further than the event before the kill reached it.
    assert found[: len(loaded)] == loaded
    before = project.ledger()
    if before:
        assert before == ["running"] or (before == ["success"] and event == "task_finished")
        assert target.commits() == sorted(found)
    ended = project.run()
    assert ended.succeeded()["rows_loaded"] == sum(content[0] for content in target.expected.values())
    assert target.loaded() == list(LOADED)
    assert project.ledger() == ["lost" if state == "running" else state for state in before] + ["success"]
    assert ("died before it ended" in ended.stderr) == ("running" in before)


@pytest.fixture
def long_run(project: Project, tpch_files: Path) -> list[str]:
    """The command for a package whose second table takes long: 4 GB of text."""
    project.tpch("region", "lineitem")
    project.link(tpch_files.glob("lineitem.*"), copies=100)
    project.link([tpch_files / "region.tbl"])
    project.execute("CREATE TABLE unrelated AS SELECT 42 AS answer")
    return project.arguments()


def _check_cancelled(project: Project, running: Running) -> None:
    ended = running.wait()
    assert ended.exit_code == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "stopping: what has not begun to commit is rolled back" in ended.stderr
    assert project.query("SELECT count(*) FROM region") == [(5,)]
    assert project.tables() == ["main.region", "main.unrelated"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_cancelled(project: Project, long_run: list[str], number: signal.Signals) -> None:
    with project.started(long_run) as running:
        project.wait_for_event(running, "task_started", table="lineitem")
        time.sleep(0.3)
        asked = time.monotonic()
        running.signal(number)
        _check_cancelled(project, running)
        assert time.monotonic() - asked < HANG_SECONDS
        ended = running.wait()
    assert_snapshot("cancelled", project.stable(ended.error))
    summary = ended.summary
    assert (summary["status"], summary["rows_loaded"]) == ("cancelled", 5)
    assert [table["status"] for table in summary["tables"]] == ["success", "cancelled"]
    assert project.ledger() == ["cancelled"]
    assert project.query('SELECT DISTINCT task FROM headrace."commit"') == [("load_region",)]
    assert project.leftovers() == []
    project.tpch("region")
    project.run().succeeded()
    assert project.ledger() == ["cancelled", "success"]


def test_the_second_signal_ends_the_process_at_once(project: Project, long_run: list[str]) -> None:
    """Both are there when the process goes on: it has no time to end by itself."""
    with project.started(long_run) as running:
        project.wait_for_event(running, "task_started", table="lineitem")
        running.freeze()
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)
        running.thaw()
        _check_cancelled(project, running)
        assert json.loads(running.wait().stdout)["status"] == "cancelled"
    assert project.ledger() == ["running"]
    project.tpch("region")
    project.run().succeeded()
    assert project.ledger() == ["lost", "success"]


def test_cancelled_while_waiting_for_a_lock(project: Project, long_run: list[str]) -> None:
    package = project.folder / "package.yaml"
    package.write_text(package.read_text().replace("timeout_seconds: 1", "timeout_seconds: 60"))
    with project.started(long_run) as first:
        project.wait_for_event(first, "task_started", table="lineitem")
        with project.started([*long_run, "--runs-dir", "others"]) as second:
            while second.poll() is None and "waiting up to 60 seconds" not in second.stderr:
                time.sleep(0.01)
            second.signal(signal.SIGINT)
            ended = second.wait()
        assert first.poll() is None
    assert ended.exit_code == 3
    assert_snapshot("cancelled_while_waiting", project.stable(ended.error))
