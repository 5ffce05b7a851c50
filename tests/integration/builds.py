"""Packages with builds, on DuckDB and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.control_flow import PackageProject, Rows, package_project
from tests.servers.cluster import Cluster

HEAD = """\
headrace: 1
package: sales
parameters:
  least: {type: integer, default: 0}
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
"""
LINES = 1_000
# Every 10th line has no part.
MAKE = f"""\
  make:
    sql:
      connection: warehouse
      text: |
        CREATE TABLE line (id BIGINT NOT NULL, part INTEGER NOT NULL, price DECIMAL(15,2) NOT NULL);
        CREATE TABLE part (part INTEGER NOT NULL, name VARCHAR(20) NOT NULL);
        INSERT INTO line SELECT n, n % 10, n + 0.25 FROM generate_series(1, {LINES}) AS numbers (n);
        INSERT INTO part SELECT n, 'part ' || n FROM generate_series(1, 9) AS numbers (n);
"""
JOINED = """\
SELECT id, COALESCE(name, 'none') AS name, CAST(price * 2 AS DECIMAL(15,2)) AS amount
FROM line LEFT JOIN part ON line.part = part.part WHERE id > $least"""


class BuildProject(PackageProject):
    """With a package of the tasks that a test needs."""

    def tasks(self, *tasks: str, head: str = HEAD) -> None:
        """Writes the package."""
        self.write({"package.yaml": head + "tasks:\n" + "".join(tasks)})

    def count(self, table: str = "sales") -> int:
        """Rows of a table."""
        return int(str(self.rows(f"SELECT count(*) FROM {table}")[0][0]))

    def differences(self, query: str, table: str = "sales") -> Rows:
        """What a query gives that is not in a table, and the other way round, however often."""
        both = f"(({query}) EXCEPT ALL SELECT * FROM {table})", f"(SELECT * FROM {table} EXCEPT ALL ({query}))"
        return self.rows(f"SELECT * FROM {both[0]} AS a UNION ALL SELECT * FROM {both[1]} AS b")


def build(select: str = JOINED, *, name: str = "sales", target: str = "create", after: str = "", more: str = "") -> str:
    """A task `build_<name>`; `more`: further settings, each a line."""
    lines = "".join(f"        {line}\n" for line in select.splitlines())
    behind = f"    after: {after}\n" if after else ""
    settings = "".join(f"      {line}\n" for line in more.splitlines())
    return (
        f"  build_{name}:\n{behind}    build:\n      connection: warehouse\n      table: {name}\n"
        f"      target: {target}\n{settings}      select: |\n{lines}"
    )


@contextmanager
def build_project(target: str, folder: Path, postgres: Cluster) -> Iterator[BuildProject]:
    """An empty project with an empty database."""
    with package_project(target, folder, postgres) as project:
        yield BuildProject(project.project)


def table_of(summary: dict[str, Any], name: str = "sales") -> dict[str, Any]:
    """The entry of a table in a summary."""
    (found,) = [table for table in summary["tables"] if table["table"] == name]
    entry: dict[str, Any] = found
    return entry
