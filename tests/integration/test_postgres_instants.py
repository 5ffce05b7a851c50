"""Tables that are divided by instants: bounds and periods are in UTC, whatever zone a session or a file has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.test_postgres_declared import keys_file, run, write
from tests.servers.cluster import Database

PLAN = [sys.executable, "-m", "headrace", "plan", "package.yaml"]


@pytest.fixture
def warehouse(database: Database, tmp_path: Path) -> PostgresProject:
    """On a server whose own sessions show the time of another zone."""
    project = PostgresProject(tmp_path, database)
    project.execute(f"ALTER DATABASE \"{database.name}\" SET TimeZone = 'Asia/Kolkata'")
    return project


def declared(project: PostgresProject, clause: str, target: str = "append") -> None:
    write(project, f"partition: {{range: {{column: id{clause}}}}}", target, type="timestamptz")


def by_partition(project: PostgresProject) -> dict[str, list[str]]:
    """Keys in each partition that has rows, in UTC."""
    found: dict[str, list[str]] = {}
    for name, key in project.query(
        "SELECT tableoid::regclass, to_char(id AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM keys ORDER BY 1, 2"
    ):
        found.setdefault(str(name), []).append(str(key))
    return found


def test_months_of_a_table_that_exists(warehouse: PostgresProject) -> None:
    """Its bounds were written with the offset of somebody's session; a partition may be longer than a month."""
    warehouse.execute(
        "CREATE TABLE keys (id timestamptz, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE keys_old PARTITION OF keys FOR VALUES FROM (MINVALUE) TO ('2023-12-31 19:00:00-05');"
        "CREATE TABLE keys_2024_01 PARTITION OF keys "
        "FOR VALUES FROM ('2024-01-01 05:30:00+05:30') TO ('2024-02-01 01:00:00+01')"
    )
    declared(warehouse, ", every: 1 month")
    keys_file(warehouse, "a", ["2024-01-01 05:29:00+05:30", "2023-12-31 19:00:00-05:00", "2024-02-01 00:59:00+01:00"])
    keys_file(warehouse, "b", ["2024-02-01 01:00:00+01:00", "2024-03-31 23:59:00Z", "2024-04-01 00:00:00+00:30"])
    run(warehouse, verified=False)
    assert by_partition(warehouse) == {
        "keys_old": ["2023-12-31 23:59"],
        "keys_2024_01": ["2024-01-01 00:00", "2024-01-31 23:59"],
        "keys_2024_02": ["2024-02-01 00:00"],
        "keys_2024_03": ["2024-03-31 23:30", "2024-03-31 23:59"],
    }
    assert "bounds, periods and values of `id` are in UTC" in warehouse.command(PLAN).stdout
    run(warehouse, verified=False)  # all partitions are there now
    assert warehouse.query("SELECT count(*), count(DISTINCT tableoid) FROM keys") == [("12", "4")]


def test_bounds_of_a_month_elsewhere_are_others(warehouse: PostgresProject) -> None:
    warehouse.execute(
        "CREATE TABLE keys (id timestamptz, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE keys_2024_01 PARTITION OF keys FOR VALUES FROM ('2024-01-01 00:00') TO ('2024-02-01 00:00')"
    )
    before = warehouse.content()
    declared(warehouse, ", every: 1 month")
    keys_file(warehouse, "a", ["2024-01-31 23:00:00Z"])
    refused = warehouse.run()
    assert (refused.exit_code, warehouse.content()) == (1, before)
    assert "from 2023-12-31 18:30:00+00:00 to before 2024-01-31 18:30:00+00:00" in refused.error


def test_files_with_instants(warehouse: PostgresProject) -> None:
    """The first and last keys are moments, not texts; the next load adds its files."""
    declared(warehouse, "")
    keys_file(warehouse, "a", ["2024-01-01 00:00:00Z", "2024-01-01 22:00:00-01:00"])
    keys_file(warehouse, "b", ["2024-01-02 04:59:00+05:00", "2024-01-02 00:00:00Z"])
    run(warehouse, verified=False)
    assert by_partition(warehouse) == {
        "keys_1": ["2024-01-01 00:00", "2024-01-01 23:00"],
        "keys_2": ["2024-01-01 23:59", "2024-01-02 00:00"],
    }
    keys_file(warehouse, "a", ["2024-01-02 01:00:00+00:59"])
    (warehouse.inbox / "b.txt").unlink()
    run(warehouse, verified=False)
    assert by_partition(warehouse)["keys_3"] == ["2024-01-02 00:01"]


@pytest.mark.parametrize(
    ("clause", "rejected"),
    [("", 1), (", every: 1 month", 1), (", every: 1 week", 1), (", parts: 2", 0), (", bounds: [2024-01-01]", 0)],
)
def test_moments_that_their_offset_moves_out_of_the_calendar(
    warehouse: PostgresProject, clause: str, rejected: int
) -> None:
    """Rows of an outer range, or rejects."""
    declared(warehouse, clause, "replace")
    keys_file(warehouse, "a", ["0001-01-01 00:00:00+01:00", "2024-01-05 00:00:00Z", "9999-12-31 23:59:59-01:00"])
    summary = run(warehouse).summary
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (3 - rejected, rejected)
