"""Queries over rows on the way into PostgreSQL: the rows of DuckDB's own query, however they are loaded and resumed."""

from __future__ import annotations

import json
import signal

import duckdb
import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, accounts, expected, package, write_files
from tests.integration.test_row_queries import NUL
from tests.snapshots import assert_snapshot

QUERY = (
    "SELECT id, price * quantity AS amount, CASE WHEN quantity > 2 THEN note ELSE upper(code) END AS label, day, code, "
    "ratio FROM orders WHERE quantity > 0 AND id % 5 <> 3"
)
NAMES = "id, amount, label, day, code, ratio"
LATE = ROWS * 3 // 4 + 5
CHECKED = f"CREATE TABLE out (id bigint, amount numeric(20,2), CONSTRAINT late CHECK (id <> {LATE}))"
APPENDED = "table: out, target: append, load: single, commit: {rows: 300}, columns: {id: id, amount: amount}"


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def computed(project: Project, columns: str = NAMES) -> list[tuple[str | None, ...]]:
    """The query by DuckDB, as text."""
    with duckdb.connect() as connection:
        rows = f"SELECT {columns} FROM ({expected(project, QUERY)}) ORDER BY id"
        return connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({rows})").fetchall()


def loaded(orders: PostgresProject, columns: str = NAMES) -> list[tuple[str | None, ...]]:
    shown = columns.replace("ratio", "CASE WHEN ratio = trunc(ratio) THEN ratio::text || '.0' ELSE ratio::text END")
    return orders.query(f"SELECT {shown.replace('code', 'rtrim(code)')} FROM out ORDER BY id")


@pytest.mark.parametrize("mode", ["replace", "append", "append, commit: {rows: 500}"])
def test_texts_with_nul_are_rejects(orders: PostgresProject, mode: str) -> None:
    """The server stores none: each such row is a reject, and no other one."""
    orders.execute("CREATE TABLE out (id bigint, note text)")
    orders.package(package(NUL, limit=ROWS, destination=f"table: out, target: {mode}"))
    account = accounts(orders.run())
    rows = account["rows_loaded"]
    assert account["rows_rejected"] == ROWS - rows > 0
    assert account["rejects"]["by_rule"] == {"expression": ROWS - rows}
    found = orders.query("SELECT count(*), count(*) FILTER (WHERE id % 7 = 0 AND note IS NOT NULL) FROM out")
    assert found == [(str(rows), "0")]


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        ", load: staged, partition: {range: {column: id, bounds: [1000, 2500]}}",
        ", load: staged, partition: {hash: {column: id, parts: 3}}",
        ", commit: {rows: 500}",
    ],
    ids=["plain", "range", "hash", "commit"],
)
def test_the_table_equals_the_query_of_duckdb(orders: PostgresProject, clauses: str) -> None:
    orders.package(package(QUERY, destination=f"table: out, target: replace{clauses}"))
    for streams in ("1", "16"):
        account = accounts(orders.run("--streams", streams))
        rows = computed(orders)
        assert (account["rows_loaded"], account["rows_filtered"]) == (len(rows), ROWS - len(rows))
        assert loaded(orders) == rows
        assert orders.leftovers() == []
    sums = "SELECT sum(rows_filtered), sum(rows_loaded) FROM headrace.commit WHERE slice > 0 GROUP BY run_id"
    found = orders.query(sums)
    assert found == [(str(ROWS - len(rows)), str(len(rows)))] * 2


def test_texts_that_are_too_long_and_nulls_are_rejects(orders: PostgresProject) -> None:
    orders.execute("CREATE TABLE out (id bigint NOT NULL, label varchar(3), amount numeric(20,2) NOT NULL)")
    columns = "columns: {id: id, label: label, amount: amount}"
    orders.package(package(QUERY, limit=ROWS, destination=f"table: out, target: append, {columns}"))
    account = accounts(orders.run())
    with duckdb.connect() as connection:
        rows = f"({expected(orders, QUERY)})"
        nulls, long = connection.execute(
            f"SELECT count(*) FILTER (amount IS NULL), count(*) FILTER (length(label) > 3) FROM {rows}"
        ).fetchall()[0]
        both = connection.execute(f"SELECT count(*) FROM {rows} WHERE amount IS NULL AND length(label) > 3").fetchall()
    rules = account["rejects"]["by_rule"]
    assert rules["null_not_allowed"] + rules["too_long"] == nulls + long - both[0][0]
    kept = [row for row in computed(orders, "id, label, amount") if row[2] is not None and len(row[1] or "") <= 3]
    assert loaded(orders, "id, label, amount") == kept


@pytest.mark.parametrize("way", ["copy", "unique"])
def test_a_row_that_the_server_refuses_is_found_in_its_file(orders: PostgresProject, way: str) -> None:
    """By its place in the COPY, and by the second pass."""
    constraint = f"CHECK (id <> {LATE})" if way == "copy" else "UNIQUE (twin)"
    orders.execute(f"CREATE TABLE out (id bigint, twin bigint, CONSTRAINT late {constraint})")
    sql = f"SELECT id, CASE WHEN id = {LATE} THEN 2 ELSE id END AS twin FROM orders WHERE id % 3 = 2"
    orders.package(package(sql, destination="table: out, target: append"))
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot(f"postgres_row_query_{way}", orders.stable(ended.error))


@pytest.mark.faults
def test_a_resumed_run_goes_on_behind_what_is_committed(orders: PostgresProject) -> None:
    """Lines of slices are told by what was left out of them, too: rejects keep their rows."""
    orders.execute(CHECKED)
    failing = QUERY.replace("price * quantity", "CASE WHEN id % 97 = 1 THEN error('odd') ELSE price * quantity END")
    orders.package(package(failing, limit=ROWS, destination=APPENDED))
    assert orders.run("--streams", "1").exit_code == 1
    before = len(orders.query("SELECT id FROM out"))
    assert 0 < before < LATE
    orders.execute("ALTER TABLE out DROP CONSTRAINT late")
    resumed = orders.resume()
    (table,) = resumed.succeeded()["tables"]
    assert table["rows_read"] == ROWS == table["rows_loaded"] + table["rows_filtered"] + table["rows_rejected"]
    rows = [row for row in computed(orders, "id, amount") if int(row[0] or 0) % 97 != 1]
    assert loaded(orders, "id, amount") == rows
    (path,) = orders.runs.glob("*/rejects/*.jsonl")
    rejects = [json.loads(line) for line in path.read_text().splitlines()]
    each = -(-ROWS // 3)
    left = [number for number in range(ROWS) if number % 19 and number % 7 - 1 > 0 and number % 5 != 3]
    wanted = [number for number in left if number % 97 == 1]
    assert [(own["file_number"] - 1) * each + own["row"] - 1 for own in rejects] == wanted


@pytest.mark.parametrize("moment", ["task_started", "progress"])
def test_a_killed_run_is_resumed(orders: PostgresProject, moment: str) -> None:
    orders.package(package(QUERY))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, moment)
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    assert loaded(orders) == computed(orders)
