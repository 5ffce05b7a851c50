"""Lookups of queries without a connection: the rows that DuckDB's own join gives, values of variables, messages."""

from __future__ import annotations

import json
import re
import signal
import sys
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.snapshots import assert_snapshot

CALENDAR = """
SELECT day::DATE AS day, strftime(day, '%G-W%V') AS week, month(day)::SMALLINT AS month, $offset + 1 AS n
FROM range(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY) AS days(day)
"""
PACKAGE = f"""
headrace: 1
package: days
parameters:
  offset: {{type: integer, default: 41}}
  memory: {{type: string, default: 1GB}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  lines:
    delimiter: "|"
    columns:
      - {{name: line, type: int64, nullable: false}}
      - {{name: day, type: date}}
      - {{name: color, type: varchar(10)}}
streams: 4
memory: ${{memory}}
tasks:
  load:
    data_flow:
      rejects: {{limit: 100000}}
      sources:
        lines: {{connection: inbox, files: lines.csv, layout: lines}}
      transforms:
        dated:
          input: lines
          lookup:
            query: |{CALENDAR.replace(chr(10), chr(10) + " " * 14).rstrip()}
            on: {{day: day}}
            add: {{week: week, month: month, n: n}}
            no_match: {{default: null}}
        colored:
          input: dated
          lookup:
            query: "VALUES ('red', 1), ('green', 2), (NULL, 9)"
            on: {{color: col0}}
            add: {{shade: col1}}
            no_match: {{default: -1}}
      destinations:
        days: {{input: colored, connection: warehouse, table: days, target: replace}}
"""
JOIN = f"""
SELECT line, l.day, color, week, month, n, coalesce(col1, -1) AS shade
FROM read_csv('{{inbox}}/lines.csv', delim='|', header=false, columns={{{{
     'line': 'BIGINT', 'day': 'DATE', 'color': 'VARCHAR'}}}}) AS l
LEFT JOIN ({CALENDAR.replace("$offset", "41")}) AS c ON l.day = c.day
LEFT JOIN (VALUES ('red', 1), ('green', 2)) AS m(col0, col1) ON l.color = m.col0
"""
LINES = 20_000
QUERY = "SELECT range::INTEGER AS k, range AS v FROM range(10)"


def line(number: int) -> str:
    day = "" if number % 17 == 0 else f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return f"{number}|{'2025-01-01' if number % 19 == 0 else day}|{('red', 'green', 'blue', '')[number % 4]}\n"


@pytest.fixture
def days(project: Project) -> Project:
    project.package(PACKAGE)
    project.file("lines.csv", "".join(map(line, range(LINES))))
    return project


def of_query(sql: str, *, add: str = "{v: v}", more: str = "", on: str = "line: k") -> str:
    """The package with one lookup, of this query."""
    head, _, tail = PACKAGE.partition("        dated:\n")
    _, _, out = tail.partition("      destinations:\n")
    lookup = f"{{query: {json.dumps(sql)}, on: {{{on}}}, add: {add}, no_match: {{default: null}}{more}}}"
    transform = f"        keyed: {{input: lines, lookup: {lookup}}}\n"
    return f"{head}{transform}      destinations:\n{out.replace('input: colored', 'input: keyed')}"


def transforms(ended: Ended) -> list[dict[str, Any]]:
    (table,) = ended.succeeded()["tables"]
    return list(table["transforms"])


