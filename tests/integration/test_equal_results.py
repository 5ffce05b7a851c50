"""The same rows whatever the way: again, in parallel, generated or from files; and always balanced accounts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace.tpch import TABLES, package_path, text_files
from headrace.tpch.loaded import DuckdbTables
from headrace.tpch.verify import RECORD_TYPES, verify_tables
from tests.integration.driver import Ended, Project


def run_example(project: Project, files: Path, *arguments: str, target: str = "warehouse.duckdb") -> Ended:
    """Runs examples/tpch/load.yaml."""
    command = [sys.executable, "-m", "headrace", "run", str(package_path()), "--runs-dir", "runs", "--json"]
    connection = target if target.endswith(":") else f"duckdb:{target}"
    return project.command([*command, "--set", f"data={files}", "--connection", f"warehouse={connection}", *arguments])


def check_accounts(summary: dict[str, Any]) -> None:
    """The identities of DESIGN 4, and the sums of the tables in the summary."""
    for table in summary["tables"]:
        assert table["lines"] == table["rows_read"] + table["rows_skipped"]
        assert table["rows_read"] == table["rows_loaded"] + table["rows_rejected"]
    for name in ("rows_read", "rows_loaded", "rows_rejected", "rows_skipped", "bytes_read"):
        assert summary[name] == sum(table[name] for table in summary["tables"])
    assert summary["rows_read"] == sum(stream["rows"] for stream in summary["streams"])


def difference(project: Project, table: str, left: Path, right: Path) -> tuple[int, int, int]:
    """Rows only in the left, rows only in the right, rows in the right."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{left}' AS l (READ_ONLY)")
        connection.execute(f"ATTACH '{right}' AS r (READ_ONLY)")
        row = connection.execute(
            f"SELECT (SELECT count(*) FROM (FROM l.{table} EXCEPT ALL FROM r.{table})),"
            f" (SELECT count(*) FROM (FROM r.{table} EXCEPT ALL FROM l.{table})), (SELECT count(*) FROM r.{table})"
        ).fetchone()
    assert row is not None
    return row


def test_the_example_loads_every_row_of_all_eight_tables_twice(project: Project, small_files: Path) -> None:
    for _ in range(2):
        summary = run_example(project, small_files).succeeded()
        check_accounts(summary)
        assert [table["table"] for table in summary["tables"]] == list(TABLES)
        assert summary["bytes_read"] == sum(path.stat().st_size for path in small_files.iterdir())
        checks = list(verify_tables(DuckdbTables(project.database), small_files))
        assert [check.table for check in checks if not check.equal] == []
        assert sum(check.rows_in_table for check in checks) == summary["rows_loaded"] > 80_000
    assert project.ledger() == ["success", "success"]
    ledger = project.query(
        "SELECT count(*), sum(end_byte - begin_byte) FROM headrace.slice "
        "WHERE slice > 0 AND run_id = (SELECT arg_max(run_id, started_at) FROM headrace.run)"
    )
    assert ledger == [(sum(table["slices"] for table in summary["tables"]), summary["bytes_read"])]
    assert project.leftovers() == []


def test_aggregates_of_null_are_those_of_the_files(project: Project, small_files: Path) -> None:
    summary = run_example(project, small_files, target="null:").succeeded()
    check_accounts(summary)
    assert not project.database.exists()
    for table in summary["tables"]:
        name = table["table"]
        for column in table["columns"]:
            expected = _own_aggregates(name, column["name"], small_files)
            assert {key: value for key, value in column.items() if key != "name"} == expected, column["name"]


def _own_aggregates(table: str, column: str, folder: Path) -> dict[str, Any]:
    """What DuckDB finds in the same files, with its own reader."""
    columns = {**RECORD_TYPES[table], "end_of_row": "VARCHAR"}
    kind = columns[column]
    names = ", ".join(f"'{name}': '{native}'" for name, native in columns.items())
    files = [str(path) for path in text_files(folder, table)]
    is_text, is_date = kind == "VARCHAR", kind == "DATE"
    aggregates = [
        "count(*)",
        f"count(*) - count({column})",
        "NULL" if is_text or is_date else f"sum({column})::VARCHAR",
        *(("NULL", "NULL") if is_text else (f"min({column})::VARCHAR", f"max({column})::VARCHAR")),
        *((f"{name}(length({column}))::BIGINT" for name in ("min", "max", "sum")) if is_text else ("NULL",) * 3),
    ]
    names_of_members = ("rows", "nulls", "sum", "min", "max", "min_length", "max_length", "total_length")
    with duckdb.connect() as connection:
        row = connection.execute(
            f"SELECT {', '.join(aggregates)} FROM read_csv({files}, columns = {{{names}}}, "
            "delim = '|', header = false, quote = '', escape = '', auto_detect = false)"
        ).fetchone()
    assert row is not None
    return dict(zip(names_of_members, row, strict=True))


