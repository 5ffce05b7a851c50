"""The DuckDB target against real files: catalog, load, ledger, and every way in which a file cannot be opened."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace.errors import AccountsError, CancelledError, HeadraceError, LedgerError, TargetBusyError, TargetError
from headrace.planning import CatalogTable, DataFlowPlan
from headrace.targets import LostRun, OpenOptions, RunRecord
from headrace.targets.duckdb.target import DuckdbTarget
from tests.snapshots import assert_snapshot
from tests.unit.executors.fake_flow import SLICE_ROWS, FakeFlow, plan, result
from tests.unit.planning import samples

ROWS = 4 * SLICE_ROWS
HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


def options(**changes: Any) -> OpenOptions:
    default = OpenOptions(
        engine_bytes=200_000_000,
        threads=2,
        spill_folder=None,
        read_only=False,
        notice=lambda text: None,
        is_cancelled=lambda: False,
    )
    return replace(default, **changes)


def record(run_id: str) -> RunRecord:
    return RunRecord(run_id, "sales", "hash", "0.1.0", "host", os.getpid(), datetime.now(UTC))


def load(path: Path, planned: DataFlowPlan, run_id: str = "run-1", rows: int = ROWS) -> None:
    """One whole run of one task; `rows` is what the accounts expect."""

    def settle(inserted: int | None) -> dict[str, Any]:
        if inserted != rows:
            raise AccountsError(f"{inserted} instead of {rows}")
        return result(len(planned.source.slices), planned.streams)

    with DuckdbTarget(path, 5, options()) as target:
        target.begin_run(record(run_id))
        target.record_slices(run_id, planned)
        try:
            flow = FakeFlow(planned.flow_spec("/rejects", target.sink_spec(run_id, planned)))
            target.load(run_id, planned, flow, settle)
        except HeadraceError as error:
            target.end_run(run_id, "failed", error.what)
            raise
        target.end_run(run_id, "success", None)


def query(path: Path, text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(text).fetchall()


def execute(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def catalog(path: Path, table: str, schema: str | None = None) -> CatalogTable | None:
    with DuckdbTarget(path, 5, options(read_only=True)) as target:
        return target.catalog(schema, table)


def test_create_load_and_ledger(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan())
    assert query(path, "SELECT count(*), min(name) FROM orders") == [(ROWS, "name 0")]
    assert query(path, "SELECT run_id, status, error, finished_at >= started_at FROM headrace.run") == [
        ("run-1", "success", None, True)
    ]
    slices = query(
        path, "SELECT task, slice, file, begin_byte, end_byte, file_bytes FROM headrace.slice ORDER BY slice"
    )
    assert slices[0] == ("load_orders", 0, "", 0, 0, 0)
    assert slices[4] == ("load_orders", 4, "/data/orders.tbl", 300, 400, 400)
    commits = query(path, 'SELECT slice, "partition", rows_loaded, rows_rejected FROM headrace."commit" ORDER BY slice')
    # Slice 0 stands for the task.
    assert commits == [(0, "", 0, 0), *((number, "", SLICE_ROWS, 0) for number in range(1, 5))]


def test_a_ledger_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan(table="first"))
    # A column cannot be dropped from a table with a key.
    for table, late in [
        ("commit", "text_bytes, values_ignored, text_hash, rows_filtered"),
        ("run", "of_run"),
        ("slice", '"schema"'),
    ]:
        execute(
            path,
            f"CREATE TABLE headrace.earlier AS SELECT * EXCLUDE ({late}) FROM headrace.{table}",
            f"DROP TABLE headrace.{table}",
            f"ALTER TABLE headrace.earlier RENAME TO {table}",
        )
    execute(path, "DROP TABLE headrace.replay", "DROP VIEW headrace.lineage")
    load(path, plan(), run_id="run-2")
    sums = "sum(rows_loaded), sum(text_bytes), sum(values_ignored)"
    sums = f"SELECT run_id, {sums} FROM headrace.commit GROUP BY run_id ORDER BY run_id"
    assert query(path, sums) == [("run-1", ROWS, 0, 0), ("run-2", ROWS, 400, 0)]
    assert query(path, "SELECT run_id, of_run FROM headrace.run ORDER BY run_id") == [("run-1", None), ("run-2", None)]
    assert query(path, 'SELECT DISTINCT run_id, "schema" FROM headrace.slice ORDER BY run_id') == [
        ("run-1", None),
        ("run-2", "main"),
    ]
    assert query(path, "SELECT count(*) FROM headrace.replay") == [(0,)]
    hashes = "SELECT run_id, sum(slices), count(file_hash), count(slices_hash) FROM headrace.lineage GROUP BY run_id"
    assert query(path, f"{hashes} ORDER BY run_id") == [("run-1", 4, 0, 0), ("run-2", 4, 0, 1)]


def test_storage_is_readable_by_duckdb_1_5(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan())
    versions = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE path IS NOT NULL"
    assert query(path, versions) == [("v1.5.0+",)]


@pytest.mark.parametrize("version", ["v1.2.0", "v2.0.0"])
def test_an_existing_file_keeps_its_storage_version(tmp_path: Path, version: str) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH '{path}' AS w (STORAGE_VERSION '{version}')")
        connection.execute("CREATE TABLE w.other AS SELECT 1 AS a")
    load(path, plan())
    versions = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE path IS NOT NULL"
    assert query(path, versions) == [(f"{version}+",)]


def test_replace_keeps_constraints_comments_and_views(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(
        path,
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR)",
        "COMMENT ON TABLE orders IS 'kept'",
        "CREATE VIEW names AS SELECT name FROM orders",
        "INSERT INTO orders SELECT range, 'old' FROM range(5000)",
    )
    load(path, plan(target="replace", catalog=catalog(path, "orders")))
    assert query(path, "SELECT count(*), count(*) FILTER (name = 'old') FROM names") == [(ROWS, 0)]
    assert query(path, "SELECT comment FROM duckdb_tables() WHERE table_name = 'orders'") == [("kept",)]
    with pytest.raises(duckdb.ConstraintException):
        execute(path, "INSERT INTO orders VALUES (1, 'again')")


def test_append_adds(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan())
    load(path, plan(target="append", catalog=catalog(path, "orders")), run_id="run-2")
    assert query(path, "SELECT count(*) FROM orders") == [(2 * ROWS,)]
    assert query(path, 'SELECT run_id, sum(rows_loaded) FROM headrace."commit" GROUP BY ALL ORDER BY 1') == [
        ("run-1", ROWS),
        ("run-2", ROWS),
    ]


def test_identifiers_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    layout = samples.layout(**{"id": "int64!", "name": "string"})
    planned = plan(table='or"ders; --', layout=layout, columns={'se"lect': "id", "from": "name"})
    load(path, planned)
    assert query(path, 'SELECT count("se""lect") FROM "or""ders; --"') == [(ROWS,)]


def test_a_failed_load_leaves_no_table_but_says_so_in_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with pytest.raises(AccountsError):
        load(path, plan(), rows=ROWS + 1)
    assert catalog(path, "orders") is None
    assert query(path, "SELECT status, error FROM headrace.run") == [("failed", f"{ROWS} instead of {ROWS + 1}")]
    assert query(path, 'SELECT count(*) FROM headrace."commit"') == [(0,)]
    load(path, plan(), run_id="run-2")
    assert query(path, "SELECT count(*) FROM orders") == [(ROWS,)]


def test_a_failed_replace_keeps_the_old_rows(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(path, "CREATE TABLE orders AS SELECT 1::BIGINT AS id, 'old' AS name")
    with pytest.raises(AccountsError):
        load(path, plan(target="replace", catalog=catalog(path, "orders")), rows=0)
    assert query(path, "SELECT * FROM orders") == [(1, "old")]


def test_a_broken_constraint_fails_the_load(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(path, "CREATE TABLE orders (id BIGINT CHECK (id < 3000), name VARCHAR)")
    with pytest.raises(TargetError) as caught:
        load(path, plan(target="append", catalog=catalog(path, "orders")))
    assert_snapshot("constraint", caught.value.render())
    assert query(path, "SELECT count(*) FROM orders") == [(0,)]


def test_a_run_that_died_is_marked_lost(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with DuckdbTarget(path, 5, options()) as target:
        assert target.begin_run(record("run-1")) == []
    with DuckdbTarget(path, 5, options()) as target:
        assert target.begin_run(record("run-2")) == [LostRun("run-1", ())]
        target.end_run("run-2", "success", None)
    assert query(path, "SELECT run_id, status FROM headrace.run ORDER BY 1") == [
        ("run-1", "lost"),
        ("run-2", "success"),
    ]


def test_a_run_that_died_says_what_it_had_committed(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan())
    execute(path, "UPDATE headrace.run SET status = 'running'")  # as if the process had died before it could say so
    with DuckdbTarget(path, 5, options()) as target:
        assert target.begin_run(record("run-2")) == [LostRun("run-1", ("orders",))]


def test_one_commit_row_per_slice_and_run(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    load(path, plan())
    with pytest.raises(HeadraceError):
        load(path, plan(target="append", catalog=catalog(path, "orders")))
    assert query(path, "SELECT count(*) FROM orders") == [(ROWS,)]


def test_planning_creates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    assert catalog(path, "orders") is None
    with DuckdbTarget(path, 5, options()) as target:
        assert target.catalog(None, "orders") is None
        assert list(target.notes) == [f"{path} does not exist and will be created"]
    assert list(tmp_path.iterdir()) == []


def test_catalog(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(
        path,
        "CREATE TABLE Orders (a SMALLINT NOT NULL, b INTEGER DEFAULT 1, c BIGINT, d DECIMAL(15,2), e HUGEINT, f FLOAT,"
        " g DOUBLE, h BOOLEAN, i DATE, j TIME, k TIMESTAMP, l TIMESTAMPTZ, m VARCHAR(10), n BLOB, o UUID, p JSON,"
        " q INTEGER[], r AS (b + 1))",
        "CREATE VIEW v AS SELECT 1 AS a",
    )
    table = catalog(path, "ORDERS")
    assert table is not None
    assert (table.schema, table.name, table.kind) == ("main", "Orders", "table")
    types = [None if column.type is None else str(column.type) for column in table.columns]
    assert types[:8] == ["int16", "int32", "int64", "decimal(15,2)", "decimal(38,0)", "float32", "float64", "bool"]
    assert types[8:16] == ["date", "time", "timestamp", "timestamptz", "string", "bytes", "uuid", "json"]
    assert types[16:] == [None, "int32"]
    assert [column.name for column in table.columns if not column.nullable] == ["a"]
    assert [column.name for column in table.columns if column.has_default] == ["b", "r"]
    assert [column.name for column in table.columns if column.generated] == ["r"]
    view = catalog(path, "v")
    assert view is not None
    assert view.kind == "view"


def test_catalog_knows_what_depends_on_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(
        path,
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, code VARCHAR UNIQUE)",
        "CREATE TABLE child (parent_id INTEGER REFERENCES parent (id))",
        "CREATE UNIQUE INDEX child_index ON child (parent_id)",
    )
    parent, child = catalog(path, "PARENT"), catalog(path, "child")
    assert parent is not None and child is not None
    assert sorted(parent.indexes) == ["PRIMARY KEY(id)", "UNIQUE(code)"]
    assert (parent.referenced_by, child.referenced_by) == (("child",), ())
    assert child.indexes == ("index child_index",)


def test_a_commit_that_kept_nothing_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with DuckdbTarget(path, 5, options()) as target:
        target.begin_run(record("run-1"))
        with pytest.raises(LedgerError, match="was not kept"):
            target._ledger().check_committed("run-1", plan(), ROWS)


@contextmanager
def held_open(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the database open."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def hidden(text: str, *names: tuple[object, str]) -> str:
    for name, replacement in names:
        text = text.replace(str(name), replacement)
    return text


def test_locked_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(path, "CREATE TABLE t (a INTEGER)")
    notices: list[str] = []
    with held_open(path) as process, pytest.raises(TargetBusyError) as caught:
        DuckdbTarget(path, 0.5, options(notice=notices.append))
    assert len(notices) == 1
    program = os.path.realpath(f"{sys.executable}")
    names = ((path, "DATABASE"), (process.pid, "PID"), (program, "PYTHON"))
    assert_snapshot("locked", hidden(f"{caught.value.render()}\n\nnotice: {notices[0]}", *names))


def test_a_lock_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(path, "CREATE TABLE t (a INTEGER)")
    notices: list[str] = []
    with held_open(path) as process:
        assert process.stdin is not None
        threading.Timer(0.5, process.stdin.close).start()
        DuckdbTarget(path, 30, options(notice=notices.append)).close()
    assert len(notices) == 1


def test_waiting_for_a_lock_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    execute(path, "CREATE TABLE t (a INTEGER)")
    with held_open(path), pytest.raises(CancelledError):
        DuckdbTarget(path, 30, options(is_cancelled=lambda: True))


def test_open_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        with pytest.raises(TargetBusyError) as caught:
            DuckdbTarget(path, 30, options())
    assert "this process" in caught.value.what


def corrupt(path: Path) -> None:
    execute(path, "CREATE TABLE t AS SELECT range AS a FROM range(1000)")
    with path.open("r+b") as file:
        file.seek(4096 + 100)
        file.write(b"\xff" * 3000)


def cut_short(path: Path) -> None:
    execute(path, "CREATE TABLE t AS SELECT range AS a FROM range(1000)")
    os.truncate(path, 13_000)


@pytest.mark.parametrize("case", ["folder", "no_folder", "text", "empty", "corrupt", "cut_short"])
def test_cannot_open(tmp_path: Path, case: str) -> None:
    path = tmp_path / "w.duckdb"
    match case:
        case "folder":
            path.mkdir()
        case "no_folder":
            path = tmp_path / "none" / "w.duckdb"
        case "text":
            path.write_text("some text\n" * 1000)
        case "empty":
            path.touch()
        case "corrupt":
            corrupt(path)
        case "cut_short":
            cut_short(path)
    with pytest.raises(TargetError) as caught:
        DuckdbTarget(path, 5, options())
    assert not caught.value.retryable
    text = hidden(caught.value.render(), (tmp_path, "FOLDER"))
    assert_snapshot(f"open_{case}", "".join("#" if character.isdigit() else character for character in text))


def test_missing_schema(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    with pytest.raises(TargetError, match="no schema `mart`"):
        catalog(path, "orders", "mart")
    execute(path, "CREATE SCHEMA mart")
    assert catalog(path, "orders", "MART") is None


def test_the_schema_of_the_ledger_takes_no_tables(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="belongs to the ledger"):
        catalog(tmp_path / "w.duckdb", "orders", "Headrace")


@pytest.mark.parametrize(
    ("engine_bytes", "threads", "expected"), [(400_000_000, 2, 2), (100_000_000, 64, 5), (1, 8, 1)]
)
def test_threads_fit_the_memory(tmp_path: Path, engine_bytes: int, threads: int, expected: int) -> None:
    engine_bytes = max(engine_bytes, 16_000_000)
    with DuckdbTarget(tmp_path / "w.duckdb", 5, options(engine_bytes=engine_bytes, threads=threads)) as target:
        assert target.engine_threads == expected
