"""A table of rejects in PostgreSQL: exactly once behind kills and resumes, also if two runs make it."""

from __future__ import annotations

import sys
import time

import pytest

from headrace.targets.postgres.names import TableName, table_lock_key
from tests.integration.driver import GOOD_ROWS, PACKAGE
from tests.integration.postgres import PostgresProject
from tests.integration.test_resumed_rejects import fail_at_the_switch, forget, last_run, write_files
from tests.patience import HANG_SECONDS

STORED = PACKAGE.replace('{limit: "${limit}"}', '{limit: "${limit}", table: bad_orders}')
ACCOUNTS = 'SELECT run_id, count(*), count(DISTINCT "number"), max("number") FROM bad_orders GROUP BY run_id ORDER BY 1'


def stored(warehouse: PostgresProject, load: str = "single", partition: str | None = None) -> None:
    """The package with a table of rejects, four files, five of their rows bad."""
    warehouse.sales(load, partition)
    text = (warehouse.folder / "package.yaml").read_text(encoding="utf-8")
    (warehouse.folder / "package.yaml").write_text(
        text.replace('{limit: "${limit}"}', '{limit: "${limit}", table: bad_orders}'), encoding="utf-8"
    )
    write_files(warehouse)


def once(*runs: str, rejects: int = 5) -> list[tuple[str, str, str, str]]:
    """The accounts of a table that has all rejects of these runs once."""
    return [(run, str(rejects), str(rejects), str(rejects)) for run in sorted(runs)]


@pytest.mark.parametrize(("load", "left"), [("single", [3]), ("staged", []), ("staged", [1, 2])], ids=str)
def test_rejects_of_all_attempts(warehouse: PostgresProject, load: str, left: list[int]) -> None:
    stored(warehouse, load, "id" if load == "staged" else None)
    before = str(warehouse.run(limit=100).succeeded()["run_id"])
    fail_at_the_switch(warehouse)
    assert warehouse.query(ACCOUNTS) == once(before)
    run_id = last_run(warehouse)
    forget(warehouse, run_id, left)
    warehouse.resume().succeeded()
    assert warehouse.query(ACCOUNTS) == once(before, run_id)
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]
    assert warehouse.leftovers() == []


def test_killed_while_they_are_stored(warehouse: PostgresProject) -> None:
    """It waits for a lock of the table of rejects, in the transaction of the switch."""
    stored(warehouse)
    before = str(warehouse.run(limit=100).succeeded()["run_id"])
    warehouse.lock_timeout_seconds = 60
    stored(warehouse)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO%'"
    with (
        warehouse.started(warehouse.arguments(limit=100)) as running,
        warehouse.target.session("BEGIN; LOCK TABLE bad_orders IN SHARE MODE"),
    ):
        deadline = time.monotonic() + HANG_SECONDS
        while warehouse.query(waiting) == [("0",)]:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
        # Readers of the table that is loaded do not wait.
        assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]
        running.end()
    assert warehouse.query(ACCOUNTS) == once(before)
    warehouse.resume().succeeded()
    assert warehouse.query(ACCOUNTS) == once(before, last_run(warehouse))
    assert warehouse.leftovers() == []


def test_rows_that_are_appended_before_the_rejects_are_stored(warehouse: PostgresProject) -> None:
    """Writers of an append commit first. Where the rejects cannot be stored, the run says that it has to go on."""
    stored(warehouse)
    before = str(warehouse.run(limit=100).succeeded()["run_id"])
    warehouse.execute("ALTER TABLE bad_orders ADD CONSTRAINT nobody CHECK (number < 0) NOT VALID")
    failed = warehouse.run(limit=100, target="append")
    assert failed.exit_code == 1
    assert "storing rejects in table warehouse.bad_orders" in failed.error
    run_id = last_run(warehouse)
    assert f"headrace resume {run_id}" in failed.error
    assert warehouse.query("SELECT count(*) FROM orders") == [("390",)]
    assert warehouse.query(ACCOUNTS) == once(before)
    warehouse.execute("ALTER TABLE bad_orders DROP CONSTRAINT nobody")
    warehouse.resume().succeeded()
    assert warehouse.query("SELECT count(*) FROM orders") == [("390",)]
    assert warehouse.query(ACCOUNTS) == once(before, run_id)


