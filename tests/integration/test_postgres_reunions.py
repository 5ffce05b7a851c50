"""Unions of rows that have gone different ways, into PostgreSQL: however they are loaded, killed and resumed."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.reunion_scenes import LABELLED, LABELS
from tests.integration.several_scenes import ROWS, accounts, expected, package, write_files
from tests.snapshots import assert_snapshot

COLUMNS = "id, customer, amount, note, label"
# Kills, each of which is resumed.
KILLS = int(os.environ.get("KILLS", "3"))


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def loaded(orders: PostgresProject, table: str = "sales") -> list[tuple[str | None, ...]]:
    return orders.query(f"SELECT {COLUMNS} FROM {table} ORDER BY id")


def wanted(orders: PostgresProject) -> list[tuple[str | None, ...]]:
    rows = sorted(expected(orders, f"SELECT {COLUMNS} FROM ({LABELS})"))
    return [tuple(None if value is None else str(value) for value in row) for row in rows]


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        ", load: view",
        ", commit: {rows: 700}",
        ", load: staged, partition: {hash: {column: id, parts: 3}}",
        ", load: staged, partition: {range: {column: id, every: 2000}}",
    ],
)
def test_however_the_rows_are_loaded(orders: PostgresProject, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    orders.package(package(LABELLED, {"sales": "labelled"}, clauses))
    for streams in ("16", "1"):
        ended = orders.run("--streams", streams)
        rows = wanted(orders)
        assert accounts(ended) == {"sales": (ROWS, len(rows), ROWS - len(rows), 0)}
        assert loaded(orders) == rows
        assert orders.leftovers() == []


def test_rows_of_two_ways_come_in_the_order_of_the_file(orders: PostgresProject) -> None:
    """Seen here, because DuckDB's threads store batches in any order."""
    orders.package(package(LABELLED, {"sales": "labelled"}))
    orders.run("--streams", "1").succeeded()
    ids = [int(row[0] or 0) for row in orders.query("SELECT id FROM sales ORDER BY ctid")]
    assert ids == [int(row[0] or 0) for row in wanted(orders)], "both files in one COPY"


def test_two_tables_get_their_rows(orders: PostgresProject) -> None:
    orders.package(package(LABELLED, {"sales": "labelled", "found": "keyed"}))
    orders.run("--streams", "4").succeeded()
    assert loaded(orders) == wanted(orders)
    assert loaded(orders, "found") == [row for row in wanted(orders) if row[-1] != "unknown"]


@pytest.mark.faults
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_run_is_resumed(orders: PostgresProject, kill: int) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}, ", commit: {rows: 500}"))
    with orders.started(orders.arguments("--streams", "3")) as running:
        orders.wait_for_event(running, "task_started")
        time.sleep(random.Random(kill).random() / 2)
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    assert loaded(orders) == wanted(orders)
    assert orders.leftovers() == []


def test_a_row_that_is_appended_twice_is_found(orders: PostgresProject) -> None:
    orders.execute("CREATE TABLE sales (id bigint UNIQUE, label text)")
    (orders.inbox / "orders.1").write_text("1|1|5.00|\n2|3|7.00|\n3|3|0.50|\n4|1|5.00|\n2|2|9.00|\n")
    (orders.inbox / "orders.2").unlink()
    text = package(LABELLED, {"sales": "labelled"}, ", load: single, columns: {id: id, label: label}")
    orders.package(text.replace("target: replace", "target: append"))
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot("postgres_reunion_constraint", orders.stable(ended.error))
