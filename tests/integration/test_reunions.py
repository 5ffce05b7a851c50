"""Unions of rows that have gone different ways, into null and DuckDB: rows, their order, accounts, rejects, replay."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.integration import join_scenes, union_scenes
from tests.integration.driver import Project
from tests.integration.reunion_scenes import IN_PIECES, LABELLED, LABELS, PIECES
from tests.integration.several_scenes import ROWS, accounts, expected, loaded, package, write_files
from tests.snapshots import assert_snapshot

HEADRACE = [sys.executable, "-m", "headrace"]


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


@pytest.mark.parametrize("streams", ["1", "16"])
def test_rows_of_two_ways_come_together(orders: Project, streams: str) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}))
    ended = orders.run("--streams", streams)
    rows = expected(orders, LABELS)
    assert loaded(orders, "sales") == rows
    assert accounts(ended) == {"sales": (ROWS, len(rows), ROWS - len(rows), 0)}
    kinds = {own["name"]: (own["kind"], own["rows"]) for own in ended.summary["tables"][0]["transforms"]}
    assert kinds["labelled"] == ("union", len(rows))
    assert kinds["keyed"] == ("lookup", ROWS)


@pytest.mark.parametrize("streams", ["1", "16"])
def test_unions_of_unions_and_columns_that_some_lack(orders: Project, streams: str) -> None:
    orders.package(package(PIECES, {"sales": "pieces"}))
    ended = orders.run("--streams", streams)
    rows = expected(orders, IN_PIECES)
    assert [column[0] for column in orders.query("DESCRIBE sales")] == ["id", "customer", "amount", "note", "double"]
    assert loaded(orders, "sales") == rows
    assert accounts(ended) == {"sales": (ROWS, len(rows), ROWS - len(rows), 0)}


def test_several_destinations_share_what_comes_together(orders: Project) -> None:
    behind = """
        sized: {input: labelled, split: {known: "label <> 'unknown'"}}
        again: {union: {inputs: [sized.rest, sized.known]}}
"""
    destinations = {"sales": "again", "known": "sized.known", "rest": "sized.rest", "missed": "keyed.no_match"}
    orders.package(package(LABELLED + behind, destinations))
    ended = orders.run("--streams", "3")
    wanted = {
        "sales": LABELS,
        "known": f"FROM ({LABELS}) WHERE label <> 'unknown'",
        "rest": f"FROM ({LABELS}) WHERE label = 'unknown'",
        "missed": "FROM orders ANTI JOIN customers ON code = customer",
    }
    rows = {name: expected(orders, query) for name, query in wanted.items()}
    assert {name: loaded(orders, name) for name in wanted} == rows
    assert accounts(ended) == {name: (ROWS, len(own), ROWS - len(own), 0) for name, own in rows.items()}
    assert ended.summary["rows_filtered"] == ROWS - len(rows["sales"]), "what the query leaves out, once"


def test_null_takes_them_too(orders: Project) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}))
    ended = orders.run("--connection", "warehouse=null:", "--streams", "2")
    assert accounts(ended)["sales"][1] == len(expected(orders, LABELS))


@pytest.mark.parametrize(
    "clauses",
    [
        ", load: view, partition: {range: {column: id, every: 2000}}",
        ", partition: {hash: {column: id, parts: 3}}",
        ", commit: {rows: 700}",
    ],
)
def test_however_the_table_is_divided_or_committed(orders: Project, clauses: str) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}, clauses))
    for streams in ("1", "16"):  # the second one takes the place of the first
        orders.run("--streams", streams).succeeded()
        assert loaded(orders, "sales") == expected(orders, LABELS)


def test_queries_over_all_rows_behind_it_and_in_front(orders: Project) -> None:
    counted = """
        counted: {input: labelled, sql: "SELECT label, count(*) AS n FROM labelled GROUP BY label"}
"""
    orders.package(package(LABELLED + counted, {"sales": "counted"}))
    orders.run().succeeded()
    assert loaded(orders, "sales") == expected(orders, f"SELECT label, count(*) FROM ({LABELS}) GROUP BY label")
    latest = """
        latest: {input: orders, sql: "SELECT customer, max(amount) AS amount FROM orders GROUP BY customer"}
