"""Four sources that meet in several joins: orders, bills and parcels, whose keys come once, and lines, whose keys come
any number of times; in files that belong together. And what DuckDB says of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from tests.integration.driver import Ended, Project

HEAD = """
headrace: 1
package: sales
parameters:
  limit: {{type: integer, default: 0}}
  streams: {{type: integer, default: 4}}
  memory: {{type: string, default: 2GB}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
{layouts}
  labels: {{delimiter: ",", columns: [{{name: code, type: int32, nullable: false}}, {{name: label, type: string}}]}}
streams: ${{streams}}
memory: ${{memory}}
tasks:
  load:
    data_flow:
      rejects: {{limit: "${{limit}}"}}
      sources:
{sources}
      transforms:
{transforms}
      destinations:
{destinations}
"""
# By their names the first letters of their columns.
SOURCES: Mapping[str, str] = {"orders": "o", "bills": "b", "parcels": "p", "lines": "l"}
KINDS = ("inner", "left", "right", "full")
UNITS, KEYS = 3, 900
# How far the keys of files that belong together are from those of the others.
APART = 10_000
# Three sources in one tree, with the rows of a join as its right side: its keys come any number of times.
DETAILED = "detailed: {join: {left: orders, right: lines, on: {o_key: l_key}}}"
SENT = "sent: {join: {left: parcels, right: detailed, on: {p_key: o_key}}}"
DETAILED_SQL = "SELECT * FROM orders JOIN lines ON o_key = l_key"
SENT_SQL = f"SELECT * FROM parcels JOIN ({DETAILED_SQL}) ON p_key = o_key"


def package(
    transforms: Sequence[str],
    destinations: Mapping[str, str] | None = None,
    *,
    sources: Sequence[str] = ("orders", "lines", "parcels"),
    more: str = "",
    destination: str = "connection: warehouse, target: replace",
) -> str:
    """A package with these transforms, and destinations by what they read. `more`: settings of every source."""
    layouts = (
        f'  {name}: {{delimiter: "|", columns: [{{name: {letter}_key, type: int64}}, '
        f"{{name: {letter}_value, type: int32}}, {{name: {letter}_note, type: string}}]}}"
        for name, letter in SOURCES.items()
    )
    files = (f'        {name}: {{connection: inbox, files: "{name}.*", layout: {name}{more}}}' for name in sources)
    ends = (
        f"        {name}: {{input: {rows}, table: {name}, {destination}}}"
        for name, rows in (destinations or {"facts": "sent"}).items()
    )
    return HEAD.format(
        layouts="\n".join(layouts),
        sources="\n".join(files),
        transforms="\n".join(f"        {own}" for own in transforms),
        destinations="\n".join(ends),
    )


def rows(source: str, key: int) -> Iterator[str]:
    """Those with a key, and some without one."""
    times = {
        "orders": 1,
        "bills": int(key % 3 > 0),
        "parcels": int(key % 4 != 1),
        "lines": 0 if key % 7 == 2 else key % 4,
    }[source]
    for number in range(times):
        value = "" if key % 11 == 0 else str((key * 13 + number * 7 + len(source)) % 100)
        yield f"{key}|{value}|{source} {key % 50}.{number}\n"
    if key % 97 == 5:
        yield f"|{key % 100}|{source} of nobody\n"


def write_files(project: Project, keys: int = KEYS, units: int = UNITS) -> None:
    """Files that belong together, of very different size."""
    for unit in range(units):
        begin = unit * APART
        for source in SOURCES:
            own = (row for key in range(begin, begin + keys * (unit + 1) // units) for row in rows(source, key))
            project.file(f"{source}.{unit}", "".join(own))
    for path in project.inbox.glob("orders.tbl*"):
        path.unlink()
    project.file("labels.csv", "".join(f"{code},label {code}\n" for code in range(100) if code % 3))


def expected(project: Project, query: str) -> list[tuple[Any, ...]]:
    """What a query over the sources and `labels` gives."""
    with duckdb.connect() as connection:
        for source, letter in SOURCES.items():
            columns = f"{{'{letter}_key': 'BIGINT', '{letter}_value': 'INTEGER', '{letter}_note': 'VARCHAR'}}"
            connection.execute(
                f"CREATE VIEW {source} AS FROM read_csv('{project.inbox}/{source}.*', delim='|', header=false, "
                f"auto_detect=false, quote='', escape='', columns={columns})"
            )
        connection.execute(
            f"CREATE VIEW labels AS FROM read_csv('{project.inbox}/labels.csv', header=false, auto_detect=false, "
            "columns={'code': 'INTEGER', 'label': 'VARCHAR'})"
        )
        return sorted(connection.sql(query).fetchall(), key=repr)


def stored(project: Project, table: str = "facts") -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return sorted(project.query(f"FROM {table}"), key=repr)


def joined(ended: Ended, table: str = "facts") -> dict[str, Any]:
    """The accounts of the last join of a run that has succeeded."""
    (own,) = [own for own in ended.succeeded()["tables"] if own["table"] == table]
    account: dict[str, Any] = own["join"]
    return account