@pytest.mark.parametrize("streams", [1, 16])
def test_the_table_equals_the_join_of_duckdb(days: Project, streams: int) -> None:
    dated, colored = transforms(days.run("--streams", str(streams)))
    assert (dated["rows"], colored["rows"], colored["null_keys"]) == (LINES, LINES, LINES // 4)
    assert (dated["lookup"]["rows"], dated["lookup"]["files"], colored["lookup"]["null_keys"]) == (365, [], 1)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{days.database}' AS w (READ_ONLY)")
        connection.execute(f"CREATE TEMP TABLE joined AS {JOIN.format(inbox=days.inbox)}")
        row = connection.execute(
            "SELECT (SELECT count(*) FROM (FROM w.days EXCEPT ALL FROM joined)), "
            "(SELECT count(*) FROM (FROM joined EXCEPT ALL FROM w.days)), (SELECT count(*) FROM w.days)"
        ).fetchone()
    assert row == (0, 0, LINES)
    read = [event for event in days.events() if event["event"] == "lookup_read"]
    assert [(event["lookup"], event["rows"], event["rows_from"], event["files"]) for event in read] == [
        ("dated", 365, "a query", 0),
        ("colored", 2, "a query", 0),
    ]
    notices = [event["text"] for event in days.events() if event["event"] == "notice"]
    assert "lookup `colored`: 1 row without a key was left out" in notices


def test_every_type_comes_as_it_is(days: Project) -> None:
    types = {
        "a": "1::SMALLINT", "b": "-7::INTEGER", "c": "9223372036854775807", "d": "-1.5::DECIMAL(4,2)",
        "e": "123456789012345.67::DECIMAL(18,2)", "f": "-12345678901234567890123456789012345.678::DECIMAL(38,3)",
        "g": "1.5::FLOAT", "h": "-2.5e300::DOUBLE", "i": "true", "j": "DATE '0001-01-01'", "k2": "TIME '23:59:59.5'",
        "l": "TIMESTAMP '9999-12-31 23:59:59.999999'", "m": "TIMESTAMPTZ '2024-07-01 12:00:00+02'",
        "n": "'a text of more than twelve bytes, ä'", "o": "'\\x00\\xFF'::BLOB",
        "p": "'6f9619ff-8b86-d011-b42d-00c04fc964ff'::UUID", "q": "'{\"a\": [1]}'::JSON",
    }  # fmt: skip
    rows = " UNION ALL ".join(
        f"SELECT {key} AS k, "
        + ", ".join(f"{value if key != 2 else 'NULL'} AS {name}" for name, value in types.items())
        for key in (1, 2)
    )
    days.package(of_query(rows, add=f"[{', '.join(types)}]"))
    days.run().succeeded()
    names = ", ".join(types)
    assert days.query(f"SELECT {names} FROM days WHERE line = 1 EXCEPT SELECT {', '.join(types.values())}") == []
    assert days.query(
        f"SELECT count(*) FROM days WHERE COALESCE({', '.join(f'{n}::VARCHAR' for n in types)}) IS NOT NULL"
    ) == [(1,)]


def test_values_of_variables_and_turns_are_bound(days: Project) -> None:
    head, _, flow = of_query("SELECT 1 AS k, $name AS v, $known AS w", add="[v, w]").partition("tasks:\n")
    flow = "".join(f"      {text}\n" for text in flow.replace("target: replace", "target: append").splitlines())
    head = head.replace("connections:", "variables: {known: {type: string}}\nconnections:")
    days.package(
        f"{head}tasks:\n  note:\n    set: {{known: \"upper('it''s')\"}}\n  each:\n    after: note\n    foreach:\n"
        f"      item: name\n      in: [one, two]\n      tasks:\n{flow}"
    )
    days.run().succeeded()
    assert days.query("SELECT v, w FROM days WHERE line = 1 ORDER BY v") == [("one", "IT'S"), ("two", "IT'S")]


def test_the_first_of_equal_keys_is_that_of_the_order(days: Project) -> None:
    query = "SELECT range % 10 AS k, range AS v FROM range(300000) ORDER BY range DESC"
    days.package(of_query(query, more=", duplicates: first"))
    (keyed,) = transforms(days.run())
    assert (keyed["lookup"]["rows"], keyed["lookup"]["duplicates"]) == (10, 299_990)
    assert days.query("SELECT line, v FROM days WHERE line < 10 ORDER BY line") == [
        (key, 299_990 + key) for key in range(10)
    ]


def test_an_empty_query_gives_defaults_and_says_so(days: Project) -> None:
    days.package(of_query(f"{QUERY} WHERE false"))
    assert transforms(days.run())[0]["defaulted"] == LINES
    notices = [event["text"] for event in days.events() if event["event"] == "notice"]
    assert "lookup `keyed` has no rows that can be found: all rows get its default" in notices


FAILING: dict[str, tuple[str, list[str]]] = {
    "duplicate_key": ("SELECT range // 2 AS k, range AS v FROM range(1000)", []),
    "fails_late": ("SELECT range AS k, CAST(if(range = 200000, 'x', '1') AS INTEGER) AS v FROM range(300000)", []),
    "endless_day": ("SELECT range AS k, if(range = 3, 'infinity'::DATE, DATE '2024-01-01') AS v FROM range(9)", []),
    "nul": ("SELECT range AS k, if(range = 3, 'a' || chr(0), 'b') AS v FROM range(9)", []),
    "year_10000": ("SELECT 1 AS k, TIMESTAMP '10000-01-01 00:00:00' AS v", []),
    "no_memory": ("SELECT range AS k, 'a long text about number ' || range AS v FROM range(3000000)", []),
    "engine_memory": ("SELECT range AS k, range AS v FROM range(30000000) ORDER BY hash(range)", []),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_what_is_said_when_there_is_no_lookup(days: Project, name: str) -> None:
    query, arguments = FAILING[name]
    days.package(of_query(query))
    ended = days.run(*arguments, *(["--set", "memory=335MB"] if "memory" in name else []))
    assert ended.exit_code == 1
    text = re.sub(r"found: \d+ MB, and", "found: N MB, and", days.stable(ended.error))
    text = re.sub(r"Out of Memory Error: .*", "Out of Memory Error: ...", text)
    assert_snapshot(f"query_lookup_{name}", text)
    assert days.query("FROM duckdb_tables() WHERE table_name = 'days'") == []


def test_ctrl_c_while_a_query_computes(days: Project) -> None:
    days.package(of_query("SELECT count(*) AS k, 1 AS v FROM range(1000000000000) WHERE hash(range) % 7 = 0"))
    with days.started(days.arguments()) as running:
        days.wait_for_event(running, "lookup_started", lookup="keyed")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert days.ledger() == ["cancelled"]
    assert days.leftovers() == []


def test_a_plan_tells_of_queries(days: Project) -> None:
    planned = days.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert planned.exit_code == 0, planned.stderr
    (lookups,) = re.findall(r"  lookups .*?(?=\n  streams)", planned.stdout, re.DOTALL)
    assert_snapshot("query_lookup_plan", f"{lookups}\n")


def test_rejects_of_a_query_are_replayed(days: Project) -> None:
    query = "SELECT range AS k, range AS v FROM range($offset)"
    days.package(of_query(query).replace("no_match: {default: null}", "no_match: reject"))
    (table,) = days.run("--set", "offset=19990").succeeded()["tables"]
    assert (table["rows_loaded"], table["rejects"]["by_rule"]) == (19_990, {"no_match": 10})
    headrace = [sys.executable, "-m", "headrace"]
    days.command([*headrace, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    # The same values as in the run: the same rows are rejects again.
    ended = days.command([*headrace, "replay", "--runs-dir", "runs", "--json", "last", "again.csv", "--limit", "10"])
    (table,) = ended.succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (0, 10)
