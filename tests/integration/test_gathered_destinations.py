"""A query over all rows whose result goes into several tables, in DuckDB and PostgreSQL: the rows of each, accounts,
all or nothing when a run fails or is killed, and going on.
"""

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

SUMS = "SELECT quantity, paid, count(*) AS n, sum(id)::BIGINT AS ids FROM orders GROUP BY ALL"
BEHIND_SUMS = (
    "keyed: {input: q1, lookup: {connection: inbox, files: parts.csv, layout: parts, on: {quantity: key}, add: [sk], "
    "no_match: output}}",
    'parted: {input: keyed, split: {big: "n > 200"}}',
)
FOUND = "q1 JOIN (VALUES (0, 0), (2, 20), (4, 40), (6, 60)) AS p(key, sk) ON quantity = key"
BIG = "(n > 200) IS TRUE"
# Fails until there is a row, in both databases.
BEHIND = """
  check:
    after: load
    sql:
      connection: warehouse
      text: SELECT CAST(CASE count(*) WHEN 0 THEN 'closed' ELSE '1' END AS INTEGER) FROM gate
"""
# By table: its input, and what DuckDB says that belongs into it.
TABLES = {
    "big": ("parted.big", f"SELECT quantity, paid, n, ids, sk FROM {FOUND} WHERE {BIG}"),
    "rest": ("parted.rest", f"SELECT quantity, paid, n, ids, sk FROM {FOUND} WHERE NOT {BIG}"),
    "missed": ("keyed.no_match", "FROM q1 ANTI JOIN (VALUES (0), (2), (4), (6)) AS p(key) ON quantity = key"),
    "sums": ("q1", "FROM q1"),
}


def to_tables(text: str, tables: dict[str, str], settings: str = "target: replace") -> str:
    """The package with these destinations, by what they read."""
    head, _, _ = text.partition("      destinations:\n")
    lines = [
        f"        {name}: {{input: {rows}, connection: warehouse, table: {name}, {settings}}}\n"
        for name, rows in tables.items()
    ]
    return f"{head}      destinations:\n{''.join(lines)}"


