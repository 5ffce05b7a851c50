"""Raw rows of a data flow and what queries over all of them make, from one pass: rows, accounts, all or nothing."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, expected, package, write_files
from tests.integration.slow_commit import kill_at_the_switch, kill_between_commits
from tests.integration.test_gathered_destinations import (
    BEHIND,
    JOINED,
    TOGETHER,
    loaded,
    shown,
    to_tables,
    with_rejects,
)

SUMS = "SELECT quantity, paid, count(*) AS n, sum(id)::BIGINT AS ids FROM orders GROUP BY ALL"
DAYS = "SELECT day, count(*) AS n, sum(sk)::BIGINT AS sks FROM parted GROUP BY day"
TOP = "SELECT n, max(day) AS last FROM days GROUP BY n"
TRANSFORMS = (
    f'sums: {{input: orders, sql: "{SUMS}"}}',
    'cut: {input: sums, split: {few: "n < 150"}}',
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
    "few": ("cut.few", f"SELECT * FROM ({SUMS}) WHERE n < 150"),
    "many": ("cut.rest", f"SELECT * FROM ({SUMS}) WHERE (n < 150) IS NOT TRUE"),
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


@pytest.mark.faults
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


@pytest.mark.faults
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


@pytest.mark.faults
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


@pytest.mark.faults
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


@pytest.mark.faults
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


# The command line, with a process that kills itself at a moment: behind the passes of that number, or at the commit.
KILLED = """
import os, signal
from headrace.executors.gathered import Gathering
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.postgres.group import PostgresGroup

passes = []

def at(moment):
    if moment == {moment!r}:
        os.kill(os.getpid(), signal.SIGKILL)

def load(self, *arguments, own=Gathering.load):
    done = own(self, *arguments)
    at("in the pass")
    return done

Gathering.load = load

for group in (DuckdbGroup, PostgresGroup):
    def stage_ways(self, *arguments, own=group.stage_ways):
        done = own(self, *arguments)
        passes.append(self)
        at(f"behind pass {{len(passes)}}")
        return done

    def commit(self, result, own=group.commit):
        at("before the commit")
        done = own(self, result)
        at("behind the commit")
        return done

    group.stage_ways, group.commit = stage_ways, commit

from headrace.cli import main
main()
"""
MOMENTS = ("in the pass", "behind pass 1", "behind pass 3", "before the commit", "behind the commit")


@pytest.mark.faults
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_killed_is_resumed(orders: Project, moment: str) -> None:
    """All of it is there, or none; what was not visible begins anew, whatever of it was committed out of sight."""
    orders.package(mixed("target: append", limit=5))
    orders.run("--streams", "2").succeeded()
    once = found(orders)
    with_rejects(orders)
    twice = {name: sorted(own * 2, key=repr) for name, own in once.items()}
    arguments = orders.arguments("--streams", "2")
    killed = orders.command([sys.executable, "-c", KILLED.format(moment=moment), *arguments[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    is_there = moment == "behind the commit"
    assert found(orders) == (twice if is_there else once)
    resumed = orders.resume()
    resumed.succeeded()
    assert found(orders) == twice
    tables = accounts(resumed, 2)
    assert {bool(own["bytes_read"]) for own in tables.values()} == {not is_there}
    assert {own["status"] for own in tables.values()} == {"success"}
    shown_rejects = orders.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    assert (shown_rejects.exit_code, "orders.2" in shown_rejects.stdout) == (0, True), shown_rejects.stderr
    assert orders.leftovers() == []


FAILS_ONCE = """
CREATE SEQUENCE public.commits;
CREATE FUNCTION public.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.slice > 0 AND NEW.task = 'load/many' AND nextval('public.commits') = 1 THEN
    RAISE EXCEPTION 'not now' USING ERRCODE = '40001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER fail_once BEFORE INSERT ON headrace.commit FOR EACH ROW EXECUTE FUNCTION public.fail_once()
