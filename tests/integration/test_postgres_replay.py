"""Replays into PostgreSQL: killed, gone on with, repeated, two at once; every reject is loaded once."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from headrace.targets.postgres.connection import sql
from headrace.targets.postgres.names import writers_lock_key
from tests.integration.driver import TIMEOUT_SECONDS, Running
from tests.integration.postgres import PostgresProject
from tests.integration.replays import command, rejecting_run, replay_folders, wait_for_replay
from tests.patience import HANG_SECONDS

REJECTS = 300
CONTENT = "SELECT count(*), count(DISTINCT id) FROM orders"
BEFORE, BEHIND = ("100", "100"), (str(100 + REJECTS), str(100 + REJECTS))
CLAIMS = "SELECT 1 FROM headrace.replay"
BOTH_CLAIMS = "SELECT 1 FROM headrace.replay HAVING count(*) = 2"
WAITS_FOR_THE_TABLE = "SELECT 1 FROM pg_locks WHERE relation = 'orders'::regclass AND NOT granted"
STAGED_ROWS = 'SELECT 1 FROM headrace."commit" JOIN headrace.run USING (run_id) WHERE of_run IS NOT NULL AND slice > 0'
# Who holds this lets a writer of the table wait, and readers pass.
KEEPS_WRITERS_OUT = "BEGIN; LOCK TABLE {table} IN SHARE MODE"


@pytest.fixture
def of_run(warehouse: PostgresProject) -> str:
    """A run that has rejected rows, with a repaired copy of them."""
    warehouse.lock_timeout_seconds = TIMEOUT_SECONDS
    warehouse.sales()
    return rejecting_run(warehouse, REJECTS)


def wait_for_row(project: PostgresProject, running: Running, query: str) -> None:
    """Until there is one. The process must not end before."""
    deadline = time.monotonic() + HANG_SECONDS
    while not project.query(query):
        assert running.poll() is None, running.stderr
        assert time.monotonic() < deadline, f"nothing by {query}:\n{running.stderr}"
        time.sleep(0.01)


def killed(project: PostgresProject, of_run: str, moment: str, table: str = "orders") -> str:
    """A replay that was killed when `moment`, a query, had given a row; nobody could write into the table."""
    with (
        project.target.session(KEEPS_WRITERS_OUT.format(table=table)),
        project.started(command("replay", of_run, "repair.tbl")) as running,
    ):
        wait_for_row(project, running, moment)
        running.end()
    return replay_folders(project)[-1].name


def accounts(project: PostgresProject, of_run: str) -> tuple[int, int, int]:
    """Open, loaded and in unfinished replays."""
    (table,) = project.command(command("rejects", of_run)).summary["tables"]
    resolved = table["loaded"] + table["rejected_again"] + table["dropped"] + table["unfinished"] + table["open"]
    assert table["rejected"] + table["rows_added"] == resolved
    return table["open"], table["loaded"], table["unfinished"]


@pytest.mark.faults
@pytest.mark.parametrize("goes_on", [True, False], ids=["resumed", "repeated"])
@pytest.mark.parametrize(
    ("load", "partition", "blocked", "moment"),
    [
        pytest.param("single", None, "orders", CLAIMS, id="claim"),
        pytest.param("view", None, "orders", STAGED_ROWS, id="view"),
        pytest.param("staged", "id", "orders_1", STAGED_ROWS, id="partition"),
    ],
)
def test_killed_before_the_rows_are_visible(
    warehouse: PostgresProject, load: str, partition: str | None, blocked: str, moment: str, *, goes_on: bool
) -> None:
    """Behind the claim rows wait for the table; or they are committed out of sight, and the switch waits."""
    project, count = warehouse, "SELECT count(*) FROM orders"
    project.lock_timeout_seconds = TIMEOUT_SECONDS
    project.sales(load, partition=partition)
    of_run = rejecting_run(project, REJECTS)
    repair = project.folder / "repair.tbl"  # keys that the partition of the run takes
    repair.write_text("".join(f"{5 + number % 90}|1.00|||\n" for number in range(REJECTS)))
    dead = killed(project, of_run, moment, blocked)
    assert project.query(count) == [("100",)]
    assert accounts(project, of_run) == (0, 0, REJECTS)
    replay = command("replay", of_run, "repair.tbl")
    if goes_on:
        resumed = project.command(command("resume", dead)).succeeded()
        assert resumed["replay"]["loaded"] == REJECTS
    else:
        project.command(replay).succeeded()
    assert project.query(count) == [(str(100 + REJECTS),)]
    refused = project.command(replay)
    assert refused.exit_code == 1
    assert "were loaded already" in refused.error
    late = project.command(command("resume", dead))
    assert late.exit_code == (6 if goes_on else 1), late.stderr
    assert project.query(count) == [(str(100 + REJECTS),)]
    assert accounts(project, of_run) == (0, REJECTS, 0)
    assert project.left_in_database() == []


@pytest.mark.parametrize("event", ["run_started", "task_finished"])
def test_killed_before_the_claim_and_behind_the_switch(warehouse: PostgresProject, of_run: str, event: str) -> None:
    project = warehouse
    replay = command("replay", of_run, "repair.tbl")
    with project.started(replay) as running:
        wait_for_replay(project, running, event)
        running.end()
    visible = project.query(CONTENT)[0]
    assert visible in (BEFORE, BEHIND)
    again = project.command(replay)
    assert again.exit_code == (1 if visible == BEHIND else 0), again.stderr
    assert project.query(CONTENT) == [BEHIND]
    assert project.left_in_database() == []


def test_two_replays_at_once(warehouse: PostgresProject, of_run: str) -> None:
    """Who waits for the table looks again behind its lock."""
    project = warehouse
    replay = command("replay", of_run, "repair.tbl")
    with ExitStack() as commands:
        with project.target.session(KEEPS_WRITERS_OUT.format(table="orders")):
            both = [commands.enter_context(project.started(replay)) for _ in range(2)]
            wait_for_row(project, both[0], BOTH_CLAIMS)
        ended = sorted((running.wait() for running in both), key=lambda item: item.exit_code)
    assert [item.exit_code for item in ended] == [0, 1]
    assert "were loaded already" in ended[1].error
    assert project.query(CONTENT) == [BEHIND]
    assert accounts(project, of_run) == (0, REJECTS, 0)


def test_a_replay_that_stands_still(warehouse: PostgresProject) -> None:
    """It lives, and holds the table: another one waits in vain. Then it goes on."""
    project = warehouse
    project.lock_timeout_seconds = 5
    project.sales()
    of_run = rejecting_run(project, REJECTS)
    replay = command("replay", of_run, "repair.tbl")
    with ExitStack() as commands:
        with project.target.session(KEEPS_WRITERS_OUT.format(table="orders")):
            frozen = commands.enter_context(project.started(replay))
            wait_for_row(project, frozen, WAITS_FOR_THE_TABLE)
            frozen.freeze()
        impatient = project.command(replay)
        assert impatient.exit_code == 1, impatient.stderr
        assert project.query(CONTENT) == [BEFORE]
        frozen.thaw()
        assert frozen.wait().exit_code == 0
    assert project.query(CONTENT) == [BEHIND]
    late = project.command(command("resume", replay_folders(project)[-1].name))
    assert late.exit_code == 1
    assert "were loaded already" in late.error
    assert project.query(CONTENT) == [BEHIND]


def test_a_dead_replay_whose_writer_cannot_be_ended(warehouse: PostgresProject, of_run: str) -> None:
    """It could commit yet: nobody else gets its rejects until it has ended."""
    project = warehouse
    dead = killed(project, of_run, CLAIMS)
    replay = command("replay", of_run, "repair.tbl")
    with project.target.session(f"DO 'BEGIN PERFORM pg_advisory_lock_shared({writers_lock_key(dead)}); END'"):
        refused = project.command(replay)
    assert refused.exit_code == 1
    assert f"run {dead}" in refused.error, refused.error
    assert project.query(CONTENT) == [BEFORE]
    project.command(replay).succeeded()
    late = project.command(command("resume", dead))
    assert late.exit_code == 1
    assert "were loaded already" in late.error
    assert project.query(CONTENT) == [BEHIND]
    assert project.left_in_database() == []


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


def test_a_table_that_was_emptied(warehouse: PostgresProject, of_run: str) -> None:
    """A load without a single slice has made it anew."""
    project = warehouse
    project.file("orders.tbl.1", "")
    project.run(limit=REJECTS, empty="allow").succeeded()
    refused = project.command(command("replay", of_run, "repair.tbl"))
    assert refused.exit_code == 1
    assert "was loaded anew since" in refused.error
    assert project.query("SELECT count(*) FROM orders") == [("0",)]
    text = sql("lost_tables").format(schema="headrace", is_same="true")
    assert project.query(text.replace("$1", f"'{of_run}'").replace("$2", "'{append,replace}'")) == []


def test_dropped_by_somebody_else(warehouse: PostgresProject, of_run: str) -> None:
    warehouse.execute("DROP TABLE orders")
    refused = warehouse.command(command("replay", of_run, "repair.tbl"))
    assert refused.exit_code == 1
    assert "is not there any more" in refused.error


def test_replays_are_compared_by_nobody(warehouse: PostgresProject, of_run: str) -> None:
    project = warehouse
    assert project.command(command("verify", of_run)).exit_code == 0
    project.command(command("replay", of_run, "repair.tbl")).succeeded()
    (table,) = project.command(command("verify", of_run)).summary["tables"]
    assert (table["status"], table["reason"]) == (
        "not_comparable",
        "rejects of the run were replayed: the table holds repaired rows too",
    )


def test_a_row_that_the_server_refuses(warehouse: PostgresProject, of_run: str) -> None:
    """It is named in the file that was given; nothing is loaded, and the corrected file is."""
    project = warehouse
    project.execute("CREATE UNIQUE INDEX ON orders (id)")
    repair = project.folder / "repair.tbl"
    right = repair.read_text()
    repair.write_text(right.replace("1002|", "7|"))
    refused = project.command(command("replay", of_run, "repair.tbl"))
    assert refused.exit_code == 1
    assert f"at: {repair}, row 3, byte 26" in refused.error, refused.error
    assert project.query(CONTENT) == [BEFORE]
    repair.write_text(right)
    project.command(command("replay", of_run, "repair.tbl")).succeeded()
    assert project.query(CONTENT) == [BEHIND]
    assert project.left_in_database() == []
