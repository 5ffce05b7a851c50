"""Queries over all rows of a data flow, into DuckDB: what plain DuckDB gives over the same files, by 1 and 16 streams;
accounts; errors; cancelling and killing.
"""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.gate import BEHIND
from tests.integration.query_scenes import ROWS, differences, expected, package, write_files
from tests.snapshots import assert_snapshot

CHAINS = {
    "group by": [
        "SELECT quantity, sum(price) AS total, count(*) AS n, max(note) AS last FROM orders GROUP BY quantity"
    ],
    "no group": ["SELECT count(*) AS n, min(day) AS first FROM orders"],
    "distinct": ["SELECT DISTINCT quantity, paid, code FROM orders"],
    "top": ["SELECT id, price, note, ratio, day FROM orders ORDER BY price DESC NULLS LAST, id LIMIT 17"],
    "window": [
        "SELECT id, row_number() OVER (PARTITION BY paid ORDER BY price, id) AS place, "
        "sum(price) OVER (PARTITION BY quantity) AS total, lag(note) OVER (ORDER BY id) AS before FROM orders"
    ],
    "pivot": [
        "FROM (PIVOT (SELECT quantity, paid, price FROM orders) ON paid IN (true, false) "
        "USING sum(price) GROUP BY quantity)"
    ],
    "union": ["SELECT id, note FROM orders WHERE id < 50 UNION ALL SELECT -id, note FROM orders WHERE id < 20"],
    "twice": [
        "SELECT o.id, t.n FROM orders AS o JOIN (SELECT quantity, count(*) AS n FROM orders GROUP BY quantity) AS t "
        "USING (quantity)"
    ],
    "listed": ["SELECT paid, string_agg(code, ',' ORDER BY id) AS codes FROM orders WHERE id < 100 GROUP BY paid"],
    "before and behind": [
        "SELECT *, price * quantity AS amount FROM orders WHERE quantity > 0",
        "SELECT quantity, sum(amount) AS total FROM q1 GROUP BY quantity HAVING count(*) > 1",
        "SELECT quantity, total, total > 1000 AS big FROM q2 WHERE quantity <> 2",
    ],
    "nothing": ["SELECT quantity, count(*) AS n FROM orders WHERE id < -5 GROUP BY quantity"],
}


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


def accounts(ended: Ended) -> dict[str, Any]:
    """Those of the one table. What goes into the query balances, and what comes out of it; nothing else does."""
    (table,) = ended.succeeded()["tables"]
    found: dict[str, Any] = table
    before, behind = 0, 0
    is_behind = False
    for own in table["transforms"]:
        is_behind = is_behind or own["kind"] == "gathered"
        if is_behind:
            behind += own["filtered"]
        else:
            before += own["filtered"] + own["rejected"]
    rows, out = gathered_counts(table)
    assert table["lines"] == table["rows_read"] + table["rows_skipped"]
    assert before <= table["rows_rejected"] + table["rows_filtered"]
    assert table["rows_read"] == rows + table["rows_rejected"] + table["rows_filtered"]
    assert out == table["rows_loaded"] + behind
    return found


def gathered_counts(table: dict[str, Any]) -> tuple[int, int]:
    (own,) = [each for each in table["transforms"] if each["kind"] == "gathered"]
    return own["rows"], own["matched"]


def gathered(ended: Ended) -> tuple[int, int]:
    """Rows in and out of the query over all rows."""
    return gathered_counts(accounts(ended))


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_table_equals_the_query_of_duckdb(orders: Project, chain: list[str]) -> None:
    orders.package(package(*chain))
    for streams in ("1", "16"):
        ended = orders.run("--streams", streams)
        only, missing, loaded = differences(orders, expected(orders, *chain))
        assert (only, missing) == (0, 0)
        account = accounts(ended)
        assert (account["rows_loaded"], account["rows_read"], account["lines"]) == (loaded, ROWS, ROWS)
        assert account["streams"] == min(int(streams), account["slices"])
        rows, out = gathered(ended)
        assert rows == ROWS if len(chain) == 1 else rows < ROWS
        assert out == loaded if len(chain) == 1 else out >= loaded
    assert orders.leftovers() == []