"""


@pytest.mark.faults
def test_a_try_that_follows_begins_anew(stored: PostgresProject) -> None:
    """Of the first one the raw tables are committed out of sight, and kept, because trying again can help."""
    text = mixed("target: append")
    stored.package(text)
    stored.run().succeeded()
    rows = found(stored)
    stored.execute(FAILS_ONCE)
    stored.package(
        text.replace("    data_flow:", "    retry: {times: 3, wait_seconds: 0.2, factor: 1}\n    data_flow:")
    )
    ended = stored.run()
    ended.succeeded()
    assert any("is tried again" in str(event) for event in stored.events()), ended.stderr
    assert found(stored) == {name: sorted(own * 2, key=repr) for name, own in rows.items()}
    accounts(ended)
    assert stored.leftovers() == []


def test_loops_have_one_pass_for_each_turn(orders: Project) -> None:
    head, _, flow = raw_and_sums().partition("tasks:\n")
    flow = flow.replace("orders.*", "orders.${part}")
    for table in ("raw", "sums"):
        flow = flow.replace(f"table: {table}", f'table: "{table}_${{part}}"')
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    loop = f'  each:\n    foreach:\n      in: ["0", "1", "2"]\n      item: part\n      tasks:\n{inner}'
    before = "  before:\n    sql: {connection: warehouse, text: CREATE TABLE IF NOT EXISTS other (n INT)}\n"
    for tasks in (loop, f"{before}{loop}    after: before\n"):
        orders.package(f"{head}tasks:\n{tasks}")
        summary = orders.run().succeeded()
        names = [f"each[{part}].load/{name}" for part in "012" for name in ("raw", "sums")]
        assert [table["task"] for table in summary["tables"]] == names
        assert summary["rows_read"] == ROWS
        assert sum(len(loaded(orders, f"raw_{part}")) for part in "012") == ROWS
        union = " UNION ALL ".join(f"SELECT * FROM sums_{part}" for part in "012")
        counted = orders.query(f"SELECT CAST(sum(n) AS BIGINT), CAST(sum(ids) AS BIGINT) FROM ({union}) AS s")
        assert shown(counted) == shown([(ROWS, ROWS * (ROWS - 1) // 2)])


@pytest.mark.parametrize("kind", TOGETHER)
def test_rows_of_two_sources_are_raw_rows_too(project: Project, kind: str) -> None:
    """A run that goes on behind it knows for each table what was read of both sources."""
    project.execute("CREATE TABLE gate (open BOOL)")
    for number in range(2):
        ids = range(100 * number, 100 * number + 100)
        project.file(f"o.{number}", "".join(f"{own},2026-01-01\n" for own in ids))
        project.file(f"l.{number}", "".join(f"{own},{own}\n" * 2 for own in ids) + "x,1\n")
    text = JOINED.replace("TOGETHER", TOGETHER[kind]).replace("KEY", "line" if kind == "join" else "id")
    text = text.replace("      sources:", "      rejects: {limit: 2}\n      sources:")
    head, _, _ = text.partition("      destinations:\n")
    pairs = "        pairs: {input: pairs, connection: warehouse, table: pairs, target: replace}\n"
    rest = text[len(head) :].replace("      destinations:\n", f"      destinations:\n{pairs}")
    project.package(head + rest + BEHIND)
    failed = project.run()
    assert failed.exit_code == 1
    each = 2 if kind == "join" else 3
    assert project.query("FROM first") == [(0, 67 * each)]
    assert project.query("SELECT count(*) FROM pairs") == [(200 * each,)]
    project.execute("INSERT INTO gate VALUES (true)")
    resumed = project.resume()
    resumed.succeeded()
    for ended in (failed, resumed):
        for table in ended.summary["tables"]:
            assert table[kind] is not None, table["table"]
            assert table["rows_read"] == 602 and table["rows_rejected"] == 2
            if table["table"] != "pairs":
                assert table["gathered"]["rows_in"] == 200 * each
        assert ended.summary["rows_rejected"] == 2
        assert [table["rejects"]["count"] for table in ended.summary["tables"]] == [2, 0, 0]
    kept = failed.summary["tables"], resumed.summary["tables"]
    for before, after in zip(*kept, strict=True):
        assert (before[kind], before["rows_loaded"]) == (after[kind], after["rows_loaded"])


def test_too_small_a_budget_counts_the_queries(orders: Project) -> None:
    orders.package(raw_and_sums())
    ended = orders.run("--set", "memory=90MB")
    assert ended.exit_code == 1
    needed = re.search(r"expected: at least (\d+) MB", ended.error)
    assert needed is not None, ended.error
    orders.run("--set", f"memory={needed[1]}MB").succeeded()
    planned = orders.command([*orders.arguments()[:3], "plan", str(orders.folder / "package.yaml")])
    assert planned.exit_code == 0, planned.stderr
    assert "queries over all rows 200 MB" in " ".join(planned.stdout.split())


def test_partitions_on_both_ways(orders: Project) -> None:
    text = raw_and_sums(sums=SUMS.replace("GROUP BY", "WHERE quantity IS NOT NULL GROUP BY"))
    for name, column in (("raw", "id"), ("sums", "quantity")):
        text = text.replace(
            f"table: {name}, target: replace",
            f"table: {name}, target: replace, load: staged, partition: {{hash: {{column: {column}, parts: 3}}}}",
        )
    orders.package(text)
    summary = orders.run("--streams", "4").succeeded()
    sums = expected(orders, SUMS.replace("GROUP BY", "WHERE quantity IS NOT NULL GROUP BY"))
    with duckdb.connect() as connection:
        assert loaded(orders, "sums") == shown(connection.sql(sums).fetchall())
    assert len(loaded(orders, "raw")) == ROWS
    assert summary["rows_read"] == ROWS
    assert orders.leftovers() == []


@pytest.mark.faults
@pytest.mark.parametrize("kind", TOGETHER)
def test_a_kill_behind_the_pass_of_two_sources_begins_anew(warehouse: PostgresProject, kind: str) -> None:
    """Lines of pairs that the run folder keeps are of another attempt."""
    for number in range(2):
        ids = range(100 * number, 100 * number + 100)
        warehouse.file(f"o.{number}", "".join(f"{own},2026-01-01\n" for own in ids))
        warehouse.file(f"l.{number}", "".join(f"{own},{own}\n" * 2 for own in ids))
    text = JOINED.replace("TOGETHER", TOGETHER[kind]).replace("KEY", "line" if kind == "join" else "id")
    pairs = "        pairs: {input: pairs, connection: warehouse, table: pairs, target: append}\n"
    text = text.replace("      destinations:\n", f"      destinations:\n{pairs}").replace("replace", "append")
    warehouse.package(text)
    warehouse.run().succeeded()
    each = 2 if kind == "join" else 3
    moment = KILLED.format(moment="behind pass 1")
    killed = warehouse.command([sys.executable, "-c", moment, *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    assert len(loaded(warehouse, "pairs")) == 200 * each
    warehouse.resume().succeeded()
    assert len(loaded(warehouse, "pairs")) == 2 * 200 * each
    assert loaded(warehouse, "first") == shown([(0, 67 * each)] * 2)
    assert warehouse.leftovers() == []


def test_without_files_there_is_nothing_to_load(orders: Project) -> None:
    for path in orders.inbox.glob("orders.*"):
        path.unlink()
    orders.package(mixed().replace("layout: orders}", "layout: orders, missing: skip}"))
    ended = orders.run()
    assert ended.exit_code == 0, ended.stderr
    assert ended.summary["tables"] == []
    assert orders.tables() == []


def test_values_that_are_ignored_are_counted_on_each_way(orders: Project) -> None:
    orders.execute("CREATE TABLE gate (open BOOL)")
    path = orders.inbox / "orders.1"
    path.write_text(path.read_text() + "9|1.00|many||||2026-01-01|true\n")
    text = raw_and_sums().replace('type: "int32"}', 'type: "int32", on_error: ignore}')
    orders.package(text + BEHIND)
    failed = orders.run("--streams", "4")
    assert failed.exit_code == 1
    orders.execute("INSERT INTO gate VALUES (true)")
    resumed = orders.resume()
    resumed.succeeded()
    for ended in (failed, resumed):
        assert [own["values_ignored"] for own in ended.summary["tables"]] == [1, 1]
        assert [own["ignored"] for own in ended.summary["tables"]] == [{"quantity": {"nulls": 1, "cut": 0}}] * 2


def test_the_query_that_fails_is_told_whoever_was_told_first(orders: Project) -> None:
    """The tables lack their rows in consequence."""
    fails = SUMS.replace("sum(id)", "sum(CASE WHEN id > 1000 THEN error('no such id') ELSE id END)")
    orders.package(mixed().replace(SUMS, fails))
    for _ in range(3):
        ended = orders.run("--streams", "4")
        assert ended.exit_code == 1
        assert "the query of transform `sums` failed" in ended.error and "no such id" in ended.error, ended.stderr
    nothing_became_visible(orders)
