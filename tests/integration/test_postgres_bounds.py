"""Partitions whose last key is the largest value of its type: they have no upper bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Cluster
from tests.snapshots import assert_snapshot

# Type in the layout, keys of two files that follow each other.
LARGEST: dict[str, tuple[str, list[object], list[object]]] = {
    "int16": ("int16", [-32768, -1], [5, 32767]),
    "int64": ("int64", [1, 2], [3, 2**63 - 1]),
    "decimal": ("decimal(15,2)", ["0.00", "99.98"], ["99.99", "9999999999999.99"]),
    "date": ("date", ["0001-01-01", "2024-02-29"], ["2024-03-01", "9999-12-31"]),
    "timestamp": (
        "timestamp",
        ["2024-01-01 00:00:00", "2024-01-02 00:00:00"],
        ["2024-01-03 00:00:00", "9999-12-31 23:59:59.999999"],
    ),
}
PACKAGE = """
headrace: 1
package: keys
parameters:
  target: {{type: string, default: replace}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  keys: {{delimiter: "|", columns: [{{name: key, type: "{type}", nullable: false}}]}}
streams: 2
tasks:
  load:
    data_flow:
      sources:
        keys: {{connection: inbox, files: "keys.*", layout: keys}}
      destinations:
        loaded:
          {{input: keys, connection: warehouse, table: keys, target: "${{target}}", load: staged,
           partition: {{range: {{column: key}}}}}}
"""
BOUNDS = """
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname LIKE 'keys\\__' ORDER BY relname
"""


@pytest.fixture
def every_version(postgres_versions: Cluster, tmp_path: Path) -> Iterator[PostgresProject]:
    with postgres_versions.database() as database:
        yield PostgresProject(tmp_path, database)


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_key_of_a_type(every_version: PostgresProject, case: str) -> None:
    """Nothing is scanned when it is attached: its CHECK says already what the server wants to know."""
    project, (data_type, *files) = every_version, LARGEST[case]
    project.package(PACKAGE.format(type=data_type))
    for number, keys in enumerate(files, start=1):
        project.file(f"keys.{number}", "".join(f"{key}\n" for key in keys))
    project.target.psql(f'ALTER DATABASE "{project.target.name}" SET log_min_messages = debug1')
    log_before = len(project.target.cluster.log_text())
    for _ in range(2):  # made new, then like the existing table
        project.run().succeeded()
        assert project.query("SELECT count(*) FROM keys") == [("4",)]
        first, last = project.query(BOUNDS)
        assert "MAXVALUE" not in str(first) and str(last[0]).endswith("TO (MAXVALUE)")
    log = project.target.cluster.log_text()[log_before:]
    attached = 'partition constraint for table "keys_{}" is implied by existing constraints'
    assert [log.count(attached.format(number)) for number in (1, 2)] == [2, 2]
    assert project.leftovers() == []


def test_nothing_is_appended_behind_the_largest_key(warehouse: PostgresProject) -> None:
    warehouse.package(PACKAGE.format(type="int64"))
    warehouse.file("keys.1", f"1\n{2**63 - 1}\n")
    warehouse.run().succeeded()
    refused = warehouse.run(target="append")
    assert_snapshot("postgres_no_room_behind_the_largest_key", warehouse.stable(refused.error))


def test_a_row_below_a_partition_without_end(warehouse: PostgresProject) -> None:
    warehouse.package(PACKAGE.format(type="int64"))
    warehouse.file("keys.1", f"5\n4\n{2**63 - 1}\n")
    ended = warehouse.run()
    assert_snapshot("postgres_below_open_bounds", warehouse.stable(ended.error))
    assert warehouse.tables() == []