def test_rejects_are_those_of_the_rows_in_front_of_it(orders: Project) -> None:
    sql = "SELECT count(*) AS n, sum(id)::BIGINT AS ids FROM orders"
    orders.package(package(sql, limit=5))
    (first, *_) = sorted(orders.inbox.iterdir())
    first.write_text(first.read_text() + "x|1.00|2||||2026-01-01|true\n")
    ended = orders.run("--streams", "4")
    account = accounts(ended)
    assert (account["rows_read"], account["rows_rejected"], account["rows_loaded"]) == (ROWS + 1, 1, 1)
    assert gathered(ended) == (ROWS, 1)
    assert orders.query("SELECT n FROM out") == [(ROWS,)]
    orders.package(package(sql))
    ended = orders.run()
    assert ended.exit_code == 1
    assert "x" in ended.stderr and "id" in ended.stderr
    assert orders.query("SELECT n FROM out") == [(ROWS,)]


def test_a_row_that_a_query_makes_of_no_rows_is_accounted_for(orders: Project) -> None:
    """An empty file has no slice."""
    for path in orders.inbox.iterdir():
        path.unlink()
    orders.file("orders.0", "")
    orders.execute("CREATE TABLE gate (open BOOL)")
    text = package("SELECT count(*) AS n FROM orders", "SELECT n, n + 1 AS m FROM q1") + BEHIND
    orders.package(text.replace('files: "orders.*"', 'files: "orders.*", empty: allow'))
    first = orders.run().summary["tables"][0]
    orders.execute("INSERT INTO gate VALUES (true)")
    resumed = orders.resume().succeeded()["tables"][0]
    assert orders.query("SELECT n, m FROM out") == [(0, 1)]
    for table in (first, resumed):
        assert (table["rows_read"], table["rows_loaded"]) == (0, 1)
        assert table["gathered"] == {"rows_in": 0, "rows_out": 1, "filtered_behind": 0}
    assert [own["rows"] for own in first["transforms"]] == [0, 1]


