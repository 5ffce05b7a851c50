"""Two sources whose rows meet: pairs of files of orders and of their lines, and DuckDB's own join of them."""

from __future__ import annotations

from typing import Any

import duckdb

from tests.integration.driver import Project

PACKAGE = """
headrace: 1
package: sales
parameters:
  streams: {type: integer, default: 4}
  memory: {type: string, default: 1GB}
  orders: {type: list, default: ["orders.*"]}
  lines: {type: list, default: ["lines.*"]}
  limit: {type: integer, default: 0}
  target: {type: string, default: replace}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {name: o_key, type: int64}
      - {name: o_clerk, type: string}
      - {name: o_day, type: date}
  lines:
    delimiter: ","
    header: skip
    columns:
      - {name: l_number, type: int32, nullable: false}
      - {name: l_key, type: int32}
      - {name: l_price, type: "decimal(9,2)"}
streams: ${streams}
memory: ${memory}
tasks:
  load:
    data_flow:
      rejects: {limit: "${limit}"}
      sources:
        orders: {connection: inbox, files: "${orders}", layout: orders}
        lines: {connection: inbox, files: "${lines}", layout: lines}
      transforms:
        joined: {join: {left: orders, right: lines, on: {o_key: l_key}, TYPE
                        right_columns: {number: l_number, price: l_price, line_key: l_key}}}
      destinations:
        sales: {input: joined, connection: warehouse, table: sales, target: "${target}"}
"""
JOIN = """
SELECT o_key, o_clerk, o_day, l_number AS number, l_price AS price, l_key AS line_key
FROM read_csv('{inbox}/orders.*', delim='|', header=false, auto_detect=false, quote='', escape='', columns={{
     'o_key': 'BIGINT', 'o_clerk': 'VARCHAR', 'o_day': 'DATE'}}) AS o
{kind} JOIN read_csv('{inbox}/lines.*', delim=',', header=true, auto_detect=false, quote='', escape='', columns={{
     'l_number': 'INTEGER', 'l_key': 'INTEGER', 'l_price': 'DECIMAL(9,2)'}}) AS l ON o_key = l_key
"""
TYPES = ("inner", "left", "right", "full")
PAIRS, ORDERS = 7, 9_000
HEADER = "number,key,price\n"
# Number of a line of the last pair.
LATE = 1_200_111


def of_type(kind: str, package: str = PACKAGE) -> str:
    return package.replace("TYPE", f"type: {kind},")


def order(key: int) -> str:
    nobody = "|nobody|\n" if key % 97 == 0 else ""
    return (
        nobody + f"{key}|{'' if key % 5 == 0 else f'Clerk of {key % 1000}'}|2024-{key % 12 + 1:02}-{key % 28 + 1:02}\n"
    )


def lines(key: int) -> str:
    """None of each third order, some of no order."""
    count = 0 if key % 3 == 0 else key % 6
    own = "".join(f"{10 * key + number},{key},{number}.{key % 100:02}\n" for number in range(count))
    return own + (f"{key},,0.5\n" if key % 89 == 0 else "")


def write_files(project: Project, most: int = ORDERS) -> None:
    """Pairs of very different size; one without orders, one with an empty file."""
    for pair in range(PAIRS):
        begin, end = pair * 20_000, pair * 20_000 + pair * most // PAIRS
        orders = "" if pair == 3 else "".join(map(order, range(begin, end)))
        project.file(f"orders.{pair}", orders)
        project.file(f"lines.{pair}", "" if pair == 5 else HEADER + "".join(map(lines, range(begin + 1, end + 7))))


def write_pairs_of_falling_size(project: Project) -> None:
    """The last pair is the smallest one, so that one stream comes to it behind all others."""
    for pair in range(1, PAIRS):
        begin = pair * 20_000
        keys = range(begin, begin + 300 * (PAIRS - pair))
        project.file(f"orders.{pair}", "".join(f"{key}|Clerk of {key % 1000}|2024-01-01\n" for key in keys))
        lines = [f"{10 * key},{key},1\n" for key in keys] + [f"{LATE},120011,1\n"] * (pair == PAIRS - 1)
        project.file(f"lines.{pair}", HEADER + "".join(sorted(lines, key=lambda line: int(line.split(",")[1]))))
    for name in ("orders.0", "lines.0"):
        (project.inbox / name).unlink()


def expected(project: Project, kind: str) -> list[tuple[Any, ...]]:
    sql = JOIN.format(inbox=project.folder / "inbox", kind=kind)
    return rows_of(f"{sql} ORDER BY ALL")


def rows_of(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(sql).fetchall()
