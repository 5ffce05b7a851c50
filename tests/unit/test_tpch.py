"""The demo's data and its independent check: the check must find every kind of difference."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

from headrace import core, tpch
from headrace.errors import CancelledError, CommandLineError, TargetError
from headrace.model.spec_data_flow import TPCH_TABLES
from headrace.tpch.generate import GenerateRequest, check_request, generate
from headrace.tpch.loaded import DuckdbTables
from headrace.tpch.verify import RECORD_TYPES, TableCheck, verify_tables
from tests.patience import HANG_SECONDS

ROWS = [(0, "AFRICA", 'a "quoted" word'), (1, "AMERICA", "b|c".replace("|", ",")), (2, "ASIA", "d"), (3, "EUROPE", "e")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The table region in two chunks."""
    for chunk, rows in [(1, ROWS[:2]), (2, ROWS[2:])]:
        text = "".join(f"{key}|{name}|{comment}|\n" for key, name, comment in rows)
        (tmp_path / f"region.tbl.{chunk}").write_text(text)
    return tmp_path


def check_after(data: Path, change: str, key_type: str = "INTEGER") -> TableCheck:
    database = data / "loaded.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE region (r_regionkey {key_type}, r_name VARCHAR, r_comment VARCHAR)")
        connection.executemany("INSERT INTO region VALUES (?, ?, ?)", ROWS)
        connection.execute(change)
    (check,) = verify_tables(DuckdbTables(database), data, ["region"])
    return check


def test_equal_tables_are_equal(data: Path) -> None:
    assert check_after(data, "SELECT 1") == TableCheck("region", 4, 4, 0, 0, {})


@pytest.mark.parametrize(
    ("change", "only_in_files", "only_in_table"),
    [
        ("DELETE FROM region WHERE r_regionkey = 2", 1, 0),
        ("INSERT INTO region FROM region WHERE r_regionkey = 1", 0, 1),
        ("UPDATE region SET r_comment = r_comment || ' ' WHERE r_regionkey = 1", 1, 1),
        ("UPDATE region SET r_comment = NULL WHERE r_regionkey = 3", 1, 1),
    ],
)
def test_differences_are_found(data: Path, change: str, only_in_files: int, only_in_table: int) -> None:
    check = check_after(data, change)
    assert not check.equal
    assert (check.only_in_files, check.only_in_table) == (only_in_files, only_in_table)


def test_a_wrong_type_is_found(data: Path) -> None:
    check = check_after(data, "SELECT 1", key_type="BIGINT")
    assert not check.equal
    assert check.wrong_types == {"r_regionkey": ("BIGINT", "INTEGER")}


def test_the_database_is_not_changed(data: Path) -> None:
    check_after(data, "SELECT 1")
    before = (data / "loaded.duckdb").read_bytes()
    list(verify_tables(DuckdbTables(data / "loaded.duckdb"), data, ["region"]))
    assert (data / "loaded.duckdb").read_bytes() == before
    assert sorted(path.name for path in data.iterdir()) == ["loaded.duckdb", "region.tbl.1", "region.tbl.2"]


def test_tables_are_those_of_the_package_format() -> None:
    assert set(tpch.TABLES) == set(TPCH_TABLES) == set(RECORD_TYPES)


def test_the_package_is_the_one_of_the_repository() -> None:
    root = Path(__file__).parents[2]
    for name in ["load.yaml", *(f"layouts/{table}.yaml" for table in tpch.TABLES)]:
        assert (tpch.package_path().parent / name).read_bytes() == (root / "examples" / "tpch" / name).read_bytes()


def test_text_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ["orders.tbl.10", "orders.tbl.9", "orders.tbl", "orders.tbl.bak", ".orders.tbl.1", "lineitem.tbl.1"]:
        (tmp_path / name).touch()
    assert [path.name for path in tpch.text_files(tmp_path, "orders")] == [
        "orders.tbl",
        "orders.tbl.9",
        "orders.tbl.10",
    ]


def test_names_of_files_are_those_that_are_generated(tmp_path: Path) -> None:
    for chunks in (1, 2):
        folder = tmp_path / str(chunks)
        files = generate(GenerateRequest(folder, 0.001, chunks), threading.Event(), lambda _written, _expected: None)
        names = [name for table in tpch.TABLES for name in tpch.file_names(table, chunks)]
        assert sorted(names) == sorted(Path(file["path"]).name for file in files)


@pytest.mark.parametrize(
    ("scale", "is_possible"),
    [
        *((scale, True) for scale in (0.0001, 10_737, 30_000, 100_000)),
        *((scale, False) for scale in (0, 0.00009, 10_738, 29_999, 100_001, float("nan"), float("inf"))),
    ],
)
def test_scales_are_those_of_the_core(tmp_path: Path, scale: float, is_possible: bool) -> None:
    request = GenerateRequest(tmp_path, scale, tables=("region",))
    spec = {"scale": scale, "chunks": 1, "chunk": None, "tables": ["region"], "folder": str(tmp_path), "threads": 1}
    if is_possible:
        assert core.generate_tpch(spec).join(HANG_SECONDS)
        check_request(request)
        return
    with pytest.raises(CommandLineError):
        check_request(request)


@pytest.mark.parametrize(
    ("chunks", "chunk", "threads"), [(0, None, 1), (100_001, None, 1), (1, 2, 1), (2, 0, 1), (1, None, 1025)]
)
def test_numbers_out_of_range_are_a_wrong_command_line(
    tmp_path: Path, chunks: int, chunk: int | None, threads: int
) -> None:
    with pytest.raises(CommandLineError):
        check_request(GenerateRequest(tmp_path, 1, chunks, chunk, threads=threads))


def test_a_cancelled_comparison_ends_at_once(data: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    check_after(data, "SELECT 1")
    with pytest.raises(CancelledError):
        list(verify_tables(DuckdbTables(data / "loaded.duckdb"), data, ["region"], cancel=cancel))


def test_a_database_that_cannot_be_read_is_no_defect(data: Path) -> None:
    (data / "loaded.duckdb").write_text("not a database")
    with pytest.raises(TargetError):
        list(verify_tables(DuckdbTables(data / "loaded.duckdb"), data, ["region"]))
