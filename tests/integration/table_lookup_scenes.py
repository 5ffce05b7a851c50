"""Lines that look parts up in a table or by a query of PostgreSQL."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from tests.integration.driver import Ended, Project
from tests.patience import HANG_SECONDS

PACKAGE = """
headrace: 1
package: facts
parameters:
  least: {type: integer, default: 0}
  prefix: {type: string, default: "part's "}
  memory: {type: string, default: 1GB}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
  other: {type: duckdb, path: other.duckdb}
layouts:
  lines:
    delimiter: "|"
    columns: [{name: line, type: int64, nullable: false}, {name: part, type: int32}, {name: color, type: varchar(10)}]
  parts:
    delimiter: "|"
    columns: [{name: p_key, type: int64}, {name: p_sk, type: int32}, {name: p_name, type: string}]
streams: 4
memory: ${memory}
tasks:
  load:
    data_flow:
      rejects: {limit: 100}
      sources:
        lines: {connection: inbox, files: lines.csv, layout: lines}
      transforms:
        keyed:
          input: lines
          lookup: {connection: warehouse, table: parts, on: {part: p_key}, add: {part_sk: p_sk, part_name: p_name},
                   no_match: {default: {part_sk: -1, part_name: null}}}
      destinations:
        facts: {input: keyed, connection: warehouse, table: facts, target: replace}
"""
LOOKUP = "{connection: warehouse, table: parts,"
QUERY = (
    '{connection: warehouse, query: "SELECT $prefix || p_key AS p_name, p_key, p_sk, p_key AS unread FROM parts '
    'WHERE p_key >= $least",'
)
LINES, PARTS = 20_000, 3_000
CREATE = (
    "CREATE TABLE parts AS SELECT n::bigint AS p_key, n * 3 + 1 AS p_sk, 'part''s ' || n AS p_name "
    f"FROM generate_series(0, {PARTS - 1}) AS n"
)
# Rows are few for its pages, which are worth three sessions.
LARGE_PARTS = (
    "CREATE TABLE parts (p_key bigint, p_sk int, p_name text) WITH (fillfactor = 10)",
    "INSERT INTO parts SELECT n, n * 3 + 1, 'part''s ' || n FROM generate_series(0, 49999) AS n",
)
FOUND = (
    "SELECT count(*), count(*) FILTER (WHERE part_sk = part * 3 + 1 AND part_name = 'part''s ' || part), "
    "count(*) FILTER (WHERE part_sk = -1 AND part_name IS NULL) FROM facts"
)
MATCHED = sum(number * 7 % 4000 < PARTS for number in range(LINES))
ALL = (str(LINES), str(MATCHED), str(LINES - MATCHED))


def lines(project: Project) -> None:
    project.file("lines.csv", "".join(f"{number}|{number * 7 % 4000}|red\n" for number in range(LINES)))


def keyed(ended: Ended) -> dict[str, Any]:
    (table,) = [own for own in ended.succeeded()["tables"] if own["table"] == "facts"]
    transform: dict[str, Any] = table["transforms"][0]
    return transform


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def headrace(project: Project, command: str, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", command, "package.yaml", *arguments])