def several(settings: str = "target: replace", sums: str = SUMS, **options: Any) -> str:
    text = package(sums, transforms=BEHIND_SUMS, **options)
    return to_tables(text, {name: rows for name, (rows, _) in TABLES.items()}, settings)


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def shown(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As text, whatever the database."""
    texts = {True: "t", False: "f"}
    return sorted(
        (
            tuple(None if own is None else texts[own] if isinstance(own, bool) else str(own) for own in row)
            for row in rows
        ),
        key=repr,
    )


def loaded(project: Project, table: str) -> list[tuple[Any, ...]]:
    return shown(project.query(f"SELECT * FROM {table}"))


def wanted(project: Project, sums: str = SUMS) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        return {
            name: shown(connection.sql(expected(project, sums, sql)).fetchall()) for name, (_, sql) in TABLES.items()
        }


def accounts(ended: Ended, rejected: int = 0) -> dict[str, Any]:
    """Those of each table, which balance: what was read is told with each, and counted once."""
    summary = ended.summary
    for table in summary["tables"]:
        gathered = table["gathered"]
        assert table["rows_read"] == gathered["rows_in"] + table["rows_filtered"] + table["rows_rejected"]
        assert gathered["rows_out"] == table["rows_loaded"] + gathered["filtered_behind"], table["table"]
        assert (table["rows_read"], table["rows_rejected"]) == (ROWS + rejected, rejected)
    first, *others = summary["tables"]
    assert (summary["rows_read"], summary["rows_rejected"]) == (ROWS + rejected, rejected)
    assert summary["rows_loaded"] == sum(table["rows_loaded"] for table in summary["tables"])
    assert first["rejects"]["count"] == rejected and not any(table["rejects"]["count"] for table in others)
    return {table["table"]: table for table in summary["tables"]}


@pytest.mark.parametrize("target", ["replace", "append"])
def test_each_table_has_its_rows_of_the_result(orders: Project, target: str) -> None:
    orders.package(several(f"target: {target}"))
    rows = wanted(orders)
    for times, streams in ((1, "1"), (2, "16")):
        ended = orders.run("--streams", streams)
        ended.succeeded()
        count = times if target == "append" else 1
        assert {name: loaded(orders, name) for name in TABLES} == {
            name: sorted(own * count, key=repr) for name, own in rows.items()
        }
        tables = accounts(ended)
        assert {name: own["rows_loaded"] for name, own in tables.items()} == {
            name: len(own) for name, own in rows.items()
        }
        assert {own["gathered"]["rows_in"] for own in tables.values()} == {ROWS}
    split = tables["rest"]["transforms"][-1]
    assert (split["kind"], split["taken"], split["rows"]) == (
        "split",
        ["parted.rest"],
        len(rows["big"]) + len(rows["rest"]),
    )
    assert orders.leftovers() == []


def test_a_lookup_behind_it_reads_a_table(orders: Project) -> None:
    orders.execute("CREATE TABLE dim (key INTEGER, sk INTEGER)")
    orders.execute("INSERT INTO dim VALUES (0, 0), (2, 20), (4, 40), (6, 60)")
    orders.package(
        several().replace("connection: inbox, files: parts.csv, layout: parts", "connection: warehouse, table: dim")
    )
    ended = orders.run("--streams", "4")
    ended.succeeded()
    assert {name: loaded(orders, name) for name in TABLES} == wanted(orders)
    assert accounts(ended)["missed"]["transforms"][-1]["lookup"]["rows"] == 4


def test_null_takes_them_too(orders: Project) -> None:
    orders.package(several())
    ended = orders.run("--connection", "warehouse=null:")
    ended.succeeded()
    found = {name: own["rows_loaded"] for name, own in accounts(ended).items()}
    assert found == {name: len(own) for name, own in wanted(orders).items()}


def test_an_output_that_nobody_reads_balances(orders: Project) -> None:
    text = several().replace('split: {big: "n > 200"}', 'discard: [big], split: {big: "n > 200"}')
    orders.package("".join(line for line in text.splitlines(keepends=True) if "parted.big" not in line))
    ended = orders.run()
    ended.succeeded()
    rows = wanted(orders)
    assert loaded(orders, "rest") == rows["rest"]
    tables = accounts(ended)
    assert tables["sums"]["gathered"]["filtered_behind"] == 0
    assert tables["rest"]["gathered"]["filtered_behind"] == len(rows["sums"]) - len(rows["rest"])


def test_what_one_table_cannot_hold_undoes_all(orders: Project) -> None:
    orders.execute("CREATE TABLE sums (quantity INTEGER NOT NULL, paid BOOLEAN, n BIGINT, ids BIGINT)")
    orders.package(several("target: append", limit=1000))
    ended = orders.run()
    assert ended.exit_code == 1
    told = " ".join(ended.stderr.split())
    assert "HR201" in told and "column `quantity`" in told and "quantity NULL" in told
    assert "a row of load is refused" in told and "in destination `sums`" in told, told
    assert loaded(orders, "sums") == []
    assert len(orders.tables()) == 1
    assert orders.leftovers() == []


def with_rejects(project: Project) -> None:
    for name, line in (("orders.0", "x|1.00|2||||2026-01-01|true\n"), ("orders.2", "7|1.00|2||||2026-13-01|true\n")):
        path = project.inbox / name
        path.write_text(path.read_text() + line)


@pytest.mark.faults
def test_a_run_that_goes_on_behind_them_tells_the_same(orders: Project) -> None:
    orders.execute("CREATE TABLE gate (open BOOL)")
    orders.package(several(limit=5) + BEHIND)
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
        for count in ("lines", "rows_read", "rows_rejected", "rows_filtered", "rows_loaded", "slices", "gathered"):
            assert second[name][count] == own[count], (name, count)
    assert {name: loaded(orders, name) for name in TABLES} == rows
    written = orders.command(
        [sys.executable, "-m", "headrace", "report", "--runs-dir", "runs", "last", "--output", "r.html"]
    )
    assert written.exit_code == 0, written.stderr
    assert "do not balance" not in (orders.folder / "r.html").read_text(encoding="utf-8")


@pytest.fixture
def stored(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


def test_a_kill_before_the_switch_is_gone_on_from(stored: PostgresProject) -> None:
    """All tables are committed out of sight: nothing is asked again."""
    stored.package(several())
    stored.run().succeeded()
    rows = {name: loaded(stored, name) for name in TABLES}
    kill_at_the_switch(stored, "sums")
    resumed = stored.resume()
    resumed.succeeded()
    assert {name: loaded(stored, name) for name in TABLES} == rows
    assert {own["bytes_read"] for own in accounts(resumed).values()} == {0}
    assert stored.leftovers() == []


@pytest.mark.faults
@pytest.mark.parametrize(("table", "committed"), [("big", 0), ("missed", 2)])
def test_a_kill_between_the_commits_of_two_tables_begins_anew(
    stored: PostgresProject, table: str, committed: int
) -> None:
    """Another attempt may have another result: nothing of it may stand beside rows of the first one."""
    stored.package(several("target: append"))
    stored.run().succeeded()
    rows = {name: loaded(stored, name) for name in TABLES}
    assert kill_between_commits(stored, f"NEW.task = 'load/{table}'") == committed
    resumed = stored.resume()
    resumed.succeeded()
    assert {name: loaded(stored, name) for name in TABLES} == {
        name: sorted(own * 2, key=repr) for name, own in rows.items()
    }
    assert all(own["bytes_read"] or own["task"] != "load/big" for own in accounts(resumed).values())
    assert stored.leftovers() == []


FAILS_ONCE = """
CREATE SEQUENCE public.commits;
CREATE FUNCTION public.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.slice > 0 AND NEW.task = 'load/missed' AND nextval('public.commits') = 1 THEN
    RAISE EXCEPTION 'not now' USING ERRCODE = '40001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER fail_once BEFORE INSERT ON headrace.commit FOR EACH ROW EXECUTE FUNCTION public.fail_once()
"""


def test_a_try_that_follows_begins_anew(stored: PostgresProject) -> None:
    """Of the first one two tables are committed out of sight, and kept, because trying again can help."""
    text = several("target: append")
    stored.package(text)
    stored.run().succeeded()
    rows = {name: loaded(stored, name) for name in TABLES}
    stored.execute(FAILS_ONCE)
    stored.package(
        text.replace("    data_flow:", "    retry: {times: 3, wait_seconds: 0.2, factor: 1}\n    data_flow:")
    )
    ended = stored.run()
    ended.succeeded()
    assert any("is tried again" in str(event) for event in stored.events()), ended.stderr
    assert {name: loaded(stored, name) for name in TABLES} == {
        name: sorted(own * 2, key=repr) for name, own in rows.items()
    }
    accounts(ended)
    assert stored.leftovers() == []


def test_a_query_that_runs_for_long_is_cancelled(orders: Project) -> None:
    slow = (
        "SELECT 1 AS quantity, true AS paid, CAST(sum(hash(a.x, b.y) % 7) AS BIGINT) AS n, 1 AS ids "
        "FROM (SELECT 1 AS x FROM orders) AS a, range(30000000) AS b(y)"
    )
    orders.package(several(sums=slow))
    with orders.started(orders.arguments()) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGINT)
        assert running.wait().exit_code == 3
    assert orders.tables() == []
    assert orders.leftovers() == []


JOINED = """
headrace: 1
package: joined
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64, nullable: false}, {name: day, type: date}]}
  lines: {delimiter: ",", columns: [{name: KEY, type: int64, nullable: false}, {name: amount, type: int64}]}
