"""What is planned for all destinations of one data flow together: memory, and tables that it makes and looks up."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.driver import Project
from tests.integration.several_scenes import KEYED, PARTED, package, write_files
from tests.snapshots import assert_snapshot

OF_TABLE = """
        found:
          input: orders
          lookup: {connection: warehouse, table: dim, on: {customer: code}, add: [label], no_match: {default: none}}
        priced: {input: found, sql: "SELECT id, label, amount * 2 AS double FROM found"}
"""
WIDE = (
    '        wide: {input: orders, sql: "SELECT id, '
    + ", ".join(f"amount * {n} AS c{n}" for n in range(40))
    + ' FROM orders"}\n'
)
DIM = "CREATE TABLE dim (code INTEGER, label VARCHAR)"


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project, 60)
    return project


def plans(project: Project, *arguments: str) -> dict[str, dict[str, Any]]:
    ended = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json", *arguments])
    assert ended.exit_code == 0, ended.stderr
    return {task["task"]: task for task in json.loads(ended.stdout)["tasks"]}


def memories(project: Project, *arguments: str) -> list[dict[str, Any]]:
    """Of each way; they are those of the flow."""
    return [task["memory"] for task in plans(project, *arguments).values()]


def test_ways_that_pass_one_query_count_its_columns_once(orders: Project) -> None:
    orders.package(package(WIDE, {"all_of_them": "orders", "one": "wide"}))
    first, second = memories(orders, "--connection", "warehouse=null:")
    orders.package(package(WIDE, {"all_of_them": "orders", **dict.fromkeys(("one", "two", "three", "four"), "wide")}))
    more = memories(orders, "--connection", "warehouse=null:")
    assert first == second
    # There are blocks for more consumers, as large as before.
    assert [(own["block_bytes"], own["slab_bytes"]) for own in more] == [
        (first["block_bytes"], first["slab_bytes"])
    ] * 5


def test_memory_is_that_of_all_lookups_and_queries(orders: Project) -> None:
    """Those behind a table that a lookup reads, too: their columns are not known when the package is read."""
    orders.execute(DIM, "INSERT INTO dim VALUES (1, 'one')")
    discarded = KEYED.lstrip("\n").replace("lookup:", "discard: [no_match]\n          lookup:")
    orders.package(package(OF_TABLE + discarded, {"plain": "orders", "big": "priced", "keyed": "keyed"}))
    first, *others = memories(orders)
    assert others == [first, first]
    assert (first["instances"], first["instance_bytes"] > 0, first["lookup_bytes"] > 0) == (2, True, True)
    orders.run().succeeded()
    assert orders.query("SELECT count(*) FROM big") == [(60,)]


def test_rows_that_are_divided_are_held_twice(orders: Project) -> None:
    orders.package(package(destinations={"one": "orders", "two": "orders"}))
    shared = memories(orders, "--connection", "warehouse=null:")[0]
    orders.package(package(KEYED, {"one": "keyed", "two": "keyed.no_match"}))
    keyed = memories(orders, "--connection", "warehouse=null:")[0]
    orders.package(
        package(
            PARTED.replace("split:", "discard: [odd, rest]\n          split:"),
            {"one": "parted.big", "two": "parted.small"},
        )
    )
    parted = memories(orders, "--connection", "warehouse=null:")[0]
    for own in (keyed, parted):
        ratio = (own["slab_bytes"] / own["block_bytes"]) / (shared["slab_bytes"] / shared["block_bytes"])
        assert ratio > 2


@pytest.mark.parametrize("destinations", [("dim", "big"), ("big", "dim")])
def test_what_a_flow_makes_is_not_there_for_its_lookups(orders: Project, destinations: tuple[str, str]) -> None:
    rows = {"dim": "orders", "big": "priced"}
    orders.package(package(OF_TABLE, {name: rows[name] for name in destinations}))
    ended = orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert ended.exit_code == 1
    assert "lookup `found` reads a table that does not exist" in " ".join(ended.stderr.split())
    # One that is there is read as it was before.
    orders.execute(
        "CREATE TABLE dim (code INTEGER, label VARCHAR, id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)"
    )
    orders.execute("INSERT INTO dim (code, label) VALUES (1, 'one')")
    assert not any("a task before" in note for task in plans(orders).values() for note in str(task.get("notes")))
    orders.run().succeeded()
    assert orders.query("SELECT count(*), count(code) FROM dim") == [(60, 0)]
    assert orders.query("SELECT count(*) FROM big WHERE label = 'one'") == [(2,)]


@pytest.mark.parametrize("destinations", [("dim", "big"), ("big", "dim")])
def test_a_lookup_of_a_table_to_which_its_flow_appends(orders: Project, destinations: tuple[str, str]) -> None:
    rows = {"dim": "orders", "big": "priced"}
    orders.execute(
        "CREATE TABLE dim (code INTEGER, label VARCHAR, id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)"
    )
    text = package(OF_TABLE, {name: rows[name] for name in destinations})
    orders.package(text.replace("table: dim, target: replace", "table: dim, target: append"))
    ended = orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert ended.exit_code == 1
    assert_snapshot("several_lookup_of_appended", orders.stable(ended.error))


def test_columns_that_do_not_fit_one_of_the_tables_name_where_they_are_declared(orders: Project) -> None:
    orders.execute(DIM)
    orders.execute("CREATE TABLE one (id DATE, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)")
    orders.execute("CREATE TABLE two (id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR, label DATE)")
    for name, table in (("layout", {"one": "orders", "big": "found"}), ("lookup", {"big": "orders", "two": "found"})):
        orders.package(package(OF_TABLE.partition("        priced")[0], table))
        ended = orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
        assert ended.exit_code == 1
        assert_snapshot(f"several_misfit_of_{name}", orders.stable(ended.error))
