"""Queries over all rows of a data flow into PostgreSQL: the rows of DuckDB's own query, also when resumed."""

from __future__ import annotations

import signal

import duckdb
import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, expected, package, write_files

SQL = (
    "SELECT quantity, paid, count(*) AS n, sum(price) AS total, max(note) AS last, min(day) AS first FROM orders "
    "GROUP BY quantity, paid"
)
NAMES = "quantity, paid, n, total, last, first"
LABELLED = "SELECT *, coalesce(quantity, -1) * 2 AS twice FROM q1 WHERE n > 1"
WORKING = SQL.replace("FROM orders", "FROM orders, range(4000) AS b(y)")


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def computed(project: Project, *queries: str, columns: str = NAMES) -> list[tuple[str | None, ...]]:
    with duckdb.connect() as connection:
        rows = f"SELECT {columns} FROM ({expected(project, *queries)}) ORDER BY quantity NULLS LAST, paid NULLS LAST"
        return connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({rows})").fetchall()


def loaded(orders: PostgresProject, columns: str = NAMES) -> list[tuple[str | None, ...]]:
    shown = columns.replace("paid", "paid::text")
    return orders.query(f"SELECT {shown} FROM out ORDER BY quantity NULLS LAST, out.paid NULLS LAST")


@pytest.mark.parametrize("streams", ["1", "16"])
def test_the_table_equals_the_query_of_duckdb(orders: PostgresProject, streams: str) -> None:
    orders.package(package(SQL, LABELLED))
    for _ in range(2):
        (table,) = orders.run("--streams", streams).succeeded()["tables"]
        rows = computed(orders, SQL, LABELLED, columns=f"{NAMES}, twice")
        assert (table["rows_read"], table["rows_loaded"]) == (ROWS, len(rows))
        assert loaded(orders, f"{NAMES}, twice") == rows
        assert orders.leftovers() == []


def test_a_table_that_is_there_gets_rows_that_fit(orders: PostgresProject) -> None:
    orders.execute(
        "CREATE TABLE out (quantity int, paid bool, n bigint, total numeric(38,2), last varchar(40), first date)"
    )
    orders.package(package(SQL, destination="table: out, target: append"))
    orders.run().succeeded()
    orders.run().succeeded()
    rows = computed(orders, SQL)
    assert sorted(map(repr, loaded(orders))) == sorted(map(repr, [*rows, *rows]))
    orders.execute("DROP TABLE out", "CREATE TABLE out (quantity int, last varchar(10))")
    columns = "columns: {quantity: quantity, last: last}"
    orders.package(package(SQL, destination=f"table: out, target: append, {columns}", limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    assert "HR403" in ended.stderr
    assert orders.query("SELECT count(*) FROM out") == [("0",)]


@pytest.mark.parametrize("moment", ["task_started", "progress"])
def test_a_killed_run_is_resumed(orders: PostgresProject, moment: str) -> None:
    orders.package(package(WORKING, destination="table: out, target: append"))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, moment)
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    assert loaded(orders) == computed(orders, WORKING)
    assert orders.leftovers() == []


def test_a_run_that_the_table_has_refused_is_resumed(orders: PostgresProject) -> None:
    """A row that the table refuses fails the run; the resumed one loads it once."""
    orders.execute(f"CREATE TABLE out ({', '.join(f'{name} text' for name in ('quantity', 'paid'))}, n bigint UNIQUE)")
    columns = "columns: {n: n}"
    orders.package(
        package(
            "SELECT 1::BIGINT AS n FROM orders",
            "SELECT count(*) AS n FROM q1",
            destination=f"table: out, target: append, {columns}",
        )
    )
    orders.run().succeeded()
    ended = orders.run()
    assert ended.exit_code == 1
    orders.execute("DELETE FROM out")
    orders.resume().succeeded()
    assert orders.query("SELECT n FROM out") == [(str(ROWS),)]
