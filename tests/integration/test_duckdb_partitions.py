"""Declared partitions in DuckDB: a table for each and a view of them all, or one table that keeps the declaration."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace.run as run
from headrace.model import load_package
from headrace.run import RunFolder, RunRequest, Summary
from headrace.targets.duckdb import ddl
from tests.snapshots import assert_snapshot

PACKAGE = """
headrace: 1
package: sales
connections:
  inbox: {{type: files, path: .}}
  warehouse: {{type: duckdb, path: w.duckdb}}
streams: 2
tasks:
  load:
    data_flow:
      rejects: {{limit: {limit}}}
      sources:
        rows:
          connection: inbox
          files: "sales.*"
          layout:
            delimiter: ","
            columns:
              - {{name: id, type: int32, nullable: false}}
              - {{name: day, type: date}}
              - {{name: place, type: string}}
              - {{name: amount, type: "decimal(9,2)", nullable: false}}
      destinations:
        sales: {{input: rows, connection: warehouse, table: sales, {destination}}}
"""
MONTHS = "load: view, partition: {range: {column: day, every: 1 month}}"
COUNTRIES = "load: view, partition: {list: {column: place, values: {eu: [FR, DE], rest: [CN, null]}}"
ROWS = ["1,2024-01-01,FR,1.50", "2,2024-03-31,CN,2.00", "3,2024-01-31,DE,0.25", "4,2024-03-01,,4.00"]


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self, *files: list[str]) -> None:
        for old in self.folder.glob("sales.*"):
            old.unlink()
        for number, rows in enumerate(files):
            (self.folder / f"sales.{number}").write_text("".join(f"{row}\n" for row in rows))

    def bind(self, destination: str, limit: int = 0) -> Any:
        package = self.folder / "package.yaml"
        package.write_text(PACKAGE.format(destination=destination, limit=limit))
        return load_package(package, environ={})

    def run(self, destination: str, limit: int = 0) -> Summary:
        return run.execute(self.bind(destination, limit), runs_dir=self.folder / "runs")

    def load(self, destination: str, limit: int = 0) -> dict[str, Any]:
        summary = self.run(destination, limit)
        assert summary.failure is None, summary.failure.render()
        return summary.to_dict()

    def refused(self, destination: str) -> str:
        summary = self.run(destination)
        assert summary.failure is not None
        return summary.failure.render()

    def ids(self, table: str) -> list[int]:
        return [row[0] for row in self.query(f"SELECT id FROM {table} ORDER BY id")]

    def query(self, text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.folder / "w.duckdb"), read_only=True) as connection:
            return connection.execute(text).fetchall()

    def execute(self, *statements: str) -> None:
        with duckdb.connect(str(self.folder / "w.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)

    def tables(self) -> list[str]:
        return [
            row[0] for row in self.query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1")
        ]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.files(ROWS[:2], ROWS[2:])
    return place


def test_months_become_tables_and_the_view_shows_them(place: Place) -> None:
    assert place.load(f"{MONTHS}, target: create")["rows_loaded"] == 4
    assert place.tables() == ["sales_2024_01", "sales_2024_03"]
    assert (place.ids("sales_2024_01"), place.ids("sales_2024_03"), place.ids("sales")) == (
        [1, 3],
        [2, 4],
        [1, 2, 3, 4],
    )
    columns = place.query(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = 'sales_2024_01'"
    )
    assert columns == [
        ("id", "INTEGER", False),
        ("day", "DATE", True),
        ("place", "VARCHAR", True),
        ("amount", "DECIMAL(9,2)", False),
    ]
    assert place.query("SELECT count(*), sum(rows_loaded) FROM headrace.commit WHERE slice > 0") == [(2, 4)]
    assert "exists already" in place.refused(f"{MONTHS}, target: create")


def test_append_fills_tables_that_exist_and_adds_others(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    place.execute("COMMENT ON TABLE sales_2024_01 IS 'kept'")
    place.files(["5,2024-01-15,FR,1.00", "6,2024-02-15,FR,1.00"])
    place.load(f"{MONTHS}, target: append")
    assert place.tables() == ["sales_2024_01", "sales_2024_02", "sales_2024_03"]
    assert (place.ids("sales_2024_01"), place.ids("sales_2024_02")) == ([1, 3, 5], [6])
    assert place.ids("sales") == [1, 2, 3, 4, 5, 6]
    assert place.query("SELECT comment FROM duckdb_tables() WHERE table_name = 'sales_2024_01'") == [("kept",)]


def test_replace_drops_the_old_tables(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    place.files(["7,2024-01-15,FR,1.00", "8,2024-05-15,FR,1.00"])
    place.load(f"{MONTHS}, target: replace")
    assert place.tables() == ["sales_2024_01", "sales_2024_05"]
    assert place.ids("sales") == [7, 8]
    assert "drop the view: it is made anew" in place.refused(f"{COUNTRIES}}}, target: replace")


def test_one_partition_is_loaded_anew(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    place.files(["9,2024-03-15,FR,1.00", "10,2024-01-15,FR,1.00"])
    found = place.load(f"{MONTHS}, target: replace, partitions: [sales_2024_03]", limit=1)
    assert (found["rows_loaded"], found["rows_rejected"]) == (1, 1)
    assert place.ids("sales") == [1, 3, 9]
    place.files(["11,2024-03-15,FR,1.00", "12,2024-01-15,FR,1.00"])
    place.load(f"{MONTHS}, target: replace, partitions: [sales_2024_03, sales_2024_01]")
    assert (place.ids("sales_2024_01"), place.ids("sales_2024_03"), place.ids("sales")) == ([12], [11], [11, 12])
    assert "no partition `sales_1999`" in place.refused(f"{MONTHS}, target: replace, partitions: [sales_1999]")


def test_a_rolling_window(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    place.files(["5,2024-04-15,FR,1.00"])
    place.load(f"{MONTHS[:-1]}, keep: 2}}, target: append")
    assert (place.tables(), place.ids("sales")) == (["sales_2024_03", "sales_2024_04"], [2, 4, 5])
    # Rows of a month that has gone, or goes now, come too late.
    place.files(["6,2024-01-15,FR,1.00", "7,2024-03-15,FR,1.00", "8,2024-05-15,FR,1.00"])
    found = place.load(f"{MONTHS[:-1]}, keep: 2}}, target: append", limit=2)
    assert (found["rows_rejected"], found["tables"][0]["rejects"]["by_rule"]) == (2, {"partition": 2})
    assert (place.tables(), place.ids("sales")) == (["sales_2024_04", "sales_2024_05"], [5, 8])
    place.files(["9,2024-01-15,FR,1.00"])
    place.load(f"{MONTHS[:-1]}, keep: 2}}, target: append", limit=1)
    assert (place.tables(), place.ids("sales")) == (["sales_2024_04", "sales_2024_05"], [5, 8])
    place.load(f"{MONTHS[:-1]}, keep: 2, outside: default}}, target: append")
    assert (place.ids("sales_default"), place.ids("sales")) == ([9], [5, 8, 9])


def test_a_failed_load_changes_nothing(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    place.execute("CREATE UNIQUE INDEX once ON sales_2024_01 (id)")
    before = place.query("SELECT * FROM headrace.divided_view")
    place.files(["20,2024-06-15,FR,1.00", "3,2024-01-15,FR,1.00"])
    assert "breaks" in place.refused(f"{MONTHS}, target: append")
    assert (place.tables(), place.ids("sales")) == (["sales_2024_01", "sales_2024_03"], [1, 2, 3, 4])
    assert place.query("SELECT * FROM headrace.divided_view") == before


def test_rows_in_the_wrong_table_fail_the_load(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if all of them together are as many as there should be."""
    place.files([*ROWS, "5,2024-01-02,FR,1.00"])
    right = ddl.insert_place
    monkeypatch.setattr(ddl, "insert_place", lambda plan, table, place: right(plan, table, 1 - place))
    assert_snapshot("wrong_partition", place.refused(f"{MONTHS}, target: create"))
    assert place.tables() == []
    assert place.query("SELECT count(*) FROM headrace.commit") == [(0,)]


