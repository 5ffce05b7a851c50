"""Several queries over all rows in one data flow, into DuckDB and PostgreSQL: each reads what the one before made."""

from __future__ import annotations

import json
import signal
import sys
from itertools import pairwise
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.query_scenes import ROWS, differences, expected, package, write_files

SUMS = "SELECT quantity, paid, count(*) AS n, sum(id)::BIGINT AS ids FROM orders GROUP BY ALL"
RANKED = "SELECT *, row_number() OVER (ORDER BY n DESC, quantity, paid) AS place FROM q1"
CHAINS = {
    "one behind the other": [SUMS, RANKED],
    "before, between and behind": [
        "SELECT *, price * quantity AS amount FROM orders WHERE quantity > 0",
        "SELECT quantity, day, count(*) AS n, sum(amount) AS total FROM q1 GROUP BY ALL",
        "SELECT quantity, day, total FROM q2 WHERE n > 1 AND day IS NOT NULL",
        "SELECT quantity, min(day) AS first, max(total) AS most FROM q3 GROUP BY quantity",
        "SELECT quantity, first, most FROM q4 WHERE quantity <> 3",
    ],
    "three": [
        SUMS,
        "SELECT paid, sum(n)::BIGINT AS n FROM q1 GROUP BY paid",
        "SELECT max(n) AS most FROM q2",
    ],
    "none between": [SUMS, "SELECT quantity FROM q1 WHERE n < 0", "SELECT count(*) AS n FROM q2"],
    "read twice": [SUMS, "SELECT a.n, b.ids FROM q1 AS a JOIN q1 AS b ON a.quantity = b.quantity AND a.paid = b.paid"],
}


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


def accounts(ended: Ended) -> dict[str, Any]:
    """Those of the one table, which balance in front of the first query, between two, and behind the last one."""
    (table,) = ended.succeeded()["tables"]
    found: dict[str, Any] = table
    queries = found["gathered"]["queries"]
    assert found["rows_read"] == queries[0]["rows_in"] + found["rows_filtered"] + found["rows_rejected"]
    for one, other in pairwise(queries):
        assert one["rows_out"] == one["filtered_behind"] + other["rows_in"]
    assert queries[-1]["rows_out"] == queries[-1]["filtered_behind"] + found["rows_loaded"]
    told = [(own["name"], own["rows"], own["matched"]) for own in found["transforms"] if own["kind"] == "gathered"]
    assert told == [(own["name"], own["rows_in"], own["rows_out"]) for own in queries]
    assert [found["gathered"][name] for name in ("rows_in", "rows_out")] == [
        queries[0]["rows_in"],
        queries[-1]["rows_out"],
    ]
    return found


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_table_equals_the_queries_of_duckdb(orders: Project, chain: list[str]) -> None:
    orders.package(package(*chain))
    for streams in ("1", "16"):
        ended = orders.run("--streams", streams)
        only, missing, loaded = differences(orders, expected(orders, *chain))
        assert (only, missing) == (0, 0)
        account = accounts(ended)
        assert (account["rows_loaded"], account["rows_read"], account["lines"]) == (loaded, ROWS, ROWS)
    assert orders.leftovers() == []


