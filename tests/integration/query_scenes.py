"""Orders that go through queries: the package, its files, and the same queries by plain DuckDB over the same files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from tests.integration.driver import Ended, Project

COLUMNS = {
    "id": "int64",
    "price": "decimal(9,2)",
    "quantity": "int32",
    "note": "string",
    "code": "char(4)",
    "ratio": "float64",
    "day": "date",
    "paid": "bool",
}
NATIVE = {
    "id": "BIGINT",
    "price": "DECIMAL(9,2)",
    "quantity": "INTEGER",
    "note": "VARCHAR",
    "code": "VARCHAR",
    "ratio": "DOUBLE",
    "day": "DATE",
    "paid": "BOOLEAN",
}
PRICED = "SELECT *, price * quantity AS amount FROM orders WHERE quantity > 0"
HEAD = """
headrace: 1
package: derived
parameters:
  factor: {{type: integer, default: 3}}
  word: {{type: string, default: "it's"}}
  memory: {{type: string, default: 1GB}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  orders:
    delimiter: "|"
    columns:
{columns}
  parts:
    delimiter: ","
    columns: [{{name: key, type: int32, nullable: false}}, {{name: sk, type: int32, nullable: false}}]
streams: 4
memory: ${{memory}}
tasks:
  load:
    data_flow:
      rejects: {{limit: {limit}}}
      sources:
        orders: {{connection: inbox, files: "orders.*", layout: orders}}
      transforms:
{transforms}
      destinations:
        out: {{input: {last}, connection: warehouse, {destination}}}
"""
ROWS = 4_000
FILES = 3
DESTINATION = "table: out, target: replace"


def package(
    *queries: str, limit: object = 0, destination: str = DESTINATION, transforms: Sequence[str] = (), more: str = ""
) -> str:
    """`queries`, one behind the other, called q1, q2, ...; the first reads `orders`. `transforms`: YAML lines behind
    them, of which the last one is the destination's input; `more`: columns of the layout.
    """
    columns = "".join(f'      - {{name: {name}, type: "{own}"}}\n' for name, own in COLUMNS.items()) + more
    lines, last = [], "orders"
    for number, sql in enumerate(queries, start=1):
        lines.append(f"        q{number}: {{input: {last}, sql: {json.dumps(sql)}}}\n")
        last = f"q{number}"
    for own in transforms:
        lines.append(f"        {own}\n")
        last = own.partition(":")[0]
    return HEAD.format(
        columns=columns.rstrip("\n"),
        transforms="".join(lines).rstrip("\n"),
        last=last,
        destination=destination,
        limit=limit,
    )


def order(number: int) -> str:
    """A row, with NULL in each of its columns now and then."""
    values = [
        str(number),
        "" if number % 23 == 0 else f"{number % 977}.{number % 100:02}",
        "" if number % 19 == 0 else str(number % 7 - 1),
        "" if number % 13 == 0 else f"note {number % 50} of more than twelve bytes",
        "" if number % 29 == 0 else ("ab", "abc ", "abcd")[number % 3],
        "" if number % 31 == 0 else f"{number % 11 - 5}.5e{number % 3}",
        "" if number % 37 == 0 else f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}",
        ("true", "false", "")[number % 3],
    ]
    return "|".join(values) + "\n"


def write_files(project: Project, rows: int = ROWS) -> None:
    """The orders, in three files, and parts for every second quantity."""
    each = -(-rows // FILES)
    for number in range(FILES):
        first = number * each
        project.file(f"orders.{number}", "".join(map(order, range(first, min(first + each, rows)))))
    project.file("parts.csv", "".join(f"{key},{key * 10}\n" for key in range(0, 7, 2)))


def source(inbox: Path) -> str:
    """The rows of the files, as DuckDB reads them; char(n) without trailing blanks, as it is stored there."""
    columns = ", ".join(f"'{name}': '{own}'" for name, own in NATIVE.items())
    files = f"read_csv('{inbox}/orders.*', delim='|', header=false, quote='', escape='', columns={{{columns}}})"
    return f"SELECT * REPLACE (rtrim(code, ' ') AS code) FROM {files}"


def expected(project: Project, *queries: str) -> str:
    """The same queries, one behind the other, as one."""
    parts = [f"orders AS ({source(project.inbox)})"]
    parts += [f"q{number} AS ({sql})" for number, sql in enumerate(queries, start=1)]
    return f"WITH {', '.join(parts)} FROM q{len(queries)}"


def differences(project: Project, sql: str, table: str = "out") -> tuple[int, int, int]:
    """Rows of the table alone, of the query alone, and of the table."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{project.database}' AS w (READ_ONLY)")
        connection.execute(f"CREATE TEMP TABLE expected AS {sql}")
        row = connection.execute(
            f"SELECT (SELECT count(*) FROM (FROM w.{table} EXCEPT ALL FROM expected)), "
            f"(SELECT count(*) FROM (FROM expected EXCEPT ALL FROM w.{table})), (SELECT count(*) FROM w.{table})"
        ).fetchone()
    assert row is not None
    return row


def accounts(ended: Ended) -> dict[str, Any]:
    """Those of the one table, which balance."""
    (table,) = ended.succeeded()["tables"]
    found: dict[str, Any] = table
    assert found["rows_read"] == found["rows_loaded"] + found["rows_filtered"] + found["rows_rejected"]
    return found


def counts(ended: Ended) -> list[tuple[int, ...]]:
    """rows, went on, left out, rejected of each transform."""
    names = ("rows", "matched", "filtered", "rejected")
    return [tuple(own[name] for name in names) for own in accounts(ended)["transforms"]]