def test_tables_without_files_are_skipped_unless_they_were_asked_for(project: Project, small_files: Path) -> None:
    """`x.tbl` and `x.tbl.K` are accepted alike, also together."""
    for name in ("supplier.tbl.1", "supplier.tbl.2", "nation.tbl"):
        shutil.copy(small_files / name, project.inbox / name)
    shutil.copy(small_files / "supplier.tbl.3", project.inbox / "supplier.tbl")
    summary = run_example(project, project.inbox).succeeded()
    assert [table["table"] for table in summary["tables"]] == ["supplier", "nation"]
    assert len(summary["skipped"]) == 6
    assert project.query("SELECT count(*), count(DISTINCT s_suppkey) FROM supplier") == [(100, 100)]
    ended = run_example(project, project.inbox, "--set", "tables=supplier,part")
    assert ended.exit_code == 1
    assert "files matching `part.tbl` or `part.tbl.*`" in ended.error
    assert project.query("SELECT count(*) FROM supplier") == [(100,)]
    assert run_example(project, project.inbox, "--set", "tables=nation").succeeded()["rows_loaded"] == 25


def test_create_append_replace(project: Project) -> None:
    project.file("orders.tbl.1")
    assert project.run(target="create").succeeded()["rows_loaded"] == 100
    ended = project.run(target="create")
    assert ended.exit_code == 1
    assert "exists already" in ended.error
    assert project.query("SELECT count(*), sum(id) FROM orders") == [(100, 5050)]
    project.run(target="append").succeeded()
    assert project.query("SELECT count(*), sum(id) FROM orders") == [(200, 10100)]
    project.run(target="replace").succeeded()
    assert project.query("SELECT count(*), sum(id) FROM orders") == [(100, 5050)]
    assert project.ledger() == ["success"] * 3


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory, tpch_files: Path) -> Project:
    """LINEITEM, loaded by one stream from the eight files."""
    project = Project(tmp_path_factory.mktemp("serial"))
    project.tpch("lineitem")
    project.link(tpch_files.glob("lineitem.*"))
    check_accounts(project.run("--streams", "1").succeeded())
    return project


def test_sixteen_streams_equal_one(project: Project, serial: Project, tpch_files: Path) -> None:
    """Sixteen streams, and all text in one file that has no row end at its end."""
    text = b"".join(path.read_bytes() for path in text_files(tpch_files, "lineitem"))
    project.file("lineitem.tbl", text.rstrip(b"\n"))
    project.tpch("lineitem")
    ended = project.run("--streams", "16")
    summary = ended.succeeded()
    check_accounts(summary)
    assert summary["tables"][0]["slices"] > 4
    assert difference(project, "lineitem", serial.database, project.database) == (0, 0, summary["rows_loaded"])


def test_generated_rows_equal_those_of_files(project: Project, serial: Project) -> None:
    project.tpch("lineitem", source="generate: {{tpch: {table}, scale: 0.05, chunks: 5}}")
    summary = project.run().succeeded()
    check_accounts(summary)
    assert difference(project, "lineitem", serial.database, project.database) == (0, 0, summary["rows_loaded"])


@pytest.mark.parametrize("target", ["duckdb", "null"])
def test_memory_is_bounded(project: Project, tpch_files: Path, target: str) -> None:
    """Sixteen streams and 300 MB of text: as the kernel counts it, and as the summary says."""
    project.own_processes = True
    project.tpch("lineitem")
    project.link(tpch_files.glob("lineitem.*"), copies=8)
    override = ["--connection", "warehouse=null:"] if target == "null" else []
    ended = project.run("--streams", "16", *override)
    summary = ended.succeeded()
    assert summary["bytes_read"] > 250_000_000
    assert 50_000_000 < ended.peak_resident_bytes < 700_000_000
    assert abs(summary["peak_resident_bytes"] - ended.peak_resident_bytes) < 50_000_000
