"""TPC-H rows in any order, in files of any size, find the same partitions: those that psql's COPY would have filled."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.tpch import text_files
from tests.integration.postgres import PostgresProject, load_with_psql
from tests.integration.test_equal_results import check_accounts
from tests.integration.test_postgres_equal_results import PARTITIONED, check_equal

PARTS = 8
BOUNDS = """
SELECT inhparent::regclass::text, relname, pg_get_expr(relpartbound, c.oid)
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid ORDER BY 1, 2
"""


@pytest.fixture(scope="module")
def shuffled_files(small_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All rows of all files of each table in random order, cut into five files, none as long as another."""
    folder = tmp_path_factory.mktemp("shuffled")
    rng = random.Random(8)
    for table in PARTITIONED:
        rows = [row for file in text_files(small_files, table) for row in file.read_bytes().splitlines(keepends=True)]
        rng.shuffle(rows)
        cuts = [0, *sorted(rng.sample(range(1, len(rows)), 4)), len(rows)]
        for number, (begin, end) in enumerate(pairwise(cuts), 1):
            (folder / f"{table}.tbl.{number}").write_bytes(b"".join(rows[begin:end]))
    return folder


@pytest.mark.parametrize("streams", ["1", "3", "16"])
def test_shuffled_files_load_to_the_same_partitions(
    warehouse: PostgresProject, small_files: Path, shuffled_files: Path, tmp_path: Path, streams: str
) -> None:
    load_with_psql(warehouse.target, small_files, PARTITIONED, tmp_path)
    options = ("--set", f"parts={PARTS}", "--streams", streams)
    ordered = warehouse.command(warehouse.example(small_files, *options, mode="staged", tables=PARTITIONED)).succeeded()
    check_accounts(ordered)
    check_equal(warehouse, PARTITIONED)
    bounds = warehouse.query(BOUNDS)
    for table in PARTITIONED:
        parts = [part for parent, part, _ in bounds if parent == table]
        assert len(parts) == PARTS
        # About as many rows each: keys of LINEITEM have up to seven rows.
        rows = [int(str(warehouse.query(f"SELECT count(*) FROM {part}")[0][0])) for part in parts]
        assert max(rows) - min(rows) <= 16, (table, rows)
        warehouse.target.psql(f"CREATE TABLE oracle.{table}_placed AS {placed(table)}")
    shuffled = warehouse.command(
        warehouse.example(shuffled_files, *options, mode="staged", tables=PARTITIONED)
    ).succeeded()
    check_accounts(shuffled)
    assert shuffled["rows_loaded"] == ordered["rows_loaded"] == check_equal(warehouse, PARTITIONED)
    assert warehouse.query(BOUNDS) == bounds
    for table in PARTITIONED:
        kept = f"TABLE oracle.{table}_placed"
        assert warehouse.query(
            f"SELECT (SELECT count(*) FROM ({placed(table)} EXCEPT ALL {kept}) d),"
            f" (SELECT count(*) FROM ({kept} EXCEPT ALL {placed(table)}) d)"
        ) == [("0", "0")]
    assert warehouse.leftovers() == []


def placed(table: str) -> str:
    """Every row and its partition."""
    return f"SELECT tableoid::regclass::text AS partition, * FROM public.{table}"
