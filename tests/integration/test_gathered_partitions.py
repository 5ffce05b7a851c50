"""The result of a query over all rows in divided tables of DuckDB and PostgreSQL: the partitions of each row, and all
or nothing of them.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, expected, package, write_files
from tests.integration.slow_commit import kill_at_the_switch, uncommit
from tests.integration.test_gathered_destinations import shown, to_tables

SUMS = "SELECT quantity, day, count(*) AS n, sum(id)::BIGINT AS ids FROM orders WHERE day IS NOT NULL GROUP BY ALL"
CLAUSES = {
    "hash": "{hash: {column: n, parts: 3}}",
    "list": "{list: {column: quantity, values: {few: [-1, 0, 1], many: [2, 3, 4, 5], none: [null]}}}",
    "bounds": "{range: {column: day, bounds: [2024-04-01, 2024-08-01]}}",
    "periods": "{range: {column: day, every: 3 months, from: 2024-01-01, to: 2025-01-01}}",
}
BEHIND = "SELECT quantity, day, n, ids FROM q1 WHERE ids > 10"


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def destination(project: Project, clause: str, target: str = "replace") -> str:
    """DuckDB has partitions as tables of a view."""
    load = "staged" if isinstance(project, PostgresProject) else "view"
    return f"table: out, target: {target}, load: {load}, partition: {clause}"


def loaded(project: Project, table: str = "out") -> list[tuple[Any, ...]]:
    return shown(project.query(f"SELECT quantity, day, n, ids FROM {table}"))


def wanted(project: Project, *queries: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return shown(connection.sql(expected(project, *queries)).fetchall())


def parts(project: Project) -> list[str]:
    return sorted(name for name in project.tables() if name.removeprefix("main.").startswith("out_"))


@pytest.mark.parametrize("clause", CLAUSES)
def test_each_partition_has_its_rows(orders: Project, clause: str) -> None:
    orders.package(package(SUMS, BEHIND, destination=destination(orders, CLAUSES[clause])))
    rows = wanted(orders, SUMS, BEHIND)
    for streams in ("1", "16"):  # the second one takes the place of the first
        (table,) = orders.run("--streams", streams).succeeded()["tables"]
        assert loaded(orders) == rows
        assert sum(part["rows"] for part in table["partitions"]) in (0, len(rows))
        gathered = table["gathered"]
        assert gathered["rows_out"] == table["rows_loaded"] + gathered["filtered_behind"]
    assert orders.leftovers() == []


def test_a_row_of_no_partition_fails_with_its_values(orders: Project) -> None:
    clause = "{range: {column: day, every: 1 month, from: 2024-01-01, to: 2024-06-01}}"
    orders.package(package(SUMS, destination=destination(orders, clause), limit=1000))
    ended = orders.run()
    told = " ".join(ended.stderr.split("error: ")[-1].split())
    assert ended.exit_code == 1 and "partition" in told and "day 2024-" in told, ended.stderr
    assert orders.tables() == []
    assert orders.leftovers() == []


def test_rows_are_appended_to_partitions_that_exist(orders: Project) -> None:
    orders.package(package(SUMS, destination=destination(orders, CLAUSES["bounds"], "append")))
    for times in (1, 2):
        orders.run().succeeded()
        assert loaded(orders) == sorted(wanted(orders, SUMS) * times, key=repr)


def test_a_table_that_is_divided_already_is_filled_by_its_server(warehouse: PostgresProject) -> None:
    write_files(warehouse)
    warehouse.execute(
        "CREATE TABLE out (quantity INTEGER, day DATE, n BIGINT, ids BIGINT) PARTITION BY HASH (quantity)",
        *(f"CREATE TABLE out_{n} PARTITION OF out FOR VALUES WITH (MODULUS 2, REMAINDER {n})" for n in range(2)),
    )
    warehouse.package(package(SUMS, destination="table: out, target: append"))
    warehouse.run().succeeded()
    assert loaded(warehouse) == wanted(warehouse, SUMS)


@pytest.fixture
def stored(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


@pytest.mark.faults
@pytest.mark.parametrize("target", ["replace", "append"])
def test_a_kill_between_the_commits_of_two_partitions_begins_anew(stored: PostgresProject, target: str) -> None:
    stored.package(package(SUMS, destination=destination(stored, CLAUSES["bounds"], target)))
    stored.run().succeeded()
    rows = wanted(stored, SUMS)
    kill_at_the_switch(stored, "out")
    uncommit(stored, "load", "2")
    resumed = stored.resume()
    (table,) = resumed.succeeded()["tables"]
    assert loaded(stored) == sorted(rows * (1 if target == "replace" else 2), key=repr)
    assert (table["rows_loaded"], table["rows_read"], table["bytes_read"] > 0) == (len(rows), ROWS, True)
    assert stored.leftovers() == []


def test_a_kill_between_partitions_of_two_tables_begins_anew(stored: PostgresProject) -> None:
    """One table is complete, of the other one a part."""
    text = package(SUMS, destination=destination(stored, CLAUSES["bounds"], "append"))
    settings = f"target: append, partition: {CLAUSES['bounds']}"
    stored.package(to_tables(text, {"one": "q1", "two": "q1"}, settings))
    stored.run().succeeded()
    rows = wanted(stored, SUMS)
    kill_at_the_switch(stored, "one")
    uncommit(stored, "load/two", "2")
    stored.resume().succeeded()
    for table in ("one", "two"):
        assert loaded(stored, table) == sorted(rows * 2, key=repr)
    assert stored.leftovers() == []
