"""Raw rows of a data flow and what queries over all of them make, from one pass: rows, accounts, all or nothing."""

from __future__ import annotations

import signal
import sys
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, expected, package, write_files
from tests.integration.slow_commit import kill_at_the_switch, kill_between_commits
from tests.integration.test_gathered_destinations import BEHIND, loaded, shown, to_tables, with_rejects

SUMS = "SELECT quantity, paid, count(*) AS n, sum(id)::BIGINT AS ids FROM orders GROUP BY ALL"
DAYS = "SELECT day, count(*) AS n, sum(sk)::BIGINT AS sks FROM parted GROUP BY day"
TOP = "SELECT n, max(day) AS last FROM days GROUP BY n"
TRANSFORMS = (
    f'sums: {{input: orders, sql: "{SUMS}"}}',
    'cut: {input: sums, split: {few: "n < 200"}}',
    "keyed: {input: orders, lookup: {connection: inbox, files: parts.csv, layout: parts, on: {quantity: key}, "
    "add: [sk], no_match: output}}",
    'parted: {input: keyed, split: {big: "id % 3 = 0"}}',
    f'days: {{input: parted.rest, sql: "{DAYS}"}}',
    f'top: {{input: days, sql: "{TOP}"}}',
)
PARTS = "(VALUES (0, 0), (2, 20), (4, 40), (6, 60)) AS p(key, sk)"
FOUND = f"orders JOIN {PARTS} ON quantity = key"
# Those that are the same text in both databases.
COLUMNS = "id, price, quantity, note, day, paid"
ALL_DAYS = DAYS.replace("parted", f"(SELECT * FROM {FOUND} WHERE (id % 3 = 0) IS NOT TRUE)")
# By table, in an order in which results come first: its input, and what DuckDB says that belongs into it.
TABLES = {
    "few": ("cut.few", f"SELECT * FROM ({SUMS}) WHERE n < 200"),
    "many": ("cut.rest", f"SELECT * FROM ({SUMS}) WHERE (n < 200) IS NOT TRUE"),
    "top": ("top", TOP.replace("FROM days", f"FROM ({ALL_DAYS})")),
    "raw": ("orders", f"SELECT {COLUMNS} FROM orders"),
    "missed": ("keyed.no_match", f"SELECT {COLUMNS} FROM orders ANTI JOIN {PARTS} ON quantity = key"),
    "big": ("parted.big", f"SELECT {COLUMNS}, sk FROM {FOUND} WHERE id % 3 = 0"),
}
RESULTS = ("few", "many", "top")
RAW = ("raw", "missed", "big")


def mixed(settings: str = "target: replace", **options: Any) -> str:
    text = package(transforms=TRANSFORMS, **options)
    return to_tables(text, {name: rows for name, (rows, _) in TABLES.items()}, settings)


def raw_and_sums(settings: str = "target: replace", sums: str = SUMS, **options: Any) -> str:
    """The smallest such flow."""
    return to_tables(package(sums, **options), {"sums": "q1", "raw": "orders"}, settings)


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


