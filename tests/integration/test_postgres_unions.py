"""Unions on the way into PostgreSQL: the rows of DuckDB's own union of the files, however they are loaded, divided,
committed, killed and resumed; rejects in a table.
"""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.integration.union_scenes import ROWS, package, sources, spoil, united, write_files

COLUMNS = "id, amount, day, note, channel"
# Kills, each of which is resumed.
KILLS = int(os.environ.get("KILLS", "3"))
LATER = "later: {input: united, connection: warehouse, table: later, target: replace}"


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def loaded(orders: PostgresProject, table: str = "orders") -> list[tuple[str | None, ...]]:
    return as_text(orders.query(f"SELECT {COLUMNS} FROM {table}"))


def wanted(orders: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(united(orders, COLUMNS))


@pytest.mark.parametrize(
    "clauses",
    [
        "load: view",
        "commit: {rows: 500}",
        "load: staged, partition: {hash: {column: id, parts: 3}}",
        "load: staged, commit: {rows: 900}, partition: {hash: {column: id, parts: 3}}",
        "load: staged, partition: {list: {column: channel, values: {web: [web], none: [null]}}, outside: default}",
        "load: staged, partition: {range: {column: day, every: 1 month, from: 2024-01-01, to: 2025-01-01}}",
    ],
)
def test_however_the_rows_are_loaded(orders: PostgresProject, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    orders.package(package(more=clauses))
    for streams in ("16", "1"):
        ended = orders.run(streams=streams)
        assert {name: own[2] for name, own in sources(ended).items()} == ROWS
        assert loaded(orders) == wanted(orders)
        assert orders.leftovers() == []


def test_rows_are_appended_as_the_table_has_them(orders: PostgresProject) -> None:
    orders.execute("CREATE TABLE orders (channel varchar(8), id bigint, day date, amount numeric(9,2), note text)")
    orders.package(package(more="load: single").replace("target: replace", "target: append"))
    orders.run().succeeded()
    assert loaded(orders) == wanted(orders)


def test_several_destinations(orders: PostgresProject) -> None:
    first = "out: {input: united, connection: warehouse, table: orders, target: replace}"
    orders.package(package(destinations=f"{first}\n        {LATER}"))
    orders.run().succeeded()
    assert loaded(orders) == loaded(orders, "later") == wanted(orders)


def test_rejects_of_all_sources_go_into_the_table_of_rejects(orders: PostgresProject) -> None:
    spoil(orders)
    orders.package(package(rejects=", table: bad_orders"))
    ended = orders.run(limit=3)
    assert [own[3] for own in sources(ended).values()] == [1, 1, 1]
    names = "SELECT regexp_replace(file, '.*/', ''), column_name FROM bad_orders ORDER BY 1"
    assert orders.query(names) == [
        ("new.9", "Day"),
        ("old.1.csv", "amount"),
        ("placed.txt", "amount"),
    ]


def test_a_row_that_breaks_a_key_is_named(orders: PostgresProject) -> None:
    orders.execute(
        "CREATE TABLE orders (id bigint UNIQUE, amount numeric(9,2), day date, note text, channel varchar(8))"
    )
    with (orders.inbox / "placed.txt").open("a") as file:
        file.write("2024-01-01       5      1.00\n")
    orders.package(package())
    error = orders.stable(orders.run().error)
    assert "placed.txt, row 1001" in error and "first in old.0.csv, row 7" in error, error


def slow(orders: PostgresProject) -> None:
    """Each source has more text, so that there is a moment to kill the run."""
    for path in list(orders.inbox.iterdir()):
        if path.name.startswith("placed"):
            path.write_text(path.read_text() * 40)


@pytest.mark.faults
@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("clauses", ["commit: {rows: 500}", "load: staged, partition: {hash: {column: id, parts: 2}}"])
def test_a_run_that_is_killed_at_any_moment_goes_on(orders: PostgresProject, clauses: str, kill: int) -> None:
    slow(orders)
    spoil(orders)
    orders.package(package(more=clauses))
    with orders.started(orders.arguments("--streams", "3", limit=5)) as running:
        orders.wait_for_event(running, "task_started")
        time.sleep(random.Random(kill).random() * 0.3)
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before, or its run had not begun
        assert orders.ledger() in (["success"], [])
        if not orders.ledger():
            orders.run(limit=5).succeeded()
    else:
        assert [own[3] for own in sources(resumed).values()] == [1, 1, 1]
    rows = ROWS["old"] + ROWS["new"] + 40 * ROWS["placed"] + 1
    assert orders.query("SELECT count(*), count(note), count(channel) FROM orders") == [
        (str(rows), str(ROWS["old"]), orders.query("SELECT count(*) FROM orders WHERE channel = 'web'")[0][0])
    ]
    assert orders.leftovers() == []


def test_a_run_goes_on_behind_the_slices_that_are_committed(orders: PostgresProject) -> None:
    """One source has a row that fails the run, when slices of another one are committed."""
    orders.execute(
        "CREATE TABLE orders (id bigint CONSTRAINT late CHECK (id <> 111499), amount numeric(9,2), day date, "
        "note text, channel varchar(8))"
    )
    orders.package(package(more="load: single, commit: {rows: 300}").replace("target: replace", "target: append"))
    failed = orders.run("--streams", "1")
    assert failed.exit_code == 1
    assert "new.1.gz, row 1501" in orders.stable(failed.error)
    committed = int(str(orders.query("SELECT count(*) FROM orders")[0][0]))
    assert 0 < committed < sum(ROWS.values())
    orders.execute("ALTER TABLE orders DROP CONSTRAINT late")
    resumed = orders.resume()
    assert {name: own[2] for name, own in sources(resumed).items()} == ROWS
    assert loaded(orders) == wanted(orders)
    assert any("were committed before" in note for note in resumed.summary["tables"][0]["notes"])
