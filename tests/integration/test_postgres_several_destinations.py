"""Several destinations of one data flow on PostgreSQL: hidden tables of all of them, one switch, killed and resumed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.integration.driver import Running
from tests.integration.postgres import PostgresProject
from tests.integration.several_scenes import KEYED, PARTED, ROWS, accounts, expected, package, write_files
from tests.servers.cluster import LOADER
from tests.snapshots import assert_snapshot

COLUMNS = "id, customer, amount, note"
# The command line, with a process that kills itself when the rows of all ways are committed in their hidden tables.
KILLED = """
import os, signal
from headrace.targets.postgres.group import PostgresGroup

def begin(self):
    os.kill(os.getpid(), signal.SIGKILL)

PostgresGroup.begin = begin

from headrace.cli import main
main()
"""
KILLS = int(os.environ.get("KILLS", "3"))
FOUND = "SELECT id, customer, amount, note FROM orders JOIN customers ON code = customer"
MISSED = "SELECT id, customer, amount, note FROM orders ANTI JOIN customers ON code = customer"


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def loaded(orders: PostgresProject, table: str) -> list[tuple[str | None, ...]]:
    return orders.query(f"SELECT {COLUMNS} FROM {table} ORDER BY id")


def wanted(orders: PostgresProject, query: str) -> list[tuple[str | None, ...]]:
    rows = sorted(expected(orders, f"SELECT {COLUMNS} FROM ({query})"))
    return [tuple(None if value is None else str(value) for value in row) for row in rows]


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        ", load: view",
        ", load: staged, partition: {range: {column: id, bounds: [2000, 4000]}}",
        ", load: staged, partition: {range: {column: id, every: 2000}}",
        ", load: staged, partition: {hash: {column: id, parts: 3}}",
    ],
)
@pytest.mark.parametrize("streams", ["1", "16"])
def test_each_table_gets_its_rows_however_they_are_loaded(orders: PostgresProject, clauses: str, streams: str) -> None:
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}, clauses))
    for _ in range(2):  # the second one takes the place of the first
        ended = orders.run("--streams", streams)
        found, missed = wanted(orders, FOUND), wanted(orders, MISSED)
        assert accounts(ended) == {
            "found": (ROWS, len(found), len(missed), 0),
            "missed": (ROWS, len(missed), len(found), 0),
        }
        assert (loaded(orders, "found"), loaded(orders, "missed")) == (found, missed)
        assert orders.leftovers() == []


def test_rows_that_are_appended_become_visible_with_the_others(orders: PostgresProject) -> None:
    for table in ("big", "rest"):
        orders.execute(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, customer int, amount numeric(9,2), note varchar(30))"
        )
        orders.execute(f"INSERT INTO {table} VALUES (-1, 1, 1, 'before')")
    text = package(
        PARTED.replace("split:", "discard: [small, odd]\n          split:"),
        {"big": "parted.big", "rest": "parted.rest"},
    )
    orders.package(text.replace("target: replace", "target: append, load: single"))
    orders.run("--streams", "3").succeeded()
    big = wanted(orders, "FROM orders WHERE amount > 900")
    assert loaded(orders, "big") == [("-1", "1", "1.00", "before"), *big]
    # A row that is there already undoes both.
    orders.execute("DELETE FROM rest")
    ended = orders.run()
    assert ended.exit_code == 1
    assert (len(loaded(orders, "big")), loaded(orders, "rest")) == (len(big) + 1, [])
    assert [table["status"] for table in ended.summary["tables"]] == ["failed", "failed"]
    assert orders.leftovers() == []


def test_null_for_not_null_is_a_reject_of_its_way(orders: PostgresProject) -> None:
    orders.execute("CREATE TABLE strict (id bigint, customer int NOT NULL, amount numeric(9,2), note varchar(20))")
    orders.package(package(destinations={"every": "orders", "strict": "orders"}))
    ended = orders.run("--set", "limit=10000")
    bad = sum(number % 13 == 0 or number % 23 > 20 for number in range(ROWS))
    assert accounts(ended) == {"every": (ROWS, ROWS, 0, 0), "strict": (ROWS, ROWS - bad, 0, bad)}
    assert ended.summary["rows_rejected"] == bad


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_run_is_resumed(orders: PostgresProject, kill: int) -> None:
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}))
    with orders.started(orders.arguments("--streams", "4")) as running:
        orders.wait_for_event(running, "task_started")
        time.sleep(kill * 0.6 / KILLS)
        running.signal(signal.SIGKILL)
        running.wait()
    before = orders.tables()
    assert ("public.found" in before) == ("public.missed" in before), "both, or none"
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    assert loaded(orders, "found") == wanted(orders, FOUND)
    assert loaded(orders, "missed") == wanted(orders, MISSED)
    assert orders.leftovers() == []


def test_a_run_that_has_committed_some_units_goes_on(orders: PostgresProject) -> None:
    """A lock of one table keeps the switch from both, when all rows are in their hidden tables."""
    for table in ("found", "missed"):
        orders.execute(f"CREATE TABLE {table} (id bigint, customer int, amount numeric(9,2), note text)")
    found = "keyed, columns: {id: id, customer: customer, amount: amount, note: note}"
    orders.package(package(KEYED, {"found": found, "missed": "keyed.no_match"}))
    lock = orders.target.session("BEGIN; LOCK TABLE missed IN ACCESS EXCLUSIVE MODE")
    with lock, orders.started(orders.arguments("--streams", "2")) as running:
        time.sleep(2.0)
        running.signal(signal.SIGKILL)
        running.wait()
    assert (loaded(orders, "found"), loaded(orders, "missed")) == ([], [])
    ended = orders.resume()
    ended.succeeded()
    assert loaded(orders, "found") == wanted(orders, FOUND)
    assert loaded(orders, "missed") == wanted(orders, MISSED)
    assert {name: own[0] for name, own in accounts(ended).items()} == {"found": ROWS, "missed": ROWS}
    assert orders.leftovers() == []


def test_it_is_tried_again_as_a_whole(orders: PostgresProject) -> None:
    """The table of the second destination is locked when all of them are switched."""
    for table in ("one", "two"):
        orders.execute(f"CREATE TABLE {table} (id bigint, customer int, amount numeric(9,2), note text)")
        orders.execute(f"INSERT INTO {table} VALUES (-1, 1, 1, 'before')")
    retry = "retry: {times: 3, wait_seconds: 0.2, factor: 1}"
    text = package().replace("  load:\n", f"  load:\n    {retry}\n", 1)
    orders.package(text.replace("target: replace", "target: append"))
    with ExitStack() as commands:
        with orders.target.session("BEGIN; LOCK TABLE two IN SHARE MODE"):
            running = commands.enter_context(orders.started(orders.arguments()))
            orders.wait_for_event(running, "notice", task="load")
        ended = running.wait()
    ended.succeeded()
    assert any("is tried again" in str(event) for event in orders.events()), "it was locked out first"
    for table in ("one", "two"):
        assert orders.query(f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(str(ROWS + 1), str(ROWS + 1))]
    assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
    assert ended.summary["rows_read"] == ROWS
    assert orders.leftovers() == []


@pytest.mark.faults
def test_a_run_that_is_killed_twice_is_resumed(orders: PostgresProject) -> None:
    """Some ways have committed slices when it is killed behind the rows, before the switch."""
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}))
    for command in (orders.arguments("--streams", "2"), orders.resume_command()):
        killed = orders.command([sys.executable, "-c", KILLED, *command[3:]])
        assert killed.exit_code not in (0, 1), killed.stderr
    resumed = orders.resume()
    resumed.succeeded()
    found, missed = wanted(orders, FOUND), wanted(orders, MISSED)
    assert (loaded(orders, "found"), loaded(orders, "missed")) == (found, missed)
    assert accounts(resumed) == {
        "found": (ROWS, len(found), len(missed), 0),
        "missed": (ROWS, len(missed), len(found), 0),
    }
    assert orders.leftovers() == []


@pytest.mark.parametrize("behind", ["found", "missed"])
def test_slices_that_one_way_has_committed_and_another_has_not(orders: PostgresProject, behind: str) -> None:
    """They are read again, and sent to the other one alone."""
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}))
    killed = orders.command([sys.executable, "-c", KILLED, *orders.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    # As if its writers had been a moment later: neither their rows nor their slices are committed.
    task = f"load/{behind}"
    tables = orders.query(
        f"SELECT tablename FROM pg_tables WHERE schemaname = 'headrace' AND tablename LIKE '%_{behind}_%'"
    )
    assert tables
    for (table,) in tables:
        orders.execute(f'TRUNCATE headrace."{table}"')
    orders.execute(f"DELETE FROM headrace.commit WHERE task = '{task}'")
    ended = orders.resume()
    ended.succeeded()
    found, missed = wanted(orders, FOUND), wanted(orders, MISSED)
    assert (loaded(orders, "found"), loaded(orders, "missed")) == (found, missed)
    assert accounts(ended) == {
        "found": (ROWS, len(found), len(missed), 0),
        "missed": (ROWS, len(missed), len(found), 0),
    }
    assert ended.summary["rows_read"] == ROWS
    assert orders.leftovers() == []


STRICT = "CREATE TABLE strict (id bigint{}, customer int, amount numeric(9,2), note varchar(30){})"


def test_an_error_of_the_second_table_is_told_as_one_of_it(orders: PostgresProject) -> None:
    """While the rows of both come. The first one has no constraint."""
    orders.execute(STRICT.format("", ", CHECK (id <> 4711)"))
    orders.package(package(destinations={"archive": "orders", "strict": "orders"}))
    ended = orders.run("--streams", "1")
    assert_snapshot("several_check_of_the_second", orders.stable(ended.error))


def test_too_few_sessions_for_all_tables_are_told_before_a_row_moves(orders: PostgresProject) -> None:
    """Each table alone would have enough of them."""
    orders.package(package(destinations={"one": "orders", "two": "orders", "three": "orders"}))
    orders.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 5")
    try:
        ended = orders.run("--streams", "2")
        assert (ended.exit_code, ended.summary["error"]["retryable"]) == (1, True)
        assert_snapshot("several_too_few_sessions", orders.stable(ended.error))
    finally:
        orders.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
    orders.run("--streams", "2").succeeded()
    assert orders.leftovers() == []


def test_a_table_that_the_server_divides_is_told_by_its_own_name(orders: PostgresProject) -> None:
    orders.execute(
        STRICT.format("", "") + " PARTITION BY RANGE ((id + 1))",
        "CREATE TABLE strict_1 PARTITION OF strict FOR VALUES FROM (0) TO (5000)",
    )
    orders.package(package(destinations={"archive": "orders", "strict": "orders"}))
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot("several_no_partition_of_the_second", orders.stable(ended.error))


@pytest.mark.parametrize("old", [False, True])
def test_a_row_that_is_appended_twice_is_found(orders: PostgresProject, old: bool) -> None:
    """It meets the table in the switch, behind the rows of the first one."""
    orders.execute(STRICT.format("", "").replace("strict", "archive"), STRICT.format(" PRIMARY KEY", ""))
    if old:
        orders.execute("INSERT INTO strict VALUES (4711)")
    else:
        with (orders.inbox / "orders.2").open("a") as file:
            file.write("4711|1|1.00|again\n")
    text = package(destinations={"archive": "orders", "strict": "orders"})
    orders.package(text.replace("target: replace", "target: append, load: single"))
    ended = orders.run("--streams", "1")
    assert_snapshot(f"several_appended_twice_{'old' if old else 'new'}", orders.stable(ended.error))
    ends = [event for event in orders.events() if event["event"] == "task_finished"]
    errors = [event["error"] for event in ends if event["kind"] == "data_flow"]
    assert errors[0]["what"].startswith("nothing of task load/archive became visible")
    assert errors[1]["at"]["row"] == (2712 if old else 4001), errors
    assert orders.leftovers() == []


GATE = """CREATE FUNCTION gate(bigint) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_lock_shared(4711), pg_advisory_unlock_shared(4711); RETURN true; END $$"""


@contextmanager
def gated(orders: PostgresProject) -> Iterator[None]:
    """The second table takes no row meanwhile, while the first one commits what it gets."""
    orders.execute(GATE, STRICT.format("", ", CHECK (gate(id))"))
    orders.package(package(destinations={"archive": "orders", "strict": "orders"}))
    with orders.target.session("DO $$ BEGIN PERFORM pg_advisory_lock(4711); END $$"):
        yield


def committed(orders: PostgresProject, table: str) -> bool:
    (row,) = orders.query(f"SELECT count(*) FROM headrace.commit WHERE task = 'load/{table}'")
    return row != ("0",)


@contextmanager
def one_way_ahead(orders: PostgresProject, *arguments: str) -> Iterator[Running]:
    """A run in which a way has committed a slice that the other one has not."""
    with gated(orders), orders.started(orders.arguments("--streams", "1", *arguments)) as running:
        orders.wait_for_event(running, "task_started")
        while running.poll() is None and not committed(orders, "archive"):
            time.sleep(0.01)
        assert not committed(orders, "strict"), running.stderr
        yield running


def test_a_slice_that_one_way_has_committed_is_sent_to_the_other_alone(orders: PostgresProject) -> None:
    with one_way_ahead(orders) as running:
        running.signal(signal.SIGKILL)
        running.wait()
    ended = orders.resume()
    ended.succeeded()
    rows = wanted(orders, "FROM orders")
    assert (loaded(orders, "archive"), loaded(orders, "strict")) == (rows, rows)
    assert accounts(ended) == {"archive": (ROWS, ROWS, 0, 0), "strict": (ROWS, ROWS, 0, 0)}
    assert (ended.summary["rows_read"], orders.leftovers()) == (ROWS, [])


def test_a_timeout_undoes_all_ways(orders: PostgresProject) -> None:
    with gated(orders):
        path = orders.folder / "package.yaml"
        orders.package(path.read_text().replace("  load:\n", "  load:\n    timeout_seconds: 1\n"))
        ended = orders.run("--streams", "1")
    assert ended.exit_code != 0
    assert "timeout_seconds" in ended.error or "longer" in ended.error, ended.error
    assert loaded(orders, "strict") == []
    assert "public.archive" not in orders.tables()


def test_a_char_that_is_null_is_a_reject_of_the_way_that_has_none(orders: PostgresProject) -> None:
    columns = "(id bigint, customer int, amount numeric(9,2), note char(30){})"
    orders.execute(f"CREATE TABLE archive {columns.format('')}", f"CREATE TABLE strict {columns.format(' NOT NULL')}")
    text = package(destinations={"archive": "orders", "strict": "orders"})
    orders.package(text.replace("name: note, type: string", 'name: note, type: "char(30)"'))
    ended = orders.run("--set", "limit=10000")
    bad = len(range(0, ROWS, 23))
    assert accounts(ended) == {"archive": (ROWS, ROWS, 0, 0), "strict": (ROWS, ROWS - bad, 0, bad)}
    same = "SELECT count(*) FROM (TABLE strict EXCEPT ALL TABLE archive) AS other"
    assert orders.query(same) == [("0",)]
