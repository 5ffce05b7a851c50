"""Builds that are killed, cancelled and resumed: nothing half is visible, nothing is done twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.builds import JOINED, LINES, MAKE, BuildProject, build, build_project, table_of
from tests.integration.control_flow import TARGETS
from tests.integration.driver import Running
from tests.integration.postgres import PostgresProject
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Cluster

pytestmark = pytest.mark.faults

PLAIN = JOINED.replace("$least", "0")
# Fails as long as the table `stop` has a row.
STOPS = """\
  stops:
    after: build_sales
    sql:
      connection: warehouse
      text: SELECT CAST(CASE count(*) WHEN 0 THEN '1' ELSE 'x' END AS INTEGER) FROM stop
"""
# Hangs while its builder is looked at: each row of it takes a while.
SLOW = "SELECT id, pg_sleep(0.1)::text AS waited FROM line"


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    """On each destination."""
    with build_project(request.param, tmp_path / "project", postgres) as project:
        yield project


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        yield project


def hidden_tables(project: BuildProject) -> list[str]:
    """Those in the schema of the ledger that belong to a load."""
    return [
        str(name)
        for (name,) in project.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'headrace' AND table_name ~ '^2'"
        )
    ]


def wait_until_filling(project: BuildProject, running: Running, sessions: int = 1) -> None:
    """Returns when so many sessions insert."""
    deadline = time.monotonic() + HANG_SECONDS
    busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO \"headrace\"%' AND state = 'active'"
    while running.poll() is None and int(str(project.rows(busy)[0][0])) < sessions:
        assert time.monotonic() < deadline, running.stderr
        time.sleep(0.01)


@pytest.mark.parametrize("knows", ["journal", "ledger"])
def test_a_build_that_has_committed_is_not_done_again(project: BuildProject, knows: str) -> None:
    stop = "  stop:\n    sql: {connection: warehouse, text: CREATE TABLE stop AS SELECT 1 AS n}\n"
    project.tasks(MAKE, stop, build(after="[make, stop]"), STOPS)
    assert project.run().exit_code == 1
    assert project.count() == LINES
    project.project.execute("DELETE FROM stop", "DELETE FROM sales WHERE id > 10")
    if knows == "ledger":  # as if it had been killed in the moment behind the commit
        for path in (*project.project.runs.glob("*/journal.jsonl"), *project.project.runs.glob("*/builds.jsonl")):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(line for line in lines if '"build_sales"' not in line), encoding="utf-8")
    ended = project.resume()
    table = table_of(ended.succeeded())
    assert (table["rows_loaded"], table["notes"]) == (LINES, ["loaded already by this run"])
    assert project.count() == 10  # nobody has built it again


def test_a_build_that_was_killed_begins_anew(on_postgres: BuildProject) -> None:
    project = on_postgres
    assert isinstance(project.project, PostgresProject)
    project.tasks(MAKE, build(after="make"))
    project.run().succeeded()
    project.tasks(
        build(
            SLOW.replace("AS waited", "AS name").replace("id,", "id, CAST(0.5 AS DECIMAL(15,2)) AS amount,"),
            target="replace",
        )
    )
    for again in (project.run_command(), project.project.resume_command()):
        with project.project.started(again) as running:
            wait_until_filling(project, running)
            running.end()
            assert running.ended is not None and running.ended.exit_code == -signal.SIGKILL
        assert not project.differences(PLAIN)
    # What it reads by now is what counts, and no row of the attempts before.
    project.project.execute("DELETE FROM line WHERE id > 3")
    assert table_of(project.resume().succeeded())["rows_loaded"] == 3
    assert project.count() == 3
    assert project.project.leftovers() == []


def test_a_killed_build_is_swept_by_the_next_run(on_postgres: BuildProject) -> None:
    project = on_postgres
    assert isinstance(project.project, PostgresProject)
    project.tasks(MAKE)
    project.run().succeeded()
    project.tasks(build(SLOW))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        running.end()
    assert "public.sales" not in project.project.tables()
    project.tasks(build(PLAIN))
    project.run().succeeded()
    assert not project.differences(PLAIN)
    assert hidden_tables(project) == []
    assert project.project.leftovers() == []


def test_ctrl_c_ends_the_statement_at_once(on_postgres: BuildProject) -> None:
    project = on_postgres
    assert isinstance(project.project, PostgresProject)
    project.tasks(MAKE)
    project.run().succeeded()
    project.tasks(build(SLOW))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert table_of(ended.summary)["status"] == "cancelled"
    assert hidden_tables(project) == []
    assert project.project.leftovers() == []


def test_a_frozen_build_commits_nothing_behind_another_one(on_postgres: BuildProject) -> None:
    """Its sessions were ended while it stood still, and the next run has built the table."""
    project = on_postgres
    assert isinstance(project.project, PostgresProject)
    project.tasks(MAKE)
    project.run().succeeded()
    project.tasks(build(SLOW))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        running.freeze()
        project.project.target.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'loader'")
        project.tasks(build(PLAIN))
        project.run().succeeded()
        running.thaw()
        assert running.wait().exit_code == 1
    assert not project.differences(PLAIN)
    assert hidden_tables(project) == []
    assert project.project.ledger() == ["success", "lost", "success"]


def test_a_build_that_takes_too_long_fails(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.tasks(MAKE)
    project.run().succeeded()
    project.tasks(build(SLOW) + "    timeout_seconds: 0.5\n")
    ended = project.run()
    assert ended.exit_code == 1
    assert "0.5 s" in ended.error
    assert hidden_tables(project) == []
    assert table_of(ended.summary)["status"] == "failed"


def with_own_connection(project: BuildProject, *tasks: str, more: str) -> list[str]:
    """Writes a package that says more of its connection; the command that runs it."""
    head = (
        "headrace: 1\npackage: sales\nparameters:\n  least: {type: integer, default: 0}\nconnections:\n"
        f'  warehouse: {{type: postgres, url: "{project.url}", {more}}}\n'
    )
    project.tasks(*tasks, head=head)
    return [part for part in project.run_command() if "=" not in part and part != "--connection"]


def test_a_build_is_tried_again_when_a_lock_has_gone(on_postgres: BuildProject) -> None:
    project = on_postgres
    assert isinstance(project.project, PostgresProject)
    project.tasks(MAKE, build(after="make"))
    project.run().succeeded()
    task = build(f"{PLAIN} AND id <= 7", target="replace") + "    retry: {times: 60, wait_seconds: 0.1, factor: 1}\n"
    command = with_own_connection(project, task, more="lock_timeout_seconds: 1")
    with ExitStack() as held:
        held.enter_context(project.project.target.session("BEGIN; LOCK TABLE sales IN ACCESS SHARE MODE"))
        with project.project.started(command) as running:
            project.project.wait_for_event(running, "notice", task="build_sales")
            held.close()
            ended = running.wait()
    (table,) = ended.succeeded()["tables"]
    assert (table["status"], table["rows_loaded"]) == ("success", 7)
    assert "is tried again" in ended.stderr
    assert project.count() == 7
    assert project.project.leftovers() == []


def test_without_a_ledger(on_postgres: BuildProject) -> None:
    project = on_postgres
    ended = project.project.command(with_own_connection(project, MAKE, build(after="make"), more="ledger: off"))
    assert table_of(ended.succeeded())["rows_loaded"] == LINES
    assert not project.differences(PLAIN)
    assert project.project.tables() == ["public.line", "public.part", "public.sales"]