streams: 4
tasks:
  load:
    data_flow:
      sources:
        orders: {connection: inbox, files: "o.*", layout: orders}
        lines: {connection: inbox, files: "l.*", layout: lines}
      transforms:
        pairs: TOGETHER
        daily: {input: pairs, sql: "SELECT id % 3 AS part, count(*) AS n FROM pairs GROUP BY id % 3"}
        parted: {input: daily, split: {first: "part = 0"}}
      destinations:
        first: {input: parted.first, connection: warehouse, table: first, target: replace}
        others: {input: parted.rest, connection: warehouse, table: others, target: replace}
"""
TOGETHER = {
    "join": "{join: {left: orders, right: lines, on: {id: line}, type: inner}}",
    "union": '{union: {sources: [orders, lines], missing: "null"}}',
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_rows_of_two_sources_stand_in_front(project: Project, kind: str) -> None:
    """A run that goes on behind it knows for each table what was read of both sources."""
    project.execute("CREATE TABLE gate (open BOOL)")
    for number in range(2):
        ids = range(100 * number, 100 * number + 100)
        project.file(f"o.{number}", "".join(f"{own},2026-01-01\n" for own in ids))
        project.file(f"l.{number}", "".join(f"{own},{own}\n" * 2 for own in ids))
    text = JOINED.replace("TOGETHER", TOGETHER[kind]).replace("KEY", "line" if kind == "join" else "id")
    project.package(text + BEHIND)
    assert project.run().exit_code == 1
    each = 2 if kind == "join" else 3
    assert project.query("FROM first") == [(0, 67 * each)]
    assert sorted(project.query("FROM others")) == [(1, 67 * each), (2, 66 * each)]
    project.execute("INSERT INTO gate VALUES (true)")
    resumed = project.resume().succeeded()["tables"]
    for table in resumed:
        assert table[kind] is not None, table["table"]
        assert table["gathered"]["rows_in"] == 200 * each
        assert table["rows_read"] == 600
