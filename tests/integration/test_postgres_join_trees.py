"""Several joins of one data flow on the way into PostgreSQL: the rows of DuckDB's own joins, however they are loaded,
committed, killed and resumed; rejects in a table; rows that break a constraint.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.connections_scenes import stopped
from tests.integration.driver import Ended
from tests.integration.join_tree_scenes import DETAILED, SENT, expected, joined, package, write_files
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text, tables_of
from tests.integration.test_join_trees_beside import DESTINATIONS, SOURCES, TRANSFORMS, WANTED

# Kills, each of which is resumed.
KILLS = int(os.environ.get("KILLS", "3"))
PRICED = 'priced: {input: detailed, sql: "SELECT *, l_value * 2 AS twice FROM detailed WHERE o_value < 90"}'
KEYED = (
    "keyed: {input: priced, lookup: {connection: inbox, files: labels.csv, layout: labels, on: {l_value: code}, "
    "add: [label]}}"
)
BETWEEN = "SELECT *, l_value * 2 AS twice FROM orders JOIN lines ON o_key = l_key WHERE o_value < 90"
KEPT = f"SELECT b.*, label FROM ({BETWEEN}) AS b JOIN labels ON l_value = code"
COLUMNS = ("p_key", "p_value", "p_note", "o_key", "o_value", "o_note", "l_key", "l_value", "l_note", "twice", "label")
TABLE = (
    "p_key bigint, p_value int, p_note text, o_key bigint, o_value int, o_note text, l_key bigint, l_value int, "
    "l_note text, twice int, label text"
)


def of_kind(kind: str) -> str:
    return SENT.replace("right: detailed", "right: keyed").replace("on:", f"type: {kind}, on:")


def loading(sales: PostgresProject, destination: str, kind: str = "left", limit: str = "") -> None:
    text = package([DETAILED, PRICED, KEYED, of_kind(kind)], destination=f"connection: warehouse, {destination}")
    text = text.replace('rejects: {limit: "${limit}"}', f'rejects: {{limit: "${{limit}}"{limit}}}')
    sales.package(text)


def wanted(sales: PostgresProject, kind: str = "left") -> list[tuple[str | None, ...]]:
    return as_text(expected(sales, f"SELECT * FROM parcels {kind} JOIN ({KEPT}) ON p_key = o_key"))


def loaded(sales: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(sales.query(f"SELECT {', '.join(COLUMNS)} FROM facts"))


def told(sales: PostgresProject) -> dict[str, Any]:
    """The only table of the summary of the only run."""
    (path,) = sales.runs.glob("*/summary.json")
    (table,) = json.loads(path.read_text(encoding="utf-8"))["tables"]
    found: dict[str, Any] = table
    return found


@pytest.fixture
def sales(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    loading(warehouse, "target: replace")
    return warehouse


@pytest.mark.parametrize(
    ("kind", "clauses"),
    [
        ("inner", "target: replace"),
        ("left", "target: replace, commit: {rows: 500}"),
        ("right", "target: replace, load: staged, partition: {hash: {column: l_key, parts: 3}}"),
        ("full", "target: append, load: single"),
    ],
)
def test_however_the_rows_are_loaded(sales: PostgresProject, kind: str, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    loading(sales, clauses, kind)
    accounts = []
    for number, streams in enumerate((3, 1), start=1):
        accounts.append(joined(sales.run(streams=streams, limit=100_000)))
        rows = wanted(sales, kind) * (number if "append" in clauses else 1)
        assert loaded(sales) == sorted(rows, key=repr)
        assert sales.leftovers() == []
    assert accounts[0] == accounts[1]


def test_rejects_of_all_joins_go_into_the_table_of_rejects(sales: PostgresProject) -> None:
    loading(sales, "target: replace", limit=", table: bad")
    account = joined(sales.run(limit=100_000))
    missing = len(expected(sales, BETWEEN)) - len(expected(sales, KEPT))
    assert account["right"]["rejected_in_front"] == missing > 0
    found = sales.query("SELECT regexp_replace(file, '.*/([a-z]+).*', '\\1'), count(*) FROM bad GROUP BY 1")
    assert [tuple(map(str, own)) for own in found] == [("lines", str(missing))]


def test_a_row_that_breaks_a_constraint_is_named_by_all_of_its_places(sales: PostgresProject) -> None:
    columns = TABLE
    row = next(own for own in reversed(expected(sales, f"SELECT * FROM parcels JOIN ({KEPT}) ON p_key = o_key")))
    sales.execute(f"CREATE TABLE facts ({columns}, CHECK (l_note <> '{row[8]}' OR l_key <> {row[6]}))")
    loading(sales, "target: append, load: single")
    for streams in (1, 4):
        ended = sales.run(streams=streams, limit=100_000)
        place = ended.summary["error"]["at"]
        text = Path(place["file"]).read_text()
        assert text.splitlines()[place["row"] - 1] == f"{row[6]}|{row[7]}|{row[8]}", ended.error
        assert "orders." in ended.error and "parcels." in ended.error


def test_a_resumed_run_tells_all_joins(sales: PostgresProject) -> None:
    """Sets of files that were committed before, too: the smallest one, which has the row, comes last."""
    clauses = "target: append, load: single, commit: {rows: 300}"
    loading(sales, clauses)
    whole = sales.run(streams=1, limit=100_000).succeeded()["tables"][0]
    sales.execute("DROP TABLE facts", f"CREATE TABLE facts ({TABLE}, CONSTRAINT late CHECK (p_key <> 0))")
    for path in sales.runs.iterdir():
        path.rename(sales.folder / f"before-{path.name}")
    assert sales.run(streams=1, limit=100_000).exit_code == 1
    count = int(str(sales.query("SELECT count(*) FROM facts")[0][0]))
    assert 0 < count < len(wanted(sales))
    sales.execute("ALTER TABLE facts DROP CONSTRAINT late")
    sales.resume().succeeded()
    assert loaded(sales) == wanted(sales)
    again = told(sales)
    assert again["join"] == whole["join"]
    for one, other in zip(again["transforms"], whole["transforms"], strict=True):
        assert {**one, "busy_seconds": 0, "lookup": 0} == {**other, "busy_seconds": 0, "lookup": 0}


def killed(sales: PostgresProject, chance: random.Random) -> Ended:
    with sales.started(sales.arguments("--streams", "2", limit=100_000)) as running:
        sales.wait_for_event(running, "task_started")
        running.wait_until(chance.random() * 0.3)
        running.signal(signal.SIGKILL)
        running.wait()
    return sales.resume()


@pytest.mark.faults
@pytest.mark.parametrize(
    "clauses", ["commit: {rows: 500}", "load: staged, partition: {hash: {column: l_key, parts: 2}}"]
)
def test_a_run_that_is_killed_at_any_moment_goes_on(sales: PostgresProject, clauses: str) -> None:
    loading(sales, f"target: replace, {clauses}")
    chance, rows = random.Random(clauses), wanted(sales)
    for number in range(KILLS):
        sales.execute("DROP TABLE IF EXISTS facts CASCADE")
        resumed = killed(sales, chance)
        if resumed.exit_code:  # it had ended before
            assert sales.ledger()[-1] == "success", (number, resumed.stderr)
        else:
            account = joined(resumed)
            assert account["rows_out"] == len(rows)
        assert loaded(sales) == rows, number
        assert sales.leftovers() == []
        for path in sales.runs.iterdir():
            path.rename(sales.folder / f"{number}-{path.name}")


@pytest.mark.parametrize("archived", [{"dear", "bills"}, {"everything", "unknown", "small"}, {"raw"}])
def test_what_is_left_between_two_places_is_joined_once_more(warehouse: PostgresProject, archived: set[str]) -> None:
    """Tables behind all joins, in front of them and beside them, of which those of one place are complete."""
    write_files(warehouse)
    text = package(TRANSFORMS, DESTINATIONS, sources=SOURCES)
    text = text.replace("connections:\n", "connections:\n  archive: {type: duckdb, path: archive.duckdb}\n", 1)
    for name in archived:
        before = f"table: {name}, connection: warehouse"
        assert before in text
        text = text.replace(before, f"table: {name}, connection: archive")
    warehouse.package(text)
    rows = {name: as_text(expected(warehouse, query)) for name, query in WANTED.items()}
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    ended = warehouse.resume()
    ended.succeeded()
    assert tables_of(warehouse, WANTED, archived) == rows
    found = {own["table"]: own for own in ended.summary["tables"]}
    assert {name: own["rows_loaded"] for name, own in found.items()} == {name: len(own) for name, own in rows.items()}
    assert len({str(found[name]["join"]) for name in ("dear", "odd", "others")}) == 1
    assert found["everything"]["join"]["right"]["join"]["rows_out"] > 0
    assert warehouse.leftovers() == []
