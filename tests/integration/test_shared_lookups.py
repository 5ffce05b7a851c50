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


WAYS = """
headrace: 1
package: ways
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  sales: {delimiter: "|", columns: [{name: id, type: int64}, {name: one, type: int64}, {name: two, type: int32}]}
  names: {delimiter: "|", columns: [{name: key, type: int64}, {name: name, type: string}]}
tasks:
  load:
    data_flow:
      sources:
        sales: {connection: inbox, files: sales.txt, layout: sales}
      transforms:
        parted: {input: sales, split: {even: "id % 2 = 0"}}
        by_one: {input: parted.even, lookup: {ROWS, on: {one: key}, add: [name], no_match: {default: none}}}
        by_two: {input: parted.rest, lookup: {ROWS, on: {KEY: key}, add: [name], no_match: {default: none}}}
      destinations:
        even: {input: by_one, connection: warehouse, table: even, target: replace}
        rest: {input: by_two, connection: warehouse, table: rest, target: replace}
"""


@pytest.mark.parametrize(("key", "shared"), [("one", "by_one"), ("two", None)])
def test_lookups_of_several_destinations(project: Project, key: str, shared: str | None) -> None:
    """Keys of one type are looked for in one index, whatever destination the rows go to."""
    project.file("sales.txt", "".join(f"{number}|{number % 7}|{number % 5}\n" for number in range(100)))
    project.file("names.txt", "".join(f"{number}|name {number}\n" for number in range(4)))
    rows = "connection: inbox, files: names.txt, layout: names"
    project.package(WAYS.replace("ROWS", rows).replace("KEY", key))
    even, rest = project.run().succeeded()["tables"]
    assert [own["transforms"][1]["lookup"]["shared_with"] for own in (even, rest)] == [None, shared]
    found = project.query("SELECT * FROM even UNION ALL SELECT * FROM rest ORDER BY id")
    keys = [(number % 7, number % 5) for number in range(100)]
    looked_for = [(one if number % 2 == 0 or key == "one" else two) for number, (one, two) in enumerate(keys)]
    assert [name for *_, name in found] == [f"name {own}" if own < 4 else "none" for own in looked_for]
