"""Orders and customers that go to tables of their own in one data flow: the package, its files, and what DuckDB says
that belongs into each.
"""

from __future__ import annotations

import gzip
from typing import Any

from tests.integration.driver import Ended, Project
from tests.integration.join_scenes import rows_of
from tests.integration.tables import as_text

ORDERS, CUSTOMERS = 6_000, 2_500
PACKAGE = """
headrace: 1
package: apart
parameters:
  limit: {type: integer, default: 0}
  streams: {type: integer, default: 4}
  target: {type: string, default: replace}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
  archive: {type: duckdb, path: archive.duckdb}
  nowhere: {type: "null"}
layouts:
  orders:
    delimiter: ","
    header: skip
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: status, type: varchar(2)}
      - {name: total, type: "decimal(9,2)"}
      - {name: day, type: date}
  customers:
    delimiter: "|"
    columns:
      - {name: code, type: int32, nullable: false}
      - {name: name, type: string}
      - {name: sales, type: int32, on_error: ignore}
      - {name: line, type: int64, from: row_number}
      - {name: file, type: string, from: file_name}
  names: {delimiter: ",", columns: [{name: short, type: varchar(2)}, {name: label, type: string}]}
streams: ${streams}
memory: 1GB
tasks:
  load:
    data_flow:
      rejects: {limit: "${limit}"}
      sources:
        orders: {connection: inbox, files: "orders.*", layout: orders}
        customers: {connection: inbox, files: ["customers.*", "more.gz"], layout: customers}
      transforms:
        named:
          input: orders
          lookup: {connection: inbox, files: names.csv, layout: names, on: {status: short}, add: [label],
                   no_match: output}
        open: {input: named, sql: "SELECT id, CAST(total AS SMALLINT) AS total, label FROM named WHERE id % 3 > 0"}
        parted: {input: customers, split: {big: "sales > 1000"}}
      destinations:
        open: {input: open, connection: warehouse, table: open, target: "${target}"}
        strays: {input: named.no_match, connection: warehouse, table: strays, target: "${target}"}
        big: {input: parted.big, connection: warehouse, table: big, target: "${target}"}
        small: {input: parted.rest, connection: warehouse, table: small, target: "${target}"}
        orders: {input: orders, connection: warehouse, table: orders, target: "${target}"}
"""
# Of each table what belongs into it, over the files as DuckDB reads them.
WANTED = {
    "open": "SELECT id, CAST(total AS SMALLINT), label FROM orders JOIN names ON status = short WHERE id % 3 > 0",
    "strays": "FROM orders ANTI JOIN names ON status = short",
    "big": "FROM customers WHERE sales > 1000",
    "small": "FROM customers WHERE sales <= 1000 OR sales IS NULL",
    "orders": "FROM orders",
}
OF_ORDERS = ("open", "strays", "orders")
PLAIN = "quote='', escape='', auto_detect=false"
VIEWS = """
WITH orders AS (SELECT * FROM read_csv('{inbox}/orders.*', delim=',', header=true, {plain}, columns={{
    'id': 'BIGINT', 'status': 'VARCHAR', 'total': 'DECIMAL(9,2)', 'day': 'DATE'}}, ignore_errors=true)),
names AS (SELECT * FROM read_csv('{inbox}/names.csv', header=false, columns={{
    'short': 'VARCHAR', 'label': 'VARCHAR'}})),
customers AS (SELECT code, name, TRY_CAST(sales AS INTEGER) AS sales,
    row_number() OVER (PARTITION BY file ORDER BY code) AS line, parse_filename(file) AS file
    FROM read_csv(['{inbox}/customers.1', '{inbox}/customers.2', '{inbox}/more.gz'], delim='|', header=false, {plain},
    filename='file', columns={{'code': 'INTEGER', 'name': 'VARCHAR', 'sales': 'VARCHAR'}}))
"""
# Refused by the parser; by the query in front of `open` alone; by the parser of the other source.
BAD_ORDERS = "90001,S1,x,2024-01-01\n90002,S1,99999.00,2024-01-01\n"
BAD_CUSTOMER = "y|nobody|1\n"


def order(number: int) -> str:
    """Every 13th without a total; of every seven one with a status that nobody knows."""
    total = "" if number % 13 == 0 else f"{number * 7 % 1000}.{number % 100:02}"
    return f"{number},S{number % 7},{total},2024-{number % 12 + 1:02}-{number % 28 + 1:02}\n"


def customer(number: int) -> str:
    """Every 50th with sales that are no number."""
    sales = "many" if number % 50 == 0 else str(number * 13 % 2000)
    return f"{number}|name {'n' * (number % 30)}|{sales}\n"


def write_files(project: Project) -> None:
    """One file of orders, three of customers."""
    project.package(PACKAGE)
    project.file("orders.1", "id,status,total,day\n" + "".join(map(order, range(ORDERS))))
    parts = [range(start, start + CUSTOMERS // 3) for start in range(0, CUSTOMERS - 1, CUSTOMERS // 3)]
    for part, numbers in zip(("customers.1", "customers.2", "more.gz"), parts, strict=True):
        text = "".join(map(customer, numbers)).encode()
        project.file(part, gzip.compress(text) if part == "more.gz" else text)
    project.file("names.csv", "".join(f"S{number},status {number}\n" for number in range(6)))


def wanted(project: Project) -> dict[str, list[tuple[str | None, ...]]]:
    """The rows of each table, by plain SQL."""
    views = VIEWS.format(inbox=project.inbox, plain=PLAIN)
    return {name: as_text(rows_of(f"{views} {query}")) for name, query in WANTED.items()}


def archived(names: set[str], where: str = "archive") -> str:
    """The package with these tables in another place."""
    text = PACKAGE
    for name in names:
        text = text.replace(f"connection: warehouse, table: {name},", f"connection: {where}, table: {name},")
    return text


def balanced(ended: Ended) -> dict[str, Any]:
    """The tables of a run, each of which has the account of its own source, and the run that of both."""
    summary = ended.succeeded()
    tables = {own["table"]: own for own in summary["tables"]}
    for table in tables.values():
        assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"] + table["rows_rejected"], table
        assert not {"union", "join"} & table.keys()
    for name in ("lines", "rows_read"):
        sums = {of: {tables[own][name] for own in tables if (own in OF_ORDERS) is of} for of in (True, False)}
        assert all(len(own) == 1 for own in sums.values()), "all tables of one source read the same"
    assert summary["rows_read"] == tables["orders"]["rows_read"] + tables["big"]["rows_read"]
    return tables