@pytest.fixture(params=["duckdb", "postgres"])
def stored(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


LOOKED_UP = "SELECT sk, sum(n)::BIGINT AS n, count(*) AS parts FROM found GROUP BY sk"


def looked_up() -> str:
    """Sums, each with the key of its part, and sums of these."""
    look = (
        "        found: {input: q1, lookup: {connection: inbox, files: parts.csv, layout: parts, on: {quantity: key}, "
        "add: [sk], no_match: {default: -1}}}\n"
    )
    head, _, _ = package(SUMS, transforms=(f"q2: {{input: found, sql: {json.dumps(LOOKED_UP)}}}",)).partition(
        "        q2:"
    )
    return (
        f"{head}{look}        q2: {{input: found, sql: {json.dumps(LOOKED_UP)}}}\n"
        "      destinations:\n        out: {input: q2, connection: warehouse, table: out, target: replace}\n"
    )


def test_a_lookup_stands_between(stored: Project) -> None:
    stored.package(looked_up())
    ended = stored.run("--streams", "4")
    table = accounts(ended)
    assert [own["kind"] for own in table["transforms"]] == ["gathered", "lookup", "gathered"]
    assert [own["lookup"] is None for own in table["transforms"]] == [True, False, True]
    rows = stored.query("SELECT sk, n FROM out ORDER BY sk")
    keys = [number % 7 - 1 if number % 19 else None for number in range(ROWS)]
    wanted = {key: sum(own == key for own in keys) for key in (0, 2, 4)}
    assert [(int(sk), int(n)) for sk, n in rows] == [
        (-1, ROWS - sum(wanted.values())),
        *((10 * key, own) for key, own in wanted.items()),
    ]


@pytest.mark.parametrize("place", [1, 2])
def test_a_query_that_fails_is_named(stored: Project, place: int) -> None:
    chain = [SUMS, RANKED]
    chain[place - 1] = (
        chain[place - 1]
        .replace("count(*) AS n", "max(CAST(error('odd') AS VARCHAR)) AS n")
        .replace("*, row", "CAST(error('odd') AS VARCHAR) AS o, row")
    )
    stored.package(package(*chain))
    ended = stored.run()
    told = " ".join(ended.stderr.split("error: ")[-1].split())
    assert ended.exit_code == 1 and f"the query of transform `q{place}` failed" in told and "odd" in told, ended.stderr
    (table,) = ended.summary["tables"]
    assert [own["kind"] for own in table["transforms"]] == ["gathered", "gathered"]
    assert [own["rows_in"] for own in table["gathered"]["queries"]][1] == 0
    assert stored.tables() == []
    assert stored.leftovers() == []


def test_a_row_between_that_is_refused_fails_with_its_values(stored: Project) -> None:
    stored.package(looked_up().replace("no_match: {default: -1}", "no_match: reject"))
    ended = stored.run()
    told = " ".join(ended.stderr.split("error: ")[-1].split())
    assert ended.exit_code == 1 and "HR602" in told and "quantity" in told, ended.stderr
    assert stored.tables() == []


@pytest.mark.parametrize("slow", [1, 2])
def test_it_is_cancelled_in_either_query(orders: Project, slow: int) -> None:
    sql = "SELECT CAST(sum(hash(a.x, b.y) % 7) AS BIGINT) AS n FROM (SELECT 1 AS x FROM {0}) AS a, range({1}) AS b(y)"
    many = 30_000_000
    first = sql.format("orders", many if slow == 1 else 10)
    orders.package(package(first, sql.format("q1", 300 * many if slow == 2 else 10)))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3, ended.stderr
    assert orders.tables() == []
    assert orders.leftovers() == []


def test_memory_is_bounded_in_both(orders: Project) -> None:
    """Each of two instances has more rows than it may keep."""
    orders.own_processes = True
    many = (
        "SELECT id * 60 + b.y AS id, repeat(note, 10) AS note, row_number() "
        "OVER (ORDER BY hash(note, id, b.y), id, b.y) AS place FROM orders, range(60) AS b(y)"
    )
    again = (
        "SELECT id * 3 + b.y AS id, repeat('many', 50) AS note, row_number() OVER (ORDER BY hash(id, b.y), id, b.y) "
        "AS place FROM q1, range(3) AS b(y)"
    )
    orders.package(package(many, again))
    ended = orders.run("--streams", "2", memory="400MB")
    table = accounts(ended)
    assert (table["rows_loaded"], table["gathered"]["queries"][0]["rows_out"]) == (180 * ROWS, 60 * ROWS)
    assert orders.query("SELECT count(DISTINCT place), max(place), count(DISTINCT id) FROM out") == [(180 * ROWS,) * 3]
    assert ended.summary["peak_resident_bytes"] < 400_000_000
    assert orders.leftovers() == []


@pytest.mark.faults
def test_a_run_that_was_killed_is_resumed_from_the_beginning(stored: Project) -> None:
    slow = "SELECT *, (SELECT max(hash(q1.n, b.y)) FROM range($factor) AS b(y))::VARCHAR AS h FROM q1"
    counted = "SELECT quantity, count(*) AS n, max(h) AS h FROM q2 GROUP BY quantity"
    stored.package(package(SUMS, slow, counted, destination="table: out, target: append"))
    with stored.started(stored.arguments(factor=30_000_000)) as running:
        stored.wait_for_event(running, "task_started")
        running.signal(signal.SIGKILL)
        assert running.wait().exit_code not in (0, 5)
    ended = stored.resume()
    ended.succeeded()
    assert len(stored.query("SELECT quantity FROM out")) == accounts(ended)["rows_loaded"] == 8
    assert stored.leftovers() == []


def test_the_plan_names_both(orders: Project) -> None:
    orders.package(package(*CHAINS["before, between and behind"]))
    plan = " ".join(orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml"]).stdout.split())
    assert "queries q2, q4 need all rows: they are committed at once" in plan
    assert "query q2 needs all rows" not in plan
