"""Appends that commit on the way and fail: messages and summary say what is in the table, and it counts as long as the
table is the same one.
"""

from __future__ import annotations

import signal
import time
from typing import Final

import pytest

from tests.integration.driver import Ended
from tests.integration.postgres import PostgresProject
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS

FILES: Final = 10
ROWS: Final = 50
HEAD = """\
headrace: 1
package: appended
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}, {name: amount, type: int32}]}
streams: 2
tasks:
"""
FLOW = (
    "{{{settings}data_flow: {{rejects: {{limit: {limit}}}, "
    'sources: {{rows: {{connection: inbox, files: "{files}", layout: orders}}}}, '
    "destinations: {{loaded: {{input: rows, connection: warehouse, table: {table}, target: append{more}}}}}}}}}"
)
COMMIT = ", load: single, commit: {rows: 100}"
CREATE = "CREATE TABLE orders (id bigint, amount int CONSTRAINT small CHECK (amount < 1000000))"
# Once so many statements have brought rows, one of them waits for ever, or raises.
LATER = """
CREATE SEQUENCE statements;
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('statements') > 2 THEN {what}; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER later AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION later();
"""
WAIT = LATER.format(what=f"PERFORM pg_sleep({FOR_EVER_SECONDS})")
END = LATER.format(what="PERFORM pg_terminate_backend(pg_backend_pid())")
RAISE = LATER.format(what="RAISE EXCEPTION 'not these'")


def flow(settings: str = "", more: str = COMMIT, table: str = "orders", files: str = "orders.*", limit: int = 0) -> str:
    """The settings of a task."""
    return FLOW.format(settings=settings, more=more, table=table, files=files, limit=limit)


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    """Small files, as many slices."""
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        warehouse.file(f"orders.{number}", "".join(f"{row},1\n" for row in rows))
    warehouse.package(f"{HEAD}  load: {flow()}\n")
    warehouse.execute(CREATE)
    return warehouse


def rows_there(orders: PostgresProject, table: str = "orders") -> int:
    return int(str(orders.query(f"SELECT count(*) FROM {table}")[0][0]))


def check_told(orders: PostgresProject, ended: Ended) -> int:
    """The rows that are in the table, which everybody tells who tells of the load."""
    rows = rows_there(orders)
    if not rows:  # nothing had come so far: a limit of time does not wait for it
        assert ended.summary["rows_loaded"] == 0
        assert "in the table" not in ended.summary["error"]["what"]
        return 0
    (table,) = ended.summary["tables"]
    (finished,) = [event for event in orders.events() if event["event"] == "task_finished" and "rows_loaded" in event]
    assert (table["rows_loaded"], ended.summary["rows_loaded"], finished["rows_loaded"]) == (rows, rows, rows)
    error = ended.summary["error"]
    assert "nothing" not in f"{error['what']}{ended.stderr}"
    assert f"{rows:,} of its rows are in the table" in error["what"]
    assert f"{rows:,} of its rows are visible" in ended.stderr
    assert f"headrace resume {ended.summary['run_id']}" in error["hint"]
    return rows


BAD = {
    "a_row_too_many_is_rejected": ("x,1\n", ""),
    "a_row_breaks_a_constraint": ("9,2000000\n", ""),
    "a_trigger_raises": ("", RAISE),
    "sessions_are_ended": ("", END),
}


@pytest.mark.parametrize("case", BAD)
def test_whatever_fails_the_rows_that_stay_are_told(orders: PostgresProject, case: str) -> None:
    bad, trigger = BAD[case]
    if bad:
        orders.file("orders.9", bad)  # the largest ones come first
    if trigger:
        orders.target.psql(trigger)
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert check_told(orders, ended)


@pytest.mark.parametrize("how", ["cancelled", "timeout"])
def test_what_is_stopped_says_so_too(orders: PostgresProject, how: str) -> None:
    orders.target.psql(WAIT)
    settings = "timeout_seconds: 3, " if how == "timeout" else ""
    orders.package(f"{HEAD}  load: {flow(settings)}\n")
    with orders.started(orders.arguments("--streams", "1")) as running:
        deadline = time.monotonic() + HANG_SECONDS
        while how == "cancelled" and running.poll() is None and not rows_there(orders):
            assert time.monotonic() < deadline, running.stderr
            time.sleep(0.02)
        if how == "cancelled":
            running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == (3 if how == "cancelled" else 1)
    assert check_told(orders, ended) or how == "timeout"


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.fixture
def half(orders: PostgresProject) -> PostgresProject:
    """A run has appended some of its files, and failed; what was wrong is mended."""
    good = (orders.inbox / "orders.9").read_text()
    orders.file("orders.9", "1,2000000\n")
    assert orders.run("--streams", "1").exit_code == 1
    assert rows_there(orders) == (FILES - 2) * ROWS
    orders.file("orders.9", good)
    return orders


