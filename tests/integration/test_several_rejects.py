"""A table of rejects beside several destinations: each reject of the data flow once, with all tables or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.several_scenes import accounts, package, write_files
from tests.integration.test_postgres_several_destinations import KILLED as KILLED_BEFORE_THE_SWITCH

ROWS = 600
# `strict` and `noted` refuse some rows each, a few of them both; one line nobody can read.
CREATE = (
    "CREATE TABLE strict (id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR(30))",
    "CREATE TABLE noted (id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR(30) NOT NULL)",
)
WITHOUT_CUSTOMER, WITHOUT_NOTE = set(range(0, ROWS, 13)), set(range(0, ROWS, 23))
REJECTS = 1 + len(WITHOUT_CUSTOMER | WITHOUT_NOTE)
ACCOUNTS = (
    'SELECT run_id, task, count(*), count(DISTINCT "number"), max("number") FROM bad_orders '
    "GROUP BY run_id, task ORDER BY run_id"
)
# The command line, with a process that kills itself behind the rejects, in front of the commit of all tables.
KILLED = """
import os, signal
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.postgres.group import PostgresGroup

def commit(self, result):
    os.kill(os.getpid(), signal.SIGKILL)

DuckdbGroup.commit = PostgresGroup.commit = commit

from headrace.cli import main
main()
"""


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    """In either place: the package, its files, and the two tables that refuse rows."""
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_package(project)
    write_files(project, ROWS)
    (project.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    project.execute(*CREATE)
    return project


def write_package(project: Project, target: str = "replace", limit: int = 1000, table: str = "bad_orders") -> None:
    text = package(destinations={"archive": "orders", "strict": "orders", "noted": "orders"})
    text = text.replace('{limit: "${limit}"}', f"{{limit: {limit}, table: {table}}}")
    text = text.replace("name: note, type: string", 'name: note, type: "varchar(30)"')
    project.package(text.replace("target: replace", f"target: {target}"))


def stored(project: Project) -> list[tuple[str, ...]]:
    """The accounts of the table, of each run; nothing if there is none."""
    if not any(name.endswith(".bad_orders") for name in project.tables()):
        return []
    return [tuple(map(str, row)) for row in project.query(ACCOUNTS)]


def once(*ended: Ended) -> list[tuple[str, ...]]:
    runs = sorted(str(own.summary["run_id"]) for own in ended)
    return [(run_id, "load", str(REJECTS), str(REJECTS), str(REJECTS)) for run_id in runs]


def counts(project: Project) -> list[int]:
    return [int(project.query(f"SELECT count(*) FROM {name}")[0][0]) for name in ("archive", "strict", "noted")]


LOADED = [ROWS, ROWS - len(WITHOUT_CUSTOMER), ROWS - len(WITHOUT_NOTE)]


def test_each_reject_of_the_flow_is_stored_once(orders: Project) -> None:
    first = orders.run("--streams", "3")
    assert stored(orders) == once(first)
    assert {name: own[3] for name, own in accounts(first).items()} == {
        "archive": 1,
        "strict": 1 + len(WITHOUT_CUSTOMER),
        "noted": 1 + len(WITHOUT_NOTE),
    }
    assert (first.summary["rows_rejected"], counts(orders)) == (REJECTS, LOADED)
    # What the table says of each is what the run folder has.
    lines = next(Path(first.summary["run_folder"]).glob("rejects/*.jsonl")).read_text().splitlines()
    rejects = [json.loads(line) for line in lines]
    names = ("number", "row", "code", "message", "row_byte")
    found = orders.query('SELECT "number", "row", code, message, row_byte FROM bad_orders ORDER BY "number"')
    assert [tuple(map(str, row)) for row in found] == [tuple(str(reject[name]) for name in names) for reject in rejects]
    tables = [table["rejects"].get("table") for table in first.summary["tables"]]
    assert tables == ["warehouse.bad_orders", None, None]
    # A second run replaces the rows of the tables, and adds its rejects.
    second = orders.run("--streams", "1")
    assert (stored(orders), counts(orders)) == (once(first, second), LOADED)


def test_rows_that_are_appended(orders: Project) -> None:
    write_package(orders, "append")
    first, second = orders.run(), orders.run()
    assert (stored(orders), counts(orders)) == (once(first, second), [2 * own for own in LOADED])


def test_too_many_rejects_store_none(orders: Project) -> None:
    first = orders.run()
    write_package(orders, "append", limit=REJECTS - 1)
    assert orders.run().exit_code == 1
    assert (stored(orders), counts(orders)) == (once(first), LOADED)


@pytest.mark.faults
def test_killed_when_they_are_stored(orders: Project) -> None:
    killed = orders.command([sys.executable, "-c", KILLED, *orders.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    assert stored(orders) == []
    resumed = orders.resume()
    resumed.succeeded()
    assert (stored(orders), counts(orders)) == (once(resumed), LOADED)
    assert resumed.summary["rows_rejected"] == REJECTS


def test_rejects_that_are_not_taken_undo_all_tables(orders: Project) -> None:
    write_package(orders, "append")
    first = orders.run()
    before = once(first)
    if isinstance(orders, PostgresProject):
        orders.execute("ALTER TABLE bad_orders ADD CHECK (number < 0) NOT VALID")
    else:  # which adds no constraint to a table
        types = orders.query("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'bad_orders'")
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types)
        orders.execute("DROP TABLE bad_orders", f'CREATE TABLE bad_orders ({columns}, CHECK ("number" < 0))')
        before = []
    failed = orders.run()
    assert failed.exit_code == 1
    assert "storing rejects in table warehouse.bad_orders" in " ".join(failed.error.split())
    assert [table["status"] for table in failed.summary["tables"]] == ["failed"] * 3
    assert (stored(orders), counts(orders)) == (before, LOADED)


def test_the_table_of_another_destination(orders: Project) -> None:
    write_package(orders, table="noted")
    error = " ".join(orders.run().error.split())
    assert "rejects of task `load` cannot be stored in table warehouse.noted: the run loads it, too" in error


def test_a_way_that_had_committed_its_slices(warehouse: PostgresProject) -> None:
    """The last attempt stores the rejects of all ways and all attempts."""
    write_package(warehouse)
    write_files(warehouse, ROWS)
    (warehouse.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    warehouse.execute(*CREATE)
    killed = warehouse.command([sys.executable, "-c", KILLED_BEFORE_THE_SWITCH, *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    # As if the writers of the first table had been a moment later.
    hidden = "SELECT tablename FROM pg_tables WHERE schemaname = 'headrace' AND tablename LIKE '%archive%'"
    for (table,) in warehouse.query(hidden):
        warehouse.execute(f'TRUNCATE headrace."{table}"')
    warehouse.execute("DELETE FROM headrace.commit WHERE task = 'load/archive'")
    resumed = warehouse.resume()
    resumed.succeeded()
    assert (stored(warehouse), counts(warehouse)) == (once(resumed), LOADED)
    assert warehouse.leftovers() == []