def test_rejects_that_cannot_be_stored_change_nothing(warehouse: PostgresProject) -> None:
    stored(warehouse)
    before = str(warehouse.run(limit=100).succeeded()["run_id"])
    warehouse.execute(
        "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER leave_out BEFORE INSERT ON bad_orders FOR EACH ROW EXECUTE FUNCTION leave_out()",
    )
    failed = warehouse.run(limit=100)
    assert failed.exit_code == 1
    assert "table warehouse.bad_orders did not take all rejects" in failed.error
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]
    assert warehouse.query(ACCOUNTS) == once(before)


def test_two_runs_that_make_it_at_once(warehouse: PostgresProject) -> None:
    stored(warehouse)
    with (
        warehouse.started(warehouse.arguments(limit=100)) as first,
        warehouse.started(warehouse.arguments(limit=100, table="other")) as second,
    ):
        runs = [str(running.wait().succeeded()["run_id"]) for running in (first, second)]
    assert warehouse.query(ACCOUNTS) == once(*runs)
    keys = (
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p' AND conrelid = 'bad_orders'::regclass"
    )
    assert warehouse.query(keys) == [("PRIMARY KEY (run_id, task, number)",)]


def test_another_table_of_that_name_since_the_plan(warehouse: PostgresProject) -> None:
    """It appears while the run waits for the table that it loads."""
    warehouse.lock_timeout_seconds = 60
    stored(warehouse)
    key = table_lock_key(warehouse.target.name, TableName("public", "orders"))
    with warehouse.started(warehouse.arguments(limit=100)) as running:
        with warehouse.target.session(f"DO 'BEGIN PERFORM pg_advisory_lock({key}); END'"):
            deadline = time.monotonic() + HANG_SECONDS
            while not any("waiting up to" in str(event.get("text")) for event in warehouse.events()):
                assert running.poll() is None and time.monotonic() < deadline, running.stderr
            warehouse.execute("CREATE TABLE bad_orders (run_id text)")
        ended = running.wait()
    assert ended.exit_code == 1
    assert "table warehouse.bad_orders is no table of rejects" in ended.error
    assert warehouse.tables() == ["public.bad_orders"]


def test_without_a_ledger(warehouse: PostgresProject) -> None:
    stored(warehouse)
    path = warehouse.folder / "package.yaml"
    path.write_text(path.read_text().replace("lock_timeout_seconds: 1}", "lock_timeout_seconds: 1, ledger: off}"))
    ended = warehouse.run(limit=100)
    assert ended.exit_code == 1
    assert "connection `warehouse`: `ledger: off`" in ended.error
    assert warehouse.tables() == []


def test_no_right_to_insert(warehouse: PostgresProject) -> None:
    """Found before the first row."""
    stored(warehouse)
    warehouse.run(limit=100).succeeded()
    warehouse.query("ALTER TABLE bad_orders OWNER TO postgres")
    ended = warehouse.run(limit=100)
    assert ended.exit_code == 1
    assert "the user may not insert rows into table public.bad_orders" in ended.error


def test_a_replay_stores_its_own(warehouse: PostgresProject) -> None:
    warehouse.sales()
    warehouse.package(STORED)
    warehouse.file("orders.tbl.1", GOOD_ROWS + "x|1.00|||\n7|y|||\n")
    run_id = str(warehouse.run(limit=9).succeeded()["run_id"])
    (warehouse.folder / "repair.tbl").write_text("101|1.00|||\nstill bad|1.00|||\n")
    replay = [sys.executable, "-m", "headrace", "replay", run_id, "repair.tbl", "--runs-dir", "runs", "--json"]
    again = str(warehouse.command(replay).succeeded()["run_id"])
    found = warehouse.query('SELECT run_id, "number", value FROM bad_orders ORDER BY rejected_at, 2')
    assert found == [(run_id, "1", "x"), (run_id, "2", "y"), (again, "1", "still bad")]