def refused(orders: PostgresProject) -> bool:
    """Whether a new run does not append before somebody decides about the rows of the first one."""
    before, ended = rows_there(orders), orders.run()
    if ended.exit_code == 0:
        assert rows_there(orders) == before + FILES * ROWS
        return False
    assert "did not end well, and has appended rows already" in ended.error
    assert rows_there(orders) == before
    return True


def test_the_same_table_holds_a_part(half: PostgresProject) -> None:
    half.execute("ALTER TABLE orders ADD COLUMN more int", "CREATE INDEX ON orders (id)", "VACUUM FULL orders")
    assert refused(half)


@pytest.mark.parametrize("moved", [False, True], ids=["dropped", "renamed"])
def test_a_table_that_was_made_anew_holds_nothing(half: PostgresProject, moved: bool) -> None:
    half.execute("ALTER TABLE orders RENAME TO others" if moved else "DROP TABLE orders")
    half.execute(CREATE.replace("CONSTRAINT small", "CONSTRAINT little"))
    assert not refused(half)


def test_a_table_that_is_gone_holds_nothing(half: PostgresProject) -> None:
    half.execute("DROP TABLE orders")
    half.package(f"{HEAD}  load: {flow(more='')}\n")
    half.run().succeeded()
    assert rows_there(half) == FILES * ROWS


def test_a_run_does_not_go_on_in_a_table_that_was_made_anew(orders: PostgresProject) -> None:
    """Only the rest would be there."""
    orders.target.psql(RAISE)
    assert orders.run("--streams", "1").exit_code == 1
    assert 0 < rows_there(orders) < FILES * ROWS
    orders.execute("DROP TABLE orders", CREATE)
    ended = orders.resume()
    assert ended.exit_code == 1
    assert "public.orders is no longer the table that it was" in ended.error
    assert rows_there(orders) == 0
    assert not refused(orders)


def test_of_a_ledger_that_is_older_nobody_knows(half: PostgresProject) -> None:
    half.execute("UPDATE headrace.unit SET identity = NULL", "DROP TABLE orders", CREATE)
    assert refused(half)


def test_of_a_database_that_was_restored_nobody_knows(half: PostgresProject) -> None:
    """Ledger and table are others then, with the rows of the old ones."""
    half.execute(
        "CREATE TABLE restored (LIKE orders)", "INSERT INTO restored SELECT * FROM orders", "DROP TABLE orders",
        "ALTER TABLE restored RENAME TO orders", "DROP VIEW headrace.lineage",
        "CREATE TABLE headrace.restored (LIKE headrace.run INCLUDING ALL)",
        "INSERT INTO headrace.restored SELECT * FROM headrace.run", "DROP TABLE headrace.run",
        "ALTER TABLE headrace.restored RENAME TO run",
    )  # fmt: skip
    assert refused(half)


@pytest.mark.parametrize(
    "load", ["", ", load: staged, partition: {hash: {column: id, parts: 2}}"], ids=["whole", "parts"]
)
@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
def test_so_it_is_with_a_task_that_was_complete(orders: PostgresProject, load: str, there: bool) -> None:
    """Of a run that failed in another task."""
    orders.file("bad.csv", "x\n")
    orders.package(
        f"{HEAD}  load: {flow(more=load)}\n  other: {{after: load, {flow(files='bad.csv', table='others')[1:]}\n"
    )
    if not there or load:
        orders.execute("DROP TABLE orders")
    assert orders.run().exit_code == 1
    assert rows_there(orders) == FILES * ROWS
    orders.file("bad.csv", "1,1\n")
    assert "has appended rows already" in orders.run().error
    orders.execute("DROP TABLE orders", CREATE.replace("CONSTRAINT small", "CONSTRAINT little"))
    orders.package(f"{HEAD}  load: {flow(more='')}\n")
    orders.run().succeeded()
    assert rows_there(orders) == FILES * ROWS