FAILING = {
    "value": "SELECT CAST(sum(100 // (id - 7)) AS BIGINT) AS n FROM orders",
    "error": "SELECT quantity, CASE WHEN count(*) > 3 THEN error('too many: it''s') ELSE 1 END AS n "
    "FROM orders GROUP BY 1",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_query_that_fails_fails_the_flow(orders: Project, name: str) -> None:
    orders.package(package(FAILING[name], limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    assert_snapshot(f"gathered/failing_{name}", orders.stable(ended.stderr.split("\nerror: ")[-1]))
    assert orders.tables() == []
    assert orders.leftovers() == []


@pytest.mark.parametrize("place", ["query", "behind"])
def test_a_failure_among_several_transforms_is_told(orders: Project, place: str) -> None:
    chain = [
        "SELECT * FROM orders WHERE id > 5",
        "SELECT count(*) AS n, max(id) AS last FROM q1",
        "SELECT n, last FROM q2",
    ]
    chain[1 if place == "query" else 2] += " WHERE error('odd') IS NULL"
    orders.package(package(*chain))
    ended = orders.run()
    assert (ended.exit_code, "odd" in ended.stderr) == (1, True)
    (table,) = ended.summary["tables"]
    assert [own["kind"] for own in table["transforms"]] == ["sql", "gathered", "sql"]
    assert orders.tables() == []


def test_what_a_table_cannot_hold_fails_with_the_values(orders: Project) -> None:
    orders.execute("CREATE TABLE out (quantity INTEGER NOT NULL, n BIGINT)")
    sql = "SELECT quantity, count(*) AS n FROM orders GROUP BY quantity"
    orders.package(package(sql, destination="table: out, target: append", limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    assert_snapshot("gathered/not_null", orders.stable(ended.stderr.split("\nerror: ")[-1]))
    assert orders.query("SELECT count(*) FROM out") == [(0,)]


def test_a_text_with_nul_fails_and_is_shown(orders: Project) -> None:
    orders.package(package("SELECT quantity, max(note) || chr(0) AS note FROM orders GROUP BY quantity", limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    assert_snapshot("gathered/nul", re.sub(r'found: ".*', 'found: "...', orders.stable(ended.error)))
    assert orders.tables() == []


SLOW = (
    "SELECT CAST(sum(hash(a.x, b.y) % 7) AS BIGINT) AS n FROM (SELECT 1 AS x FROM orders) AS a, range(30000000) AS b(y)"
)


def test_a_query_that_runs_for_long_is_cancelled(orders: Project) -> None:
    orders.package(package(SLOW))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert orders.tables() == []
    assert orders.leftovers() == []


def test_plan_says_what_it_does(orders: Project) -> None:
    orders.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    orders.package(package(*CHAINS["before and behind"]))
    arguments = [sys.executable, "-m", "headrace", "plan", "package.yaml", "--streams", "4"]
    plan = orders.command(arguments)
    assert_snapshot("gathered/plan", orders.stable(plan.stdout))
    orders.package(package(*CHAINS["twice"]))
    assert "it keeps all rows before it begins" in " ".join(orders.command(arguments).stdout.split())


def test_memory_is_bounded_and_rows_are_put_aside(orders: Project) -> None:
    """All rows a hundred times, sorted, are more than the instance may have."""
    orders.own_processes = True
    sql = (
        "SELECT id * 200 + b.y AS id, repeat(note, 10) AS note, row_number() "
        "OVER (ORDER BY hash(note, id, b.y), id, b.y) AS place FROM orders, range(200) AS b(y)"
    )
    orders.package(package(sql))
    ended = orders.run("--streams", "2", memory="400MB")
    assert accounts(ended)["rows_loaded"] == 200 * ROWS
    assert ended.summary["peak_resident_bytes"] < 400_000_000
    assert orders.query("SELECT count(DISTINCT place), max(place) FROM out") == [(200 * ROWS, 200 * ROWS)]
    assert orders.leftovers() == []


@pytest.mark.faults
@pytest.mark.parametrize("streams", ["1", "4"])
def test_a_run_that_was_killed_is_resumed_from_the_beginning(orders: Project, streams: str) -> None:
    sql = (
        "SELECT quantity, count(*) AS n, sum(length(note))::BIGINT AS chars "
        "FROM orders, range($factor) AS b(y) GROUP BY quantity"
    )
    orders.package(package(sql, destination="table: out, target: append"))
    with orders.started(orders.arguments("--streams", streams, factor=20_000)) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGKILL)
        assert running.wait().exit_code not in (0, 5)
    ended = orders.resume()
    ended.succeeded()
    only, missing, loaded = differences(orders, expected(orders, sql.replace("$factor", "20000")))
    assert (only, missing) == (0, 0)
    assert loaded == accounts(ended)["rows_loaded"]


def test_such_a_table_is_neither_compared_nor_replayed(orders: Project) -> None:
    orders.package(package("SELECT count(*) AS n FROM orders", limit=5))
    (first, *_) = sorted(orders.inbox.iterdir())
    first.write_text(first.read_text() + "x|1.00|2||||2026-01-01|true\n")
    orders.run().succeeded()
    verified = orders.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last"])
    assert "its rows have passed a query" in verified.stdout + verified.stderr
    replayed = orders.command([sys.executable, "-m", "headrace", "replay", "--runs-dir", "runs", "last"])
    assert replayed.exit_code != 0
    assert "needs all rows: one more changes what was loaded" in " ".join(replayed.stderr.split())