def test_rows_outside_are_rejects_or_have_a_table(place: Place) -> None:
    place.files([*ROWS, "5,2024-01-01,XX,1.00"])
    found = place.load(f"{COUNTRIES}}}, target: create", limit=1)
    assert (found["rows_rejected"], found["tables"][0]["rejects"]["by_rule"]) == (1, {"partition": 1})
    assert (place.ids("sales_eu"), place.ids("sales_rest")) == ([1, 3], [2, 4])
    place.load(f"{COUNTRIES}, outside: default}}, target: replace")
    assert place.ids("sales_default") == [5]


@pytest.mark.parametrize(
    ("clause", "rejected"),
    [
        ("list: {column: place, values: {eu: [FR, DE], rest: [CN]}}", 2),
        ("list: {column: place, values: {eu: [FR, DE], rest: [CN]}}, outside: default", 0),
        ("range: {column: day, every: 1 month, from: 2024-01-01, to: 2024-03-01}", 3),
        ("range: {column: day, every: 1 month, from: 2024-03-01}", 3),
        ("range: {column: day, every: 1 month}", 1),
        ("range: {column: day, bounds: [2024-02-01]}", 1),
        ("range: {column: day, parts: 2}", 1),
        ("range: {column: id}", 0),
        ("hash: {column: id, parts: 3}", 0),
    ],
)
def test_one_table_keeps_the_declaration(place: Place, clause: str, rejected: int) -> None:
    place.files(ROWS, ["5,,XX,1.00"])
    for _ in range(2):
        found = place.load(f"target: replace, partition: {{{clause}}}", limit=rejected)
        assert (found["rows_loaded"], found["rows_rejected"]) == (5 - rejected, rejected)
    assert place.tables() == ["sales"]
    if rejected:
        text = place.refused(f"target: replace, partition: {{{clause}}}")
        assert "no partition takes" in text or "partition" in text


