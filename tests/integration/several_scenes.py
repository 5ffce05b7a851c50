"""Orders that go to several tables at once: the package, its files, and what DuckDB says that belongs into each."""

from __future__ import annotations

from typing import Any

import duckdb

from tests.integration.driver import Ended, Project

ROWS = 6000
PACKAGE = """
headrace: 1
package: several
parameters:
  limit: {{type: integer, default: 0}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {{name: id, type: int64, nullable: false}}
      - {{name: customer, type: int32}}
      - {{name: amount, type: "decimal(9,2)"}}
      - {{name: note, type: string}}
  customers:
    delimiter: ","
    columns: [{{name: code, type: int32, nullable: false}}, {{name: label, type: string, nullable: false}}]
streams: 4
memory: 1GB
tasks:
  load:
    data_flow:
      rejects: {{limit: "${{limit}}"}}
      sources:
        orders: {{connection: inbox, files: "orders.*", layout: orders}}
      transforms:
{transforms}
      destinations:
{destinations}
"""
KEYED = """
        keyed:
          input: orders
          lookup: {connection: inbox, files: customers.csv, layout: customers, on: {customer: code}, add: [label],
                   no_match: output}
"""
PARTED = """
        parted:
          input: orders
          split: {big: "amount > 900", small: "amount < 100", odd: "1000 / customer > 500"}
"""
# Of each row what DuckDB reads from the same files.
ORDERS = (
    "read_csv('{inbox}/orders.*', delim='|', header=false, columns={{'id': 'BIGINT', 'customer': 'INTEGER', "
    "'amount': 'DECIMAL(9,2)', 'note': 'VARCHAR'}}, quote='')"
)
CUSTOMERS = "read_csv('{inbox}/customers.csv', header=false, columns={{'code': 'INTEGER', 'label': 'VARCHAR'}})"


def package(transforms: str = "", destinations: dict[str, str] | None = None, more: str = "") -> str:
    """A package with these transforms, and destinations by what they read."""
    lines = [
        f"        {name}: {{input: {rows}, connection: warehouse, table: {name}, target: replace{more}}}"
        for name, rows in (destinations or {"one": "orders", "two": "orders"}).items()
    ]
    return PACKAGE.format(transforms=transforms.strip("\n") or "        {}", destinations="\n".join(lines))


def order(number: int) -> str:
    """A line: every 13th without a customer, every 17th without an amount; every third customer is unknown."""
    customer = "" if number % 13 == 0 else str(number % 30)
    amount = "" if number % 17 == 0 else f"{number * 7 % 1000}.{number % 100:02}"
    return f"{number}|{customer}|{amount}|{'n' * (number % 23)}\n"


def write_files(project: Project, rows: int = ROWS) -> None:
    """Two files of orders, and one of customers."""
    middle = rows // 3
    (project.inbox / "orders.1").write_text("".join(map(order, range(middle))))
    (project.inbox / "orders.2").write_text("".join(map(order, range(middle, rows))))
    customers = [f"{code},customer {code}\n" for code in range(1, 30) if code % 3]
    (project.inbox / "customers.csv").write_text("".join(customers))


def expected(project: Project, query: str) -> list[tuple[Any, ...]]:
    """What a query over `orders` and `customers` gives."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW orders AS FROM {ORDERS.format(inbox=project.inbox)}")
        connection.execute(f"CREATE VIEW customers AS FROM {CUSTOMERS.format(inbox=project.inbox)}")
        return sorted(connection.sql(query).fetchall(), key=repr)


def loaded(project: Project, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return sorted(project.query(f"FROM {table}"), key=repr)


def accounts(ended: Ended) -> dict[str, tuple[int, int, int, int]]:
    """Of each table: rows read, loaded, filtered and rejected, which have balanced."""
    found = {}
    for table in ended.summary["tables"]:
        read, done, filtered, rejected = (
            table[name] for name in ("rows_read", "rows_loaded", "rows_filtered", "rows_rejected")
        )
        assert read == done + filtered + rejected, table["table"]
        found[table["table"]] = (read, done, filtered, rejected)
    return found