"""
    orders.package(package(latest + LABELLED.replace("input: orders", "input: latest"), {"latest": "labelled"}))
    orders.run().succeeded()
    latest_rows = "(SELECT 0 AS id, customer, max(amount) AS amount, '' AS note FROM orders GROUP BY customer)"
    query = f"SELECT customer, amount, label FROM ({LABELS.replace('FROM orders', f'FROM {latest_rows} AS orders')})"
    assert loaded(orders, "latest") == expected(orders, query)


def test_rejects_of_all_ways_and_their_replay(orders: Project) -> None:
    """A value that one way cannot convert; the repaired row goes through the same graph."""
    lines = "1|1|5.00|\n2|3|7.00|no number\n3|3|8.00|\nbad|1|1.00|\n4|2|9.00|\n"
    (orders.inbox / "orders.1").write_text(lines)
    (orders.inbox / "orders.2").unlink()
    guessed = "SELECT CASE WHEN note IS NULL THEN 'unknown' ELSE CAST(CAST(note AS INTEGER) AS VARCHAR) END AS label, *"
    text = package(LABELLED.replace("SELECT 'unknown' AS label, *", guessed), {"sales": "labelled"})
    orders.package(text)
    ended = orders.run("--set", "limit=5", "--streams", "1")
    assert accounts(ended) == {"sales": (5, 3, 0, 2)}
    assert [row[0] for row in orders.query("SELECT id FROM sales")] == [1, 3, 4]
    (table,) = ended.summary["tables"]
    assert [(own["row"], own["rule"]) for own in table["rejects"]["first"]] == [(2, "expression"), (4, "bad_integer")]
    copied = orders.command([*HEADRACE, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    assert copied.exit_code == 0, copied.stderr
    again = orders.folder / "again.csv"
    again.write_text(again.read_text().replace("no number", "12").replace("bad|1", "5|1"))
    replayed = orders.command([*HEADRACE, "replay", "--runs-dir", "runs", "--json", "last", "again.csv"])
    assert replayed.exit_code == 0, replayed.stderr
    assert orders.query("SELECT id, label FROM sales ORDER BY id") == [
        (1, "customer 1"),
        (2, "12"),
        (3, "unknown"),
        (4, "customer 2"),
        (5, "customer 1"),
    ]


def test_what_the_table_cannot_hold_is_a_reject_behind_the_union(orders: Project) -> None:
    orders.execute("CREATE TABLE sales (id BIGINT, label VARCHAR NOT NULL, amount DECIMAL(9,2) NOT NULL)")
    text = package(LABELLED, {"sales": "labelled"}, ", columns: {id: id, label: label, amount: amount}")
    orders.package(text)
    ended = orders.run("--set", f"limit={ROWS}", "--streams", "2")
    ended.succeeded()
    rows = expected(orders, f"SELECT id, label, amount FROM ({LABELS}) WHERE amount IS NOT NULL")
    assert loaded(orders, "sales") == rows
    rejected = len(expected(orders, f"FROM ({LABELS}) WHERE amount IS NULL"))
    assert accounts(ended)["sales"] == (ROWS, len(rows), ROWS - len(rows) - rejected, rejected)
    shown = orders.command([*HEADRACE, "rejects", "--runs-dir", "runs", "last"]).stdout
    assert "which is NOT NULL in destination `sales`" in " ".join(shown.split())


def test_a_row_that_breaks_a_constraint_is_found(orders: Project) -> None:
    orders.execute("CREATE TABLE sales (id BIGINT UNIQUE, label VARCHAR)")
    (orders.inbox / "orders.1").write_text("1|1|5.00|\n2|3|7.00|\n3|3|0.50|\n4|1|5.00|\n2|2|9.00|\n")
    (orders.inbox / "orders.2").unlink()
    orders.package(package(LABELLED, {"sales": "labelled"}, ", columns: {id: id, label: label}"))
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot("reunion_constraint", orders.stable(ended.error))


def test_a_killed_run_is_resumed(orders: Project) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}))
    with orders.started(orders.arguments("--streams", "2")) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    assert loaded(orders, "sales") == expected(orders, LABELS)


def test_check_plan_graph_and_report_show_it(orders: Project) -> None:
    orders.package(package(LABELLED, {"sales": "labelled"}))
    checked = orders.command([*HEADRACE, "check", "package.yaml"])
    assert " ".join(checked.stdout.split()).count("warehouse.sales 5 replace") == 1, checked.stdout
    planned = orders.command([*HEADRACE, "plan", "package.yaml"])
    assert_snapshot("reunion_plan", orders.stable(planned.stdout))
    graph = orders.command([*HEADRACE, "plan", "package.yaml", "--graph", "mermaid"])
    assert_snapshot("reunion_graph", orders.stable(graph.stdout))
    ended = orders.command([*HEADRACE, "run", "package.yaml", "--runs-dir", "runs", "--quiet"])
    assert f"union labelled: {len(expected(orders, LABELS)):,} rows" in ended.stdout
    made = orders.command([*HEADRACE, "report", "--runs-dir", "runs", "last", "--output", "report.html"])
    assert made.exit_code == 0, made.stderr


APART = """
        sized:
          input: BEGINNING
          split: {cheap: "price < 30", dear: "price > 60"}
        marked: {input: sized.dear, sql: "SELECT *, 'dear' AS mark FROM sized WHERE number % 5 <> 1"}
        whole: {union: {inputs: [sized.rest, marked, sized.cheap], missing: null}}
      destinations:"""


@pytest.mark.parametrize("clauses", ["", ", load: view, partition: {hash: {column: number, parts: 3}}"])
def test_rows_of_a_join_part_and_come_together(project: Project, clauses: str) -> None:
    join_scenes.write_files(project)
    text = join_scenes.PACKAGE.replace("      destinations:", APART.strip("\n").replace("BEGINNING", "joined"))
    text = text.replace("input: joined, connection", "input: whole, connection")
    project.execute("CREATE TABLE sales (number INTEGER NOT NULL, price DECIMAL(9,2), mark VARCHAR)")
    columns = ", columns: {number: number, price: price, mark: mark}"
    project.package(join_scenes.of_type("full", text).replace('target: "${target}"', f'target: "${{target}}"{columns}'))
    ended = project.run("--set", "limit=100000", streams=3)
    ended.succeeded()
    join = join_scenes.JOIN.format(kind="FULL", inbox=project.inbox)
    dear = "price > 60 AND (price < 30) IS NOT TRUE"
    query = (
        f"SELECT number, price, CASE WHEN {dear} THEN 'dear' END AS mark FROM ({join}) "
        f"WHERE ({dear} AND (number % 5 <> 1) IS NOT TRUE) IS NOT TRUE AND number IS NOT NULL"
    )
    assert loaded(project, "sales") == sorted(join_scenes.rows_of(query), key=repr)
    assert not clauses or ended.summary["tables"][0]["rows_rejected"] > 0


def test_rows_of_a_union_of_sources_part_and_come_together(project: Project) -> None:
    union_scenes.write_files(project)
    project.package(
        union_scenes.package(
            'parted: {input: united, split: {some: "id % 3 = 0"}, discard: [rest]}',
            'odd: {input: parted.some, split: {odd: "id % 2 = 1"}}',
            'noted: {input: odd.odd, sql: "SELECT *, id + 1 AS next FROM odd WHERE id % 5 <> 0"}',
            "again: {union: {inputs: [noted, odd.rest], missing: null}}",
            input="again",
        )
    )
    project.run(streams=5).succeeded()
    query = (
        "SELECT id, amount, day, note, channel, CASE WHEN id % 2 = 1 THEN id + 1 END AS next FROM rows "
        "WHERE id % 3 = 0 AND (id % 2 = 1 AND id % 5 = 0) IS NOT TRUE"
    )
    names = [row[0] for row in project.query("DESCRIBE orders")]
    assert names == ["id", "amount", "day", "note", "channel", "next"]
    assert union_scenes.differences(project, query)[:2] == (0, 0)