@pytest.fixture
def stored(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def wanted(project: Project) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        return {name: shown(connection.sql(expected(project, sql)).fetchall()) for name, (_, sql) in TABLES.items()}


def found(project: Project, tables: tuple[str, ...] = tuple(TABLES)) -> dict[str, list[tuple[Any, ...]]]:
    columns = {"raw": COLUMNS, "missed": COLUMNS, "big": f"{COLUMNS}, sk"}
    return {name: shown(project.query(f"SELECT {columns.get(name, '*')} FROM {name}")) for name in tables}


def accounts(ended: Ended, rejected: int = 0) -> dict[str, Any]:
    """Those of each table, which balance; what is common is told with the first one, which has raw rows."""
    summary = ended.summary
    for table in summary["tables"]:
        gathered = table.get("gathered")
        arrived = table["rows_loaded"] if gathered is None else gathered["rows_in"]
        assert table["rows_read"] == arrived + table["rows_filtered"] + table["rows_rejected"], table["table"]
        assert gathered is None or gathered["rows_out"] == table["rows_loaded"] + gathered["filtered_behind"], table
        assert table["rows_read"] == ROWS + rejected
        assert table["rows_rejected"] == rejected
    first, *others = summary["tables"]
    assert "gathered" not in first
    assert (summary["rows_read"], summary["rows_rejected"]) == (ROWS + rejected, rejected)
    assert summary["rows_loaded"] == sum(table["rows_loaded"] for table in summary["tables"])
    assert first["rejects"]["count"] == rejected and not any(table["rejects"]["count"] for table in others)
    return {table["table"]: table for table in summary["tables"]}


@pytest.mark.parametrize("target", ["replace", "append"])
def test_each_table_has_its_rows(orders: Project, target: str) -> None:
    orders.package(mixed(f"target: {target}"))
    rows = wanted(orders)
    for times, streams in ((1, "1"), (2, "16")):
        ended = orders.run("--streams", streams)
        ended.succeeded()
        count = times if target == "append" else 1
        assert found(orders) == {name: sorted(own * count, key=repr) for name, own in rows.items()}
        tables = accounts(ended)
        assert {name: own["rows_loaded"] for name, own in tables.items()} == {
            name: len(own) for name, own in rows.items()
        }
        assert [name for name, own in tables.items() if own["bytes_read"]] == list(tables)
        assert len({own["bytes_read"] for own in tables.values()}) == 1
    assert [own["name"] for own in tables["top"]["gathered"]["queries"]] == ["days", "top"]
    assert orders.leftovers() == []


def test_null_takes_them_too(orders: Project) -> None:
    orders.package(mixed())
    ended = orders.run("--connection", "warehouse=null:")
    ended.succeeded()
    assert {name: own["rows_loaded"] for name, own in accounts(ended).items()} == {
        name: len(own) for name, own in wanted(orders).items()
    }


def test_results_of_two_queries_without_raw_rows(orders: Project) -> None:
    """Rejects are told with the first of them."""
    text = package(transforms=TRANSFORMS, limit=5)
    orders.package(
        to_tables(text, {name: TABLES[name][0] for name in RESULTS})
        .replace("        parted: {input: keyed, split:", "        parted: {input: keyed, discard: [big], split:")
        .replace("no_match: output", "no_match: {default: {sk: 0}}")
    )
    rows = {name: own for name, own in wanted(orders).items() if name in ("few", "many")}
    with_rejects(orders)
    ended = orders.run("--streams", "4")
    summary = ended.succeeded()
    assert found(orders, ("few", "many")) == rows
    assert (summary["rows_read"], summary["rows_rejected"]) == (ROWS + 2, 2)
    assert [own["rejects"]["count"] for own in summary["tables"]] == [2, 0, 0]
    for table in summary["tables"]:
        assert table["rows_read"] == table["gathered"]["rows_in"] + table["rows_filtered"] + 2


def test_a_run_that_goes_on_behind_them_tells_the_same(orders: Project) -> None:
    orders.execute("CREATE TABLE gate (open BOOL)")
    orders.package(mixed(limit=5) + BEHIND)
    rows = wanted(orders)
    with_rejects(orders)
    failed = orders.run("--streams", "4")
    assert failed.exit_code == 1
    first = accounts(failed, 2)
    orders.execute("INSERT INTO gate VALUES (true)")
    resumed = orders.resume()
    resumed.succeeded()
    second = accounts(resumed, 2)
    for name, own in first.items():
        for count in ("lines", "rows_read", "rows_rejected", "rows_filtered", "rows_loaded", "slices"):
            assert second[name][count] == own[count], (name, count)
        assert second[name].get("gathered") == own.get("gathered"), name
        assert second[name]["bytes_read"] == 0
    assert found(orders) == rows
    written = orders.command(
        [sys.executable, "-m", "headrace", "report", "--runs-dir", "runs", "last", "--output", "r.html"]
    )
    assert written.exit_code == 0, written.stderr
    assert "do not balance" not in (orders.folder / "r.html").read_text(encoding="utf-8")


def test_a_row_that_a_table_cannot_hold_is_a_row_of_the_query(orders: Project) -> None:
    """Ways do not know each other: it is a reject of the table's."""
    orders.execute("CREATE TABLE raw (id BIGINT NOT NULL, quantity INTEGER NOT NULL)")
    text = raw_and_sums("target: append", limit=ROWS).replace(
        "table: raw, target: append", "table: raw, target: append, columns: {id: id, quantity: quantity}"
    )
    orders.package(text)
    summary = orders.run("--streams", "4").succeeded()
    raw, sums = summary["tables"]
    missing = sum(number % 19 == 0 for number in range(ROWS))
    assert (raw["rows_loaded"], raw["rows_rejected"]) == (ROWS - missing, missing)
    assert (sums["gathered"]["rows_in"], sums["rows_rejected"]) == (ROWS, 0)
    assert raw["rejects"]["count"] == summary["rows_rejected"] == missing
    with duckdb.connect() as connection:
        assert loaded(orders, "sums") == shown(connection.sql(expected(orders, SUMS)).fetchall())


def nothing_became_visible(project: Project) -> None:
    """There are no tables, nor anything hidden."""
    assert project.tables() == []
    assert project.leftovers() == []


def test_a_query_that_fails_undoes_all(orders: Project) -> None:
    orders.package(raw_and_sums(sums=SUMS.replace("sum(id)", "sum(CAST(id || 'x' AS INTEGER))")))
    ended = orders.run("--streams", "4")
    assert ended.exit_code == 1
    assert "the query of transform `q1` failed" in ended.error, ended.stderr
    nothing_became_visible(orders)
    for table in json_tables(ended):
        assert (table["status"], table["rows_loaded"]) == ("failed", 0)


def json_tables(ended: Ended) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = ended.summary["tables"]
    return tables


def test_a_result_that_its_table_cannot_hold_undoes_all(orders: Project) -> None:
    orders.execute("CREATE TABLE sums (quantity INTEGER NOT NULL, paid BOOLEAN, n BIGINT, ids BIGINT)")
    orders.package(raw_and_sums("target: append", limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    told = " ".join(ended.stderr.split())
    assert "HR201" in told and "column `quantity`" in told, told
    assert loaded(orders, "sums") == []
    assert orders.tables() == [name for name in orders.tables() if name.endswith("sums")]
    assert orders.leftovers() == []


def test_too_many_rejects_end_it_before_the_result(orders: Project) -> None:
    orders.package(raw_and_sums(limit=1))
    with_rejects(orders)
    ended = orders.run("--streams", "4")
    assert ended.exit_code == 1
    assert "reject" in ended.error and "limit" in ended.error, ended.error
    nothing_became_visible(orders)


def test_files_without_rows(orders: Project) -> None:
    for path in orders.inbox.glob("orders.*"):
        path.write_text("")
    sums = "SELECT count(*) AS n, sum(id)::BIGINT AS ids FROM orders"
    orders.package(raw_and_sums(sums=sums).replace("layout: orders}", "layout: orders, empty: allow}"))
    summary = orders.run().succeeded()
    assert [own["rows_loaded"] for own in summary["tables"]] == [0, 1]
    assert loaded(orders, "raw") == [] and loaded(orders, "sums") == shown([(0, None)])


SLOW = (
    "SELECT 1 AS quantity, true AS paid, CAST(sum(hash(a.x, b.y) % 7) AS BIGINT) AS n, 1 AS ids "
    "FROM (SELECT 1 AS x FROM orders) AS a, range(30000000) AS b(y)"
)


def test_a_query_that_runs_for_long_is_cancelled(orders: Project) -> None:
    orders.package(raw_and_sums(sums=SLOW))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGINT)
        assert running.wait().exit_code == 3
    nothing_became_visible(orders)


def test_a_kill_while_the_query_runs_begins_anew(orders: Project) -> None:
    orders.package(mixed())
    orders.run().succeeded()
    rows = found(orders)
    orders.package(mixed().replace(SUMS, SLOW))
    with orders.started(orders.arguments("--streams", "4")) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGKILL)
        running.wait()
    assert found(orders) == rows


def test_a_kill_between_pass_and_result_begins_anew(stored: PostgresProject) -> None:
    """The raw rows are committed out of sight, and are of another attempt."""
    stored.package(mixed("target: append"))
    stored.run().succeeded()
    rows = found(stored)
    assert kill_between_commits(stored, "NEW.task = 'load/few'") >= len(RAW)
    assert found(stored) == rows
    first = stored.resume()
    first.succeeded()
    assert found(stored) == {name: sorted(own * 2, key=repr) for name, own in rows.items()}
    assert all(own["bytes_read"] for own in accounts(first).values())
    assert stored.leftovers() == []


def test_a_kill_in_the_pass_begins_anew(stored: PostgresProject) -> None:
    stored.package(mixed("target: append"))
    stored.run().succeeded()
    rows = found(stored)
    kill_between_commits(stored, "NEW.task = 'load/missed'", "--streams", "2")
    resumed = stored.resume()
    resumed.succeeded()
    assert found(stored) == {name: sorted(own * 2, key=repr) for name, own in rows.items()}
    accounts(resumed)
    assert stored.leftovers() == []


def test_a_kill_at_the_switch_begins_anew(stored: PostgresProject) -> None:
    """All tables are complete out of sight; what each of them was told is not."""
    stored.package(mixed())
    stored.run().succeeded()
    rows = found(stored)
    kill_at_the_switch(stored, "few")
    resumed = stored.resume()
    resumed.succeeded()
    assert found(stored) == rows
    accounts(resumed)
    assert stored.leftovers() == []


def test_lookups_on_both_ways_read_tables_as_they_were(orders: Project) -> None:
    """Also the one behind the query, when raw rows have taken the place of those that it reads."""
    orders.execute("CREATE TABLE raw (key INTEGER, sk INTEGER)")
    orders.execute("INSERT INTO raw VALUES (0, 0), (2, 20), (4, 40), (6, 60)")
    lookup = "lookup: {connection: warehouse, table: raw, on: {quantity: key}, add: [sk], no_match: {default: {sk: 9}}}"
    transforms = (
        f'q1: {{input: orders, sql: "{SUMS}"}}',
        f"keyed: {{input: q1, {lookup}}}",
        f"found: {{input: orders, {lookup}}}",
        'named: {input: found, sql: "SELECT quantity AS key, sk FROM found"}',
    )
    text = package(transforms=transforms)
    orders.package(to_tables(text, {"sums": "keyed", "raw": "named"}))
    orders.run("--streams", "4").succeeded()
    with duckdb.connect() as connection:
        sums = f"SELECT s.*, coalesce(sk, 9) FROM ({SUMS}) AS s LEFT JOIN {PARTS} ON quantity = key"
        raw = f"SELECT quantity, coalesce(sk, 9) FROM orders LEFT JOIN {PARTS} ON quantity = key"
        assert loaded(orders, "sums") == shown(connection.sql(expected(orders, sums)).fetchall())
        assert loaded(orders, "raw") == shown(connection.sql(expected(orders, raw)).fetchall())


def test_a_row_that_breaks_a_constraint_is_named(orders: Project) -> None:
    """Behind the last row: the query is not waited for, and nothing of its result comes."""
    orders.execute("CREATE TABLE raw (id BIGINT PRIMARY KEY, quantity INTEGER)")
    path = orders.inbox / "orders.2"
    path.write_text(path.read_text() + "17|1.00|2||||2026-01-01|true\n")
    orders.package(
        raw_and_sums("target: append").replace(
            "table: raw, target: append", "table: raw, target: append, columns: {id: id, quantity: quantity}"
        )
    )
    ended = orders.run("--streams", "4")
    assert ended.exit_code == 1
    told = " ".join(ended.error.split())
    assert "orders.2" in told and "17" in told and "orders.0" in told, told
    assert loaded(orders, "raw") == []
    assert len(orders.tables()) == 1 and orders.leftovers() == []
