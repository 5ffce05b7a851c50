"""Transforms in front of unions and joins, into DuckDB: the rows of plain SQL over the same files, whatever the
streams; accounts, rejects, several destinations, memory, messages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.front_scenes import (
    IN_ORDER,
    PRICED,
    join_package,
    joined,
    rows,
    transforms,
    union_package,
    write_join_files,
    write_union_files,
)
from tests.integration.gate import BEHIND
from tests.integration.join_scenes import TYPES
from tests.integration.union_scenes import ROWS, sources
from tests.snapshots import assert_snapshot


@pytest.fixture
def orders(project: Project) -> Project:
    write_union_files(project)
    project.package(union_package())
    return project


@pytest.fixture
def sales(project: Project) -> Project:
    write_join_files(project)
    project.package(join_package("inner"))
    return project


def stored(project: Project, table: str = "orders") -> list[tuple[Any, ...]]:
    return project.query(f"SELECT * FROM {table} ORDER BY ALL")


def headrace(project: Project, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", *arguments])


@pytest.mark.parametrize("streams", ["1", "16"])
def test_a_union_has_the_rows_behind_what_stands_in_front(orders: Project, streams: str) -> None:
    ended = orders.run(streams=streams)
    told = sources(ended)
    assert stored(orders) == rows(orders)
    assert {name: own[2] for name, own in told.items()} == ROWS
    (table,) = ended.summary["tables"]
    assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"]
    assert ended.summary["rows_filtered"] == table["rows_filtered"] > 0
    found = transforms(ended)
    assert list(found) == ["priced", "keyed", "parted"]
    left_out = rows(orders, "SELECT count(*) FROM old WHERE id % 3 = 0")[0][0]
    assert (found["priced"], found["keyed"][0]) == ((ROWS["old"], left_out, 0), ROWS["new"])
    assert orders.leftovers() == []


@pytest.mark.parametrize("kind", TYPES)
def test_a_join_has_the_rows_behind_what_stands_in_front(sales: Project, kind: str) -> None:
    sales.package(join_package(kind))
    wanted, accounts = joined(sales, kind), []
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        ended.succeeded()
        assert stored(sales, "sales") == wanted, streams
        accounts.append(ended.summary["tables"][0]["join"])
    assert accounts[0] == accounts[1]
    account, found = accounts[0], transforms(ended)
    assert account["rows_out"] == len(wanted)
    for side, first in (("left", "open"), ("right", "keyed")):
        own = account[side]
        assert own["lines"] - own["rows_skipped"] == own["rows"] + own["filtered_in_front"] == found[first][0]
        assert own["filtered_in_front"] > 0
        assert own["filtered"] == (0 if kind in (side, "full") else own["unmatched"])
    sides = account["left"], account["right"]
    left_out = sum(own["filtered"] + own["filtered_in_front"] for own in sides)
    assert ended.summary["rows_filtered"] == left_out


def test_texts_take_the_longest_type_of_what_comes_together(orders: Project) -> None:
    """What is computed has no length; a source beside it has one."""
    fronts = """cut: {input: old, sql: "SELECT id, upper(note) AS channel FROM old"}
        united: {union: {inputs: [new, cut, placed], missing: "null"}}"""
    orders.package(union_package(fronts, more="columns: {id: id, channel: channel}"))
    orders.run().succeeded()
    sql = "SELECT id, channel FROM new UNION ALL SELECT id, upper(note) FROM old UNION ALL SELECT id, NULL FROM placed"
    assert stored(orders) == rows(orders, sql)


def test_several_destinations_behind_a_union(orders: Project) -> None:
    orders.package(
        union_package(
            PRICED,
            'sorted: {input: united, split: {dear: "amount > 400"}}',
            destinations="dear: {input: sorted.dear, connection: warehouse, table: orders, target: replace}\n"
            "        rest: {input: sorted.rest, connection: warehouse, table: others, target: replace}\n"
            "        whole: {input: united, connection: warehouse, table: whole, target: replace}",
        )
    )
    ended = orders.run()
    told = sources(ended)
    for table, condition in (("orders", "amount > 400"), ("others", "(amount > 400) IS NOT TRUE"), ("whole", "true")):
        assert stored(orders, table) == rows(orders, f"SELECT * FROM ({IN_ORDER}) WHERE {condition}"), table
    assert {name: own[2] for name, own in told.items()} == ROWS
    for table in ended.summary["tables"]:
        assert table["rows_read"] == sum(ROWS.values()) == table["rows_loaded"] + table["rows_filtered"]
    left_out = sum(ROWS.values()) - len(rows(orders))
    assert ended.summary["rows_filtered"] == left_out
    verified = headrace(orders, "verify", "--runs-dir", "runs", "last")
    assert "its rows have passed" in " ".join(verified.stdout.split()), verified.stdout + verified.stderr


def test_several_destinations_behind_a_join(sales: Project) -> None:
    text = join_package("left").replace(
        "        sales: {input: joined,",
        "        clerks: {input: parts.known, connection: warehouse, table: clerks, target: replace}\n"
        "        sales: {input: joined,",
    )
    parts = "        parts: {input: joined, split: {known: clerk IS NOT NULL}, discard: [rest]}\n"
    text = text.replace("      destinations:", f"{parts}      destinations:")
    sales.package(text)
    ended = sales.run()
    ended.succeeded()
    wanted = joined(sales, "left")
    assert stored(sales, "sales") == wanted
    assert stored(sales, "clerks") == [row for row in wanted if row[1] is not None]
    sides = [ended.summary["tables"][0]["join"][side] for side in ("left", "right")]
    left_out = sum(own["filtered"] + own["filtered_in_front"] for own in sides)
    without = len(wanted) - len(stored(sales, "clerks"))
    assert ended.summary["rows_filtered"] == left_out + without


def test_queries_over_all_rows_behind_it(orders: Project, sales: Project) -> None:
    """Behind a union, and behind a join."""
    sql = "SELECT season, count(*) AS n, sum(amount) AS total FROM united GROUP BY season"
    orders.package(union_package(PRICED, f'sums: {{input: united, sql: "{sql}"}}', input="sums"))
    ended = orders.run()
    assert stored(orders) == rows(orders, sql.replace("united", f"({IN_ORDER})"))
    assert list(transforms(ended)) == ["priced", "keyed", "parted", "sums"]


FAILING = """priced: {input: old, sql: "SELECT * REPLACE (CAST(note AS INTEGER) AS note) FROM old"}
        keyed: {input: new, lookup: {connection: inbox, files: days.csv, layout: days, on: {Day: day}, add: [season]}}
        united: {union: {inputs: [priced, keyed, placed], missing: "null"}}"""


def rejects(ended: Ended, project: Project, place: int = 0) -> list[dict[str, Any]]:
    table = ended.succeeded()["tables"][place]
    lines = Path(project.folder, table["rejects"]["files"][0]).read_text().splitlines()
    return sorted(map(json.loads, lines), key=lambda own: (own["file"], own["row"]))


def test_rejects_in_front_of_a_union_are_rows_of_their_files(orders: Project) -> None:
    """One by a query, some by a lookup, one by the parser, one behind the union."""
    for path in [*orders.inbox.glob("old*"), *orders.inbox.glob("new*")]:
        path.unlink()
    old = "id;amount;day;note\r\n1;1,5;01.02.2024;7\r\n2;1,5;01.02.2024;x\r\n3;x;01.02.2024;4\r\n"
    new = "id|Day|channel|amount\n4|2024-01-01|web|1\n5|2024-01-25|web|2\n6|2024-01-02|web|3\n"
    orders.file("old.0.csv", old)
    orders.file("new.0.txt", new)
    orders.execute("CREATE TABLE orders (id BIGINT, amount DECIMAL(9,2), day DATE, note INTEGER, channel VARCHAR, "
                   "season VARCHAR)")  # fmt: skip
    behind = "late: {input: united, sql: \"SELECT * REPLACE (IF(id = 200007, error('late'), id) AS id) FROM united\"}"
    orders.package(union_package(FAILING, behind, input="late"))
    found = []
    for streams in ("1", "16"):
        ended = orders.run(streams=streams, limit=4)
        found.append([(Path(own["file"]).name, own["row"], own["byte"]) for own in rejects(ended, orders)])
    # Of a query nobody knows which value was wrong: the place is that of the row.
    assert (
        found[0]
        == found[1]
        == [
            ("new.0.txt", 3, new.index("2024-01-25")),
            ("old.0.csv", 3, old.index("2;")),
            ("old.0.csv", 4, old.index("x;01")),
            ("placed.txt", 8, 7 * 29),
        ]
    )
    (table,) = ended.summary["tables"]
    assert {one["source"]: one["rows_rejected"] for one in table["union"]["sources"]} == {
        "old": 2,
        "new": 1,
        "placed": 1,
    }
    assert transforms(ended)["priced"] == (2, 0, 1) and transforms(ended)["keyed"][2] == 1
    assert [row[0] for row in stored(orders)][:3] == [1, 4, 6]
    assert orders.run(limit=3).exit_code == 1


def test_rejects_in_front_of_a_join_are_rows_of_their_files(sales: Project) -> None:
    for path in [*sales.inbox.glob("orders*"), *sales.inbox.glob("lines*")]:
        path.unlink()
    orders = "2|a|2024-01-01\n3|b|2024-01-01\n4|c|bad\n6|d|2024-01-01\n"
    lines = "number,key,price\n1,2,1\n14,3,2\n2,3,1.5\n3,6,1\n4,6,1\n"
    sales.file("orders.0", orders)
    sales.file("lines.0", lines)
    text = join_package("full").replace("no_match: {default: none}", "no_match: reject")
    text = text.replace(
        "o_key + 1 AS key, o_clerk AS clerk", "IF(o_clerk = 'd', error('no d'), o_key + 1) AS key, o_clerk AS clerk"
    )
    sales.package(text)
    ended = sales.run(limit=10)
    found = [(Path(own["file"]).name, own["row"], own["byte"]) for own in rejects(ended, sales)]
    assert found == [
        ("lines.0", 2, lines.index("1,2,1")), ("lines.0", 4, lines.index("2,3,1.5")),
        ("lines.0", 5, lines.index("3,6,1")), ("lines.0", 6, lines.index("4,6,1")),
        ("orders.0", 3, orders.index("bad")), ("orders.0", 4, orders.index("6|d")),
    ]  # fmt: skip
    account = ended.summary["tables"][0]["join"]
    assert [account[side]["rows_rejected"] for side in ("left", "right")] == [2, 4]
    assert [account[side]["rejected_behind"] for side in ("left", "right")] == [0, 0]
    assert [row[:2] for row in stored(sales, "sales")] == [(3, "a"), (4, "b")]


def test_a_row_against_the_order_is_named_where_it_stands(sales: Project) -> None:
    """Rows that a query leaves out, and those that are rejected, are counted."""
    sales.file(
        "orders.0", "2|a|2024-01-01\n5|left out|2024-01-01\n4|c|2024-01-01\n9|left out|2024-01-01\n3|d|2024-01-01\n"
    )
    sales.file("lines.0", "number,key,price\n1,2,1\n")
    error = sales.stable(sales.run(orders="orders.0", lines="lines.0").error)
    assert_snapshot("front/disorder", error)
    # Rows of the file may be in any order, if the keys behind the query ascend.
    text = (
        join_package("inner").replace("o_key + 1 AS key", "-o_key AS key").replace("l_key + 1 AS key", "-l_key AS key")
    )
    sales.package(text)
    sales.file("orders.0", "8|a|2024-01-01\n4|b|2024-01-01\n2|c|2024-01-01\n")
    sales.file("lines.0", "number,key,price\n1,8,1\n2,4,1\n3,4,2\n4,1,1\n")
    sales.run(orders="orders.0", lines="lines.0").succeeded()
    assert [row[:2] + row[3:5] for row in stored(sales, "sales")] == [(-8, "a", 1, 1), (-4, "b", 2, 1), (-4, "b", 3, 2)]


def test_a_row_that_breaks_a_constraint_is_named(orders: Project) -> None:
    orders.execute("CREATE TABLE orders (id BIGINT CHECK (id <> 200001), amount DECIMAL(9,2), day DATE, note VARCHAR, "
                   "channel VARCHAR, season VARCHAR)")  # fmt: skip
    orders.package(union_package().replace("target: replace", "target: append"))
    error = orders.stable(orders.run().error)
    assert "placed.txt, row 2" in error, error
    orders.execute("DROP TABLE orders", "CREATE TABLE orders (id BIGINT, amount DECIMAL(9,2), day DATE, note VARCHAR, "
                   "channel VARCHAR, season VARCHAR CHECK (season <> 'season 2'))")  # fmt: skip
    error = orders.stable(orders.run().error)
    assert "new.0.gz, row " in error, error


def test_what_stands_in_no_file_may_pass_what_is_in_front_of_a_join(sales: Project) -> None:
    text = join_package("inner").replace(
        "- {name: o_day, type: date}",
        "- {name: o_day, type: date}\n      - {name: file, type: string, from: file_name}\n"
        "      - {name: row, type: int64, from: row_number}",
    )
    text = text.replace("o_clerk AS clerk, o_day FROM", "o_clerk || file AS clerk, row FROM")
    sales.package(text)
    sales.run(streams="16").succeeded()
    assert len(stored(sales, "sales")) == len(joined(sales, "inner"))
    sql = "SELECT count(*), count(DISTINCT row), min(row) FROM sales WHERE clerk LIKE '%orders.2'"
    (count, rows_of_file, first) = sales.query(sql)[0]
    assert count > rows_of_file > 100 and first < 10
    lines = (sales.inbox / "orders.2").read_text().splitlines()
    key, row = sales.query("SELECT key, row FROM sales WHERE clerk LIKE '%orders.2' ORDER BY row DESC")[0]
    assert lines[row - 1].startswith(f"{key - 1}|")


@pytest.mark.parametrize("behind", ["", "sql"])
def test_a_lookup_of_a_table_in_front(sales: Project, behind: str) -> None:
    """Its columns are known when the flow starts."""
    columns = "columns={'number': 'INTEGER', 'label': 'VARCHAR'}"
    sales.execute(f"CREATE TABLE prices AS FROM read_csv('{sales.inbox}/prices.csv', header=false, {columns})")
    text = join_package("left").replace(
        "connection: inbox, files: prices.csv, layout: prices", "connection: warehouse, table: prices"
    )
    if behind:
        text = text.replace(
            "      destinations:",
            "        behind: {input: joined, sql: \"FROM joined WHERE label <> 'none'\"}\n      destinations:",
        )
        text = text.replace("input: joined, connection", "input: behind, connection")
    sales.package(text)
    sales.run().succeeded()
    wanted = joined(sales, "left")
    labels = [row for row in wanted if row[-1] not in (None, "none")]
    assert len(labels) > 5
    assert stored(sales, "sales") == (labels if behind else wanted)
    # What does not fit is told before the first row.
    sales.package(text.replace("on: {key: key}", "on: {key: label}"))
    assert "keys of the types int64 and string cannot be compared" in " ".join(sales.run().error.split())


def test_partitions_and_null(orders: Project) -> None:
    more = (
        "load: view, partition: {list: {column: season, values: {first: [season 0], none: [null]}}, outside: default}"
    )
    orders.package(union_package(more=more))
    orders.run().succeeded()
    assert stored(orders) == rows(orders)
    orders.package(union_package())
    ended = orders.run("--connection", "warehouse=null:")
    assert ended.succeeded()["rows_loaded"] == len(rows(orders))


def test_plan_check_and_graph(sales: Project) -> None:
    plan = headrace(sales, "plan", "package.yaml")
    assert_snapshot("front/plan", sales.stable(plan.stdout))
    (task,) = json.loads(headrace(sales, "plan", "package.yaml", "--json").stdout)["tasks"]
    assert task["flow"]["join"]["inputs"] == [{"transform": 0, "output": 0}, {"transform": 3, "output": 0}]
    assert [own.get("source") for own in task["flow"]["transforms"]] == [0, 1, 1, 1]
    assert [own.get("in_front_of") for own in task["transforms"]] == ["joined"] * 4
    assert_snapshot("front/check", sales.stable(headrace(sales, "check", "package.yaml").stdout))
    assert_snapshot("front/graph", headrace(sales, "plan", "package.yaml", "--graph", "mermaid").stdout)


def test_accounts_and_report(sales: Project) -> None:
    sales.package(join_package("left"))
    shown = headrace(sales, "run", "package.yaml", "--runs-dir", "runs")
    told = " ".join(shown.stdout.split())
    assert "join joined: orders 17,354 rows (6,024 left out in front), 8,352 matched, 9,002 kept" in told
    assert "query open: 23,378 rows, 17,354 went on, 6,024 left out" in told
    headrace(sales, "report", "--runs-dir", "runs", "last")
    (page,) = sales.runs.glob("*/report.html")
    text = page.read_text()
    assert "do not balance" not in text and "left out in front" in text


def test_verify(orders: Project) -> None:
    """What goes through splits alone into several destinations is compared; everything else says why it is not."""
    fronts = """parted: {input: old, split: {some: "id % 3 = 0"}, discard: [rest]}
        united: {union: {inputs: [parted.some, new, placed], missing: "null"}}"""
    destinations = (
        "dear: {input: sorted.dear, connection: warehouse, table: orders, target: replace}\n"
        "        rest: {input: sorted.rest, connection: warehouse, table: others, target: replace}"
    )
    text = union_package(fronts, 'sorted: {input: united, split: {dear: "amount > 400"}}', destinations=destinations)
    orders.package(text)
    orders.run().succeeded()
    verified = headrace(orders, "verify", "--runs-dir", "runs", "last")
    assert (verified.exit_code, "2 of 2 tables equal" in verified.stdout) == (0, True), (
        verified.stdout + verified.stderr
    )
    orders.execute("UPDATE others SET amount = 1.5 WHERE id = (SELECT min(id) FROM others)")
    verified = headrace(orders, "verify", "--runs-dir", "runs", "last")
    assert (verified.exit_code, "amount" in verified.stdout) == (1, True)
    orders.package(union_package())
    orders.execute("DROP TABLE orders")
    orders.run().succeeded()
    verified = headrace(orders, "verify", "--runs-dir", "runs", "last")
    assert "its rows have passed a query" in " ".join(verified.stdout.split())


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["union", "join"])
def test_a_resumed_run_tells_what_a_complete_table_has_passed(orders: Project, sales: Project, kind: str) -> None:
    project = orders
    project.package((union_package() if kind == "union" else join_package("left")) + BEHIND)
    project.execute("CREATE TABLE gate (n INTEGER)")
    failed = project.run()
    assert failed.exit_code == 1 and "the gate is closed" in failed.error
    project.execute("INSERT INTO gate VALUES (1)")
    resumed = project.resume().succeeded()
    (before,), (after,) = (summary["tables"] for summary in (failed.summary, resumed))
    assert after[kind] == before[kind]
    names = ("rows", "matched", "filtered", "rejected")
    counts = [[[own[name] for name in names] for own in table["transforms"]] for table in (before, after)]
    assert counts[0] == counts[1] and len(counts[0]) > 2
    for name in ("lines", "rows_read", "rows_filtered", "rows_loaded"):
        assert after[name] == before[name]
    assert resumed["rows_filtered"] == failed.summary["rows_filtered"]


def test_turns_of_a_loop_are_told_together(sales: Project) -> None:
    head, _, tasks = join_package("inner").partition("tasks:\n")
    flow = "".join(f"      {line}\n" for line in tasks.replace("${target}", "append").splitlines())
    loop = f"tasks:\n  turns:\n    foreach:\n      in: [1, 2]\n      item: turn\n      tasks:\n{flow}"
    sales.package(head + loop)
    shown = headrace(sales, "run", "package.yaml", "--runs-dir", "runs")
    assert "orders 34,708 rows (12,048 left out in front)" in " ".join(shown.stdout.split()), (
        shown.stdout + shown.stderr
    )