def test_views_that_are_not_ours(place: Place) -> None:
    place.execute("CREATE TABLE t (id INTEGER)", "CREATE VIEW sales AS SELECT id FROM t")
    assert "is a view that no load has made" in place.refused(f"{MONTHS}, target: append")
    place.execute("DROP VIEW sales")
    place.load(f"{MONTHS}, target: create")
    place.execute("CREATE OR REPLACE VIEW sales AS SELECT id FROM t")
    assert "is a view that no load has made" in place.refused(f"{MONTHS}, target: append")


def test_what_disagrees_is_refused(place: Place) -> None:
    place.load(f"{MONTHS}, target: create")
    assert "partitioned in another way" in place.refused(f"{COUNTRIES}}}, target: append")
    assert "is a view, not a table" in place.refused("target: append")
    place.execute("CREATE TABLE sales_2024_07 (id INTEGER)")
    place.files(["5,2024-07-15,FR,1.00"])
    assert "name that is taken" in place.refused(f"{MONTHS}, target: append")
    assert "without a `partition` clause" in place.refused("target: append, load: view")
    clause = "partition: {range: {column: day, every: 1 month}}"
    assert "no partitions that could be loaded anew" in place.refused(
        f"target: replace, {clause}, partitions: [sales_2024_01]"
    )
    place.execute("DROP TABLE sales_2024_03")
    assert "does not exist" in place.refused(f"{MONTHS}, target: append")


def test_a_null_is_a_reject_where_a_table_of_the_view_takes_none(place: Place) -> None:
    place.load(f"{COUNTRIES}}}, target: create")
    place.execute("ALTER TABLE sales_eu ALTER day SET NOT NULL")
    place.files(["5,,FR,1.00", "6,2024-01-01,FR,1.00"])
    assert place.load(f"{COUNTRIES}}}, target: append", limit=1)["rows_rejected"] == 1


def test_a_verification_of_a_view(place: Place) -> None:
    place.files([*ROWS, "5,2024-01-01,XX,1.00"])
    package = place.bind(f"{COUNTRIES}}}, target: create", 1)
    request = RunRequest.of(package.path, [], [], None, place.folder)
    summary = run.execute(package, runs_dir=place.folder / "runs", request=request)
    folder = RunFolder(summary.run_id, Path(summary.run_folder))
    [verdict] = run.verify(package, folder, threading.Event())
    assert (verdict.status, verdict.rows_in_table, verdict.rows_rejected) == ("equal", 4, 1)
    place.execute("DELETE FROM sales_eu WHERE id = 1")
    [verdict] = run.verify(package, folder, threading.Event())
    assert verdict.status == "different"
