"""Queries over all rows where other things are around them: loops, transactions, other packages, lookups, secrets, and
values that one of two systems treats in its own way. Into DuckDB and PostgreSQL.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, order, package, write_files

COUNTED = "SELECT quantity, count(*) AS n FROM orders GROUP BY quantity"


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def rows(project: Project, sql: str) -> list[tuple[Any, ...]]:
    """As text, whatever the database."""
    return [tuple(None if value is None else str(value) for value in row) for row in project.query(sql)]


def counts(project: Project, table: str = "out") -> list[tuple[Any, ...]]:
    return rows(project, f"SELECT count(*), sum(n) FROM {table}")


def parted(project: Project, *queries: str, **settings: Any) -> tuple[str, str]:
    """The head of the package, and the body of its task."""
    project.package(package(*queries, **settings))
    head, body = (project.folder / "package.yaml").read_text().split("  load:\n")
    return head, body


def write(project: Project, text: str) -> None:
    (project.folder / "package.yaml").write_text(text)


@pytest.mark.rotates
def test_in_a_long_loop_its_rows_are_added_up(project: Project) -> None:
    orders = project
    orders.file("orders.0", "".join(map(order, range(20))))
    head, body = parted(orders, COUNTED, destination="table: out, target: append")
    loop = "  turns:\n    foreach:\n      item: turn\n      range: {from: 1, to: 103}\n      tasks:\n        load:\n"
    write(orders, head + loop + textwrap.indent(body, "      "))
    summary = orders.run().succeeded()
    (each,) = {json.dumps(table["gathered"]) for table in summary["tables"][:-1]}
    own = json.loads(each)
    folded = summary["tables"][-1]
    assert (folded["flows"], own["rows_in"]) == (3, 20)
    assert folded["gathered"] == {name: 3 * count for name, count in own.items()}
    assert counts(orders) == [(str(103 * own["rows_out"]), str(103 * 20))]


def test_in_a_transaction_all_or_nothing_is_stored(orders: Project) -> None:
    head, body = parted(orders, COUNTED, destination="table: out, target: replace")
    other = body.replace("table: out,", "table: second,").replace("count(*) AS n", "count(*) + $more AS n")
    head = head.replace("parameters:\n", "parameters:\n  more: {type: integer, default: 1}\n")
    members = f"        load:\n{textwrap.indent(body, '      ')}        next:\n          after: load\n"
    members += textwrap.indent(other, "      ")
    write(orders, f"{head}  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{members}")
    summary = orders.run().succeeded()
    assert [table["gathered"]["rows_in"] for table in summary["tables"]] == [ROWS, ROWS]
    first, (second,) = counts(orders), counts(orders, "second")
    assert int(second[1]) == ROWS + int(second[0])
    failing = (
        (orders.folder / "package.yaml")
        .read_text()
        .replace("count(*) + $more AS n", "CASE WHEN count(*) > 3 THEN error('late') ELSE 1 END AS n")
    )
    write(orders, failing.replace("FROM orders", "FROM orders WHERE id < 100"))
    ended = orders.run()
    assert (ended.exit_code, "late" in ended.stderr) == (1, True), ended.stderr
    assert (counts(orders), counts(orders, "second")) == (first, [second])
    assert orders.leftovers() == []


def test_lookups_stand_in_front_of_it_and_behind(orders: Project) -> None:
    """The rows that find nothing in front are rejects with places; those behind get the default."""
    text = package(
        "SELECT sk, quantity, count(*) AS n FROM found GROUP BY ALL",
        "SELECT n, coalesce(k, -1) AS k, quantity FROM again",
        limit=ROWS,
    )
    look = (
        "{{input: {0}, lookup: {{connection: inbox, files: parts.csv, layout: parts, on: {{{1}: key}}, "
        "add: {{{2}: sk}}, no_match: {3}}}}}"
    )
    lookups = {
        "found": look.format("orders", "quantity", "sk", "reject"),
        "again": look.format("q1", "quantity", "k", "{default: {k: null}}"),
    }
    lines = text.split("      transforms:\n")
    lines[1] = (
        lines[1].replace("q1: {input: orders", "q1: {input: found").replace("q2: {input: q1", "q2: {input: again")
    )
    first, rest = lines[1].split("\n", 1)
    body = f"        found: {lookups['found']}\n{first}\n        again: {lookups['again']}\n{rest}"
    write_text = lines[0] + "      transforms:\n" + body
    orders.package(write_text)
    ended = orders.run("--streams", "4")
    (table,) = ended.succeeded()["tables"]
    kinds = [own["kind"] for own in table["transforms"]]
    assert kinds == ["lookup", "gathered", "lookup", "sql"]
    assert [own["lookup"] is None for own in table["transforms"]] == [False, True, False, True]
    told = {event["table"] for event in orders.events() if event["event"] in ("lookup_read", "progress")}
    assert told == {table["table"]}
    found = [number for number in range(ROWS) if number % 19 and (number % 7 - 1) in (0, 2, 4)]
    assert table["rows_rejected"] == ROWS - len(found)
    assert table["gathered"] == {"rows_in": len(found), "rows_out": 3, "filtered_behind": 0}
    assert rows(orders, "SELECT quantity, k FROM out ORDER BY 1") == [("0", "0"), ("2", "20"), ("4", "40")]
    assert counts(orders) == [("3", str(len(found)))]


def test_a_lookup_behind_it_that_cannot_be_read_is_told(orders: Project) -> None:
    """Rows have passed a query in front of it by then."""
    parts = (
        "{connection: inbox, files: parts.csv, layout: parts, on: {quantity: key}, add: [sk], no_match: {default: 0}}"
    )
    queries = ("SELECT * FROM orders WHERE id > 5", "SELECT quantity, count(*) AS n FROM q1 GROUP BY ALL")
    orders.package(package(*queries, transforms=[f"keyed: {{input: q2, lookup: {parts}}}"]))
    orders.file("parts.csv", "1,1\n1,2\n")
    ended = orders.run()
    assert ended.exit_code == 1
    assert "two rows of lookup `keyed` have one key" in ended.stderr
    (table,) = ended.summary["tables"]
    assert (table["status"], table["rows_read"], [own["rows"] for own in table["transforms"]]) == (
        "failed", ROWS, [ROWS, ROWS - 6, 0]
    )  # fmt: skip


def test_secrets_are_in_no_message(orders: Project) -> None:
    canary = "c4n4ry-of-the-query"
    head, body = parted(orders, "SELECT count(*) AS n, max(CAST(error('key ' || $key) AS VARCHAR)) AS k FROM orders")
    head = head.replace("parameters:\n", 'parameters:\n  key: {type: string, default: "${env:KEY}"}\n')
    write(orders, f"{head}  load:\n{body}")
    ended: Ended = orders.command(orders.arguments(), {"KEY": canary})
    assert ended.exit_code == 1
    assert "key " in ended.stderr
    shown = [ended.stdout, ended.stderr]
    shown += [path.read_text(errors="replace") for path in orders.runs.rglob("*") if path.is_file()]
    assert not [text for text in shown if canary in text]


def test_texts_arrive_as_they_are(orders: Project) -> None:
    """Empty texts are no NULL, blanks at the end stay, and columns of a table narrow nothing silently."""
    sql = (
        "SELECT '' AS empty, min('') AS lowest, max(NULL::VARCHAR) AS nothing, max('a  ') AS blanks, "
        "max(code) AS code, max('ß€' || chr(129414)) AS far FROM orders"
    )
    orders.package(package(sql))
    orders.run().succeeded()
    shown = "empty, lowest, nothing, blanks || '|', code, far"
    assert rows(orders, f"SELECT {shown} FROM out") == [("", "", None, "a  |", "abcd", "ß€🦆")]
    narrow = "CREATE TABLE narrow (empty varchar(3), blanks varchar(2))"
    orders.execute(narrow)
    orders.package(
        package("SELECT '' AS empty, max('a  ') AS blanks FROM orders", destination="table: narrow, target: append")
    )
    ended = orders.run()
    if isinstance(orders, PostgresProject):
        assert (ended.exit_code, "HR403" in ended.stderr) == (1, True)
        assert rows(orders, "SELECT count(*) FROM narrow") == [("0",)]
    else:  # DuckDB has no lengths
        ended.succeeded()
        assert rows(orders, "SELECT blanks || '|' FROM narrow") == [("a  |",)]


def test_a_child_package_has_one(orders: Project) -> None:
    orders.package(package(COUNTED))
    text = (orders.folder / "package.yaml").read_text()
    (orders.folder / "child.yaml").write_text(text)
    head = text.split("layouts:")[0]
    write(
        orders,
        head.replace("package: derived", "package: parent") + "tasks:\n  all:\n    package: {file: child.yaml}\n",
    )
    orders.run().succeeded()
    assert counts(orders)[0][1] == str(ROWS)
