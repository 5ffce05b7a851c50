"""TPC-H in PostgreSQL, whatever the way of loading: every row that psql loads from the same files, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.tpch import TABLES, text_files
from tests.integration.postgres import PostgresProject, load_with_psql
from tests.integration.test_equal_results import check_accounts
from tests.servers.cluster import Cluster

PARTITIONED = ("lineitem", "orders", "partsupp", "part", "customer", "supplier")


def check_equal(warehouse: PostgresProject, tables: tuple[str, ...] = tuple(TABLES)) -> int:
    """EXCEPT ALL is empty both ways, and the columns have the record's types; the number of rows."""
    rows = 0
    for table in tables:
        [(only_loaded, only_expected, count)] = warehouse.query(
            f"SELECT (SELECT count(*) FROM (TABLE public.{table} EXCEPT ALL TABLE oracle.{table}) d),"
            f" (SELECT count(*) FROM (TABLE oracle.{table} EXCEPT ALL TABLE public.{table}) d),"
            f" (SELECT count(*) FROM public.{table})"
        )
        assert (table, only_loaded, only_expected) == (table, "0", "0")
        assert columns(warehouse, f"public.{table}") == columns(warehouse, f"oracle.{table}")
        rows += int(str(count))
    return rows


def columns(warehouse: PostgresProject, table: str) -> list[tuple[str | None, ...]]:
    """Names and types in order, and whether NULL may be stored."""
    return warehouse.query(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull OR relkind = 'v' "
        "FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
        f"WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )


def partitions(warehouse: PostgresProject, table: str) -> list[tuple[str, int]]:
    """The partitions of a table in the order of their names, and the rows in each."""
    names = warehouse.query(
        "SELECT relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid "
        f"WHERE inhparent = '{table}'::regclass ORDER BY length(relname), relname"
    )
    return [(str(name), int(str(warehouse.query(f"SELECT count(*) FROM {name}")[0][0]))) for (name,) in names]


def lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")


@pytest.mark.parametrize("mode", ["staged", "single", "view"])
def test_the_example_equals_psql(warehouse: PostgresProject, small_files: Path, tmp_path: Path, mode: str) -> None:
    """Into an empty database, and over the rows of the run before."""
    load_with_psql(warehouse.target, small_files, TABLES, tmp_path)
    for _ in range(2):
        summary = warehouse.command(warehouse.example(small_files, mode=mode)).succeeded()
        check_accounts(summary)
        assert check_equal(warehouse) == summary["rows_loaded"] > 80_000
    assert warehouse.ledger() == ["success", "success"]
    assert warehouse.leftovers() == []
    for table in PARTITIONED:
        files = text_files(small_files, table)
        expected = [(f"{table}_{number}", lines(file)) for number, file in enumerate(files, start=1)]
        assert partitions(warehouse, table) == (expected if mode == "staged" else [])


@pytest.mark.parametrize("mode", ["staged", "single"])
def test_every_version_takes_the_example(
    postgres_versions: Cluster, small_files: Path, tmp_path: Path, mode: str
) -> None:
    with postgres_versions.database() as database:
        load_with_psql(database, small_files, ("orders", "region"), tmp_path)
        (tmp_path / "project").mkdir()
        warehouse = PostgresProject(tmp_path / "project", database)
        command = warehouse.example(small_files, mode=mode, tables=("orders", "region"))
        summary = warehouse.command(command).succeeded()
        assert check_equal(warehouse, ("orders", "region")) == summary["rows_loaded"]
        assert warehouse.leftovers() == []


def test_the_ledger_holds_every_slice(warehouse: PostgresProject, small_files: Path) -> None:
    summary = warehouse.command(warehouse.example(small_files, mode="staged")).succeeded()
    assert warehouse.query("SELECT count(*), sum(end_byte - begin_byte) FROM headrace.slice WHERE slice > 0") == [
        (str(sum(table["slices"] for table in summary["tables"])), str(summary["bytes_read"]))
    ]
    committed = warehouse.query('SELECT sum(rows_loaded), sum(rows_rejected) FROM headrace."commit"')
    assert committed == [(str(summary["rows_loaded"]), "0")]


@pytest.mark.parametrize("streams", ["1", "16"])
@pytest.mark.parametrize("load", ["single", "staged"])
def test_the_number_of_streams_changes_nothing(
    warehouse: PostgresProject, small_files: Path, tmp_path: Path, load: str, streams: str
) -> None:
    """More streams than files, and fewer."""
    load_with_psql(warehouse.target, small_files, ("lineitem",), tmp_path)
    command = warehouse.example(small_files, "--streams", streams, mode=load, tables=("lineitem",))
    check_accounts(warehouse.command(command).succeeded())
    check_equal(warehouse, ("lineitem",))


def test_memory_is_bounded(warehouse: PostgresProject, tpch_files: Path) -> None:
    """Sixteen streams and 300 MB of text, as the kernel counts it."""
    warehouse.own_processes = True
    warehouse.tpch("lineitem")
    warehouse.link(tpch_files.glob("lineitem.*"), copies=8)
    ended = warehouse.run("--streams", "16")
    summary: dict[str, Any] = ended.succeeded()
    assert summary["bytes_read"] > 250_000_000
    assert 30_000_000 < ended.peak_resident_bytes < 400_000_000
