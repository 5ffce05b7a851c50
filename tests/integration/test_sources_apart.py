"""Several sources in one data flow whose rows never come together: each table has the rows of its own, all become
visible at once; rejects, kills, constraints, `verify`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.apart_scenes import (
    BAD_CUSTOMER,
    BAD_ORDERS,
    CUSTOMERS,
    ORDERS,
    PACKAGE,
    WANTED,
    archived,
    balanced,
    wanted,
    write_files,
)
from tests.integration.connections_scenes import stopped
from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.tables import tables_of
from tests.integration.test_several_joined import killed_before_the_switch


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def rejects_of(project: Project, run: str) -> list[dict[str, Any]]:
    (told,) = project.folder.glob(f"runs/{run}/rejects/*.jsonl")
    return [json.loads(line) for line in told.read_text().splitlines()]


def notes_of(ended: Ended) -> list[str]:
    return [note for table in ended.summary["tables"] for note in table["notes"]]


def test_each_table_gets_the_rows_of_its_source(sales: Project) -> None:
    rows, accounts = wanted(sales), []
    assert all(len(own) > 50 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        tables = balanced(ended)
        assert tables_of(sales, WANTED) == rows, streams
        counts = ("lines", "rows_skipped", "rows_read", "rows_filtered", "rows_loaded", "values_ignored", "ignored")
        accounts.append({name: [table[own] for own in counts] for name, table in tables.items()})
        assert ended.summary["rows_read"] == ORDERS + CUSTOMERS - CUSTOMERS % 3
        assert tables["small"]["ignored"] == {"customers.sales": {"nulls": 50, "cut": 0}}
        assert not tables["orders"]["values_ignored"]
        assert ended.summary["bytes_read"] == tables["orders"]["bytes_read"] + tables["big"]["bytes_read"]
        assert sum("customers.sales" in note and "50 values" in note for note in notes_of(ended)) == 1
        started = [own for own in sales.events() if own["event"] == "task_started"]
        read = [(own["files"], own["bytes_total"] > 0) for own in started]
        assert read == [(4, True), (1, False), (3, False), (3, False), (1, False)]
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []


def test_a_row_is_rejected_where_it_is_missing(sales: Project) -> None:
    """Under its own file, row and byte; rejects of all sources have one limit."""
    rows = wanted(sales)
    places = {}
    for name, bad in (("orders.1", BAD_ORDERS), ("customers.2", BAD_CUSTOMER)):
        path = sales.inbox / name
        places[name] = (path.read_text().count("\n"), path.stat().st_size)
        path.write_text(path.read_text() + bad)
    ended = sales.run(limit=2)
    assert ended.exit_code == 1
    assert "3 rows" in ended.error or "more than" in ended.error, ended.error
    assert sales.tables() == []
    ended = sales.run(limit=3)
    tables = balanced(ended)
    assert tables_of(sales, WANTED) == rows | {
        "orders": sorted([*rows["orders"], ("90002", "S1", "99999.00", "2024-01-01")])
    }
    counts = {"open": 2, "strays": 1, "orders": 1, "big": 1, "small": 1}
    assert {name: table["rows_rejected"] for name, table in tables.items()} == counts
    assert ended.summary["rows_rejected"] == 3
    found = {
        (own["file"].rpartition("/")[2], own["row"], own["row_byte"], *own["destinations"])
        for own in rejects_of(sales, str(ended.summary["run_id"]))
    }
    (first, begin), (last, end) = places["orders.1"], places["customers.2"]
    assert found == {
        ("orders.1", first + 1, begin, "open", "strays", "orders"),
        ("orders.1", first + 2, begin + len(BAD_ORDERS.partition("\n")[0]) + 1, "open"),
        ("customers.2", last + 1, end, "big", "small"),
    }


def test_killed_before_the_switch(warehouse: PostgresProject) -> None:
    write_files(warehouse)
    rows = wanted(warehouse)
    killed_before_the_switch(warehouse, "--streams", "2")
    ended = warehouse.resume()
    balanced(ended)
    assert tables_of(warehouse, WANTED) == rows
    assert warehouse.leftovers() == []


@pytest.mark.faults
@pytest.mark.parametrize(
    "archive", [{"orders", "open"}, {"big", "small"}, {"orders", "small"}], ids=["orders", "customers", "both"]
)
def test_what_is_left_is_loaded_once_more(warehouse: PostgresProject, archive: set[str]) -> None:
    """Killed between the commits of two places: with all tables of one source left, and some of both."""
    write_files(warehouse)
    warehouse.package(archived(archive))
    rows = wanted(warehouse)
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    balanced(warehouse.resume())
    assert tables_of(warehouse, WANTED, archive) == rows


@pytest.mark.faults
@pytest.mark.parametrize("archive", [{"orders", "open", "strays"}, {"big", "small"}], ids=["orders", "customers"])
def test_what_one_place_has_staged_is_not_read_again(warehouse: PostgresProject, archive: set[str]) -> None:
    """Killed before the first commit: PostgreSQL has all rows of one source out of sight, DuckDB none of the other."""
    write_files(warehouse)
    warehouse.package(archived(archive))
    rows = wanted(warehouse)
    killed = warehouse.command([sys.executable, "-c", stopped("before", 0), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    balanced(warehouse.resume())
    assert tables_of(warehouse, WANTED, archive) == rows


def test_a_row_that_breaks_a_constraint_is_named(sales: Project) -> None:
    """Of the second source, by its own file and row, although other values were ignored."""
    sales.package("".join(line for line in PACKAGE.splitlines(True) if ", from: " not in line))
    sales.execute("CREATE TABLE big (code INTEGER UNIQUE, name TEXT, sales INTEGER)")
    path = sales.inbox / "customers.2"
    path.write_text(path.read_text() + "1901|again|1500\n1901|again|1501\n")
    ended = sales.run(target="append")
    error = ended.summary["error"]
    assert error["at"], ended.stderr
    assert error["at"]["file"].endswith("customers.2"), error
    assert error["at"]["row"] == path.read_text().count("\n"), error
    assert len(sales.tables()) == 1


def test_each_table_is_verified_with_its_source(sales: Project) -> None:
    sales.run().succeeded()
    verified = sales.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last", "--json"])
    told = {own["table"]: (own["status"], own["reason"]) for own in json.loads(verified.stdout)["tables"]}
    assert told["orders"] == told["big"] == told["small"] == ("equal", None), verified.stdout + verified.stderr
    assert told["open"][0] == told["strays"][0] == "not_comparable"
