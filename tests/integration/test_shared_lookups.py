"""Several lookups of a data flow in the same rows, as those of the dates of a sale: they are read once, and each finds
what it would have found alone.
"""

from __future__ import annotations

import sys

import pytest

from tests.integration.driver import Project

PACKAGE = """
headrace: 1
package: dates
parameters:
  memory: {type: string, default: 1GB}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  sales:
    delimiter: "|"
    columns:
      - {name: id, type: int64}
      - {name: ordered, type: date}
      - {name: shipped, type: date}
      - {name: paid, type: date}
  days:
    delimiter: "|"
    columns:
      - {name: day, type: date, nullable: false}
      - {name: number, type: int32, nullable: false}
      - {name: word, type: string}
streams: 4
memory: ${memory}
tasks:
  load:
    data_flow:
      rejects: {limit: 5}
      sources:
        sales: {connection: inbox, files: "sales.*", layout: sales}
      transforms:
        order_day:
          input: sales
          lookup: {ROWS, on: {ordered: day}, add: {order_number: number}, no_match: {default: -1}}
        ship_day:
          input: order_day
          lookup: {ROWS, on: {shipped: day}, add: {ship_number: number}, no_match: {default: -1}}
        pay_day:
          input: ship_day
          lookup: {ROWS, on: {paid: day}, add: {pay_number: number}, no_match: {default: -2}}
        pay_word:
          input: pay_day
          lookup: {ROWS, on: {paid: day}, add: {word: word}, no_match: {default: null}}
        due:
          input: pay_word
          lookup: {ROWS, on: {shipped: day}, add: {due_number: number}, no_match: reject}
      destinations:
        out: {input: due, connection: warehouse, table: out, target: replace}
"""
ROWS = {
    "file": "connection: inbox, files: days.txt, layout: days",
    "table": "connection: warehouse, table: dim_day",
    "query": 'connection: warehouse, query: "SELECT day, number, word FROM dim_day"',
}
DAYS = 40


def sale(number: int) -> str:
    days = (number % 37, (number * 5) % 39, (number * 3) % 50)
    return "|".join([str(number), *(f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in days)]) + "\n"


@pytest.mark.parametrize("kind", ROWS)
def test_lookups_that_are_alike_are_read_once(project: Project, kind: str) -> None:
    project.file("sales.1", "".join(map(sale, range(2000))))
    days = [f"2026-{1 + day // 28:02}-{1 + day % 28:02}|{day}|day {day}\n" for day in range(DAYS)]
    project.file("days.txt", "".join(days))
    project.execute(
        "CREATE TABLE dim_day (day DATE NOT NULL, number INTEGER NOT NULL, word VARCHAR)",
        f"COPY dim_day FROM '{project.inbox}/days.txt' (FORMAT csv, DELIMITER '|', HEADER false)",
    )
    project.package(PACKAGE.replace("ROWS", ROWS[kind]))
    ended = project.run()
    (table,) = ended.succeeded()["tables"]
    found = {own["name"]: own["lookup"] for own in table["transforms"]}
    shared = {name: lookup["shared_with"] for name, lookup in found.items()}
    # Another default, other columns, and rejects in the place of a default are indexes of their own.
    assert shared == {"order_day": None, "ship_day": "order_day", "pay_day": None, "pay_word": None, "due": None}
    assert {lookup["rows"] for lookup in found.values()} == {DAYS}
    read = [event["lookup"] for event in project.events() if event["event"] == "lookup_read"]
    assert read == ["order_day", "pay_day", "pay_word", "due"]
    expected = [
        (number, number % 37, (number * 5) % 39, paid if paid < DAYS else -2, f"day {paid}" if paid < DAYS else None)
        for number, paid in ((number, number * 3 % 50) for number in range(2000))
    ]
    assert project.query("SELECT id, order_number, ship_number, pay_number, word FROM out ORDER BY id") == expected
    plan = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert "lookups order_day, ship_day are alike: their rows are read once" in " ".join(plan.stdout.split())
    written = project.command(
        [sys.executable, "-m", "headrace", "report", "--runs-dir", "runs", "last", "--output", "r.html"]
    )
    assert written.exit_code == 0
    assert "as order_day" in (project.folder / "r.html").read_text(encoding="utf-8")


def test_what_the_first_does_not_know_is_told_of_each(project: Project) -> None:
    """A reject names its own lookup."""
    project.file("sales.1", "1|2026-01-01|2030-01-01|2026-01-01\n")
    project.file("days.txt", "2026-01-01|1|a\n")
    lookups = PACKAGE.replace("{default: -1}", "reject")
    project.package(lookups.replace("ROWS", ROWS["file"]))
    ended = project.run()
    (table,) = ended.succeeded()["tables"]
    (reject,) = table["rejects"]["first"]
    assert "lookup `ship_day`" in reject["message"]
    assert [own["lookup"]["shared_with"] for own in table["transforms"]] == [None, "order_day", None, None, "order_day"]
