"""Transforms in front of unions and joins on the way into PostgreSQL: the rows of plain SQL over the same files,
however they are loaded, divided, committed, killed and resumed; rejects in a table; rows that break a constraint.
"""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended
from tests.integration.front_scenes import (
    PRICED,
    join_package,
    joined,
    rows,
    transforms,
    union_package,
    write_join_files,
    write_union_files,
)
from tests.integration.join_scenes import LATE, write_pairs_of_falling_size
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.integration.union_scenes import ROWS, sources

DESTINATION = 'table: sales, target: "${target}"}'
# Kills, each of which is resumed.
KILLS = int(os.environ.get("KILLS", "3"))
TABLE = "id bigint, amount numeric(9,2), day date, note text, channel varchar(8), season text"


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_union_files(warehouse)
    warehouse.package(union_package())
    return warehouse


@pytest.fixture
def sales(warehouse: PostgresProject) -> PostgresProject:
    write_join_files(warehouse)
    warehouse.package(join_package("full"))
    return warehouse


def united(orders: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(orders.query("SELECT id, amount, day, note, channel, season FROM orders"))


def sold(sales: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(sales.query("SELECT key, clerk, o_day, number, price, line_key, label FROM sales"))


def loading(sales: PostgresProject, kind: str, destination: str) -> None:
    text = join_package(kind)
    assert DESTINATION in text
    sales.package(text.replace(DESTINATION, destination))


def told(sales: PostgresProject) -> dict[str, Any]:
    """The only table of the summary of the only run."""
    (path,) = sales.runs.glob("*/summary.json")
    (table,) = json.loads(path.read_text(encoding="utf-8"))["tables"]
    found: dict[str, Any] = table
    return found


@pytest.mark.parametrize(
    "clauses",
    [
        "commit: {rows: 500}",
        "load: staged, partition: {hash: {column: id, parts: 3}}",
        "load: staged, "
        "partition: {list: {column: season, values: {some: ['season 1'], none: [null]}}, outside: default}",
    ],
)
def test_however_rows_of_a_union_are_loaded(orders: PostgresProject, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    orders.package(union_package(more=clauses))
    for streams in ("16", "1"):
        ended = orders.run(streams=streams)
        assert {name: own[2] for name, own in sources(ended).items()} == ROWS
        assert united(orders) == as_text(rows(orders))
        assert orders.leftovers() == []


@pytest.mark.parametrize(
    "clauses",
    ["commit: {rows: 2000}", "load: staged, partition: {hash: {column: key, parts: 3}}"],
)
def test_however_rows_of_a_join_are_loaded(sales: PostgresProject, clauses: str) -> None:
    loading(sales, "full", f"table: sales, target: replace, {clauses}}}")
    accounts = []
    for streams in (3, 1):
        ended = sales.run(streams=streams)
        accounts.append((ended.succeeded()["tables"][0]["join"], transforms(ended)))
        assert sold(sales) == as_text(joined(sales, "full"))
        assert sales.leftovers() == []
    assert accounts[0] == accounts[1]


FAILING = """priced: {input: old, sql: "SELECT * REPLACE (IF(id % 1000 = 7, error('seven'), id) AS id) FROM old"}
        keyed: {input: new, lookup: {connection: inbox, files: days.csv, layout: days, on: {Day: day}, add: [season]}}
        united: {union: {inputs: [priced, keyed, placed], missing: "null"}}"""


def test_rejects_in_front_go_into_the_table_of_rejects(orders: PostgresProject) -> None:
    orders.package(union_package(FAILING, rejects=", table: bad_orders"))
    ended = orders.run(limit=10_000)
    found = {name: own[3] for name, own in sources(ended).items()}
    without = rows(orders, "SELECT count(*) FROM new WHERE day NOT IN (SELECT day FROM days)")[0][0]
    assert found == {"old": 4, "new": without, "placed": 0}
    names = (
        "SELECT regexp_replace(file, '.*/', ''), row_number, code FROM bad_orders WHERE file LIKE '%old%' ORDER BY 1, 2"
    )
    kept = orders.query(names.replace("row_number", "row"))
    assert len(kept) == 4 and kept[0][0] == "old.0.csv"


def test_a_row_of_a_union_that_breaks_a_constraint_is_named(orders: PostgresProject) -> None:
    """Behind a query, behind a lookup and a split, and behind nothing."""
    orders.package(union_package(PRICED).replace("target: replace", "target: append"))
    for constraint, name, text in (
        ("id <> 20500", "old.2.csv", b"20500;"),
        ("id <> 200500", "placed.txt", b"2024-05-21  200500"),
    ):
        orders.execute("DROP TABLE IF EXISTS orders", f"CREATE TABLE orders ({TABLE}, CHECK ({constraint}))")
        for streams in ("1", "4"):
            place = orders.run(streams=streams).summary["error"]["at"]
            assert place["file"].endswith(name)
            # A header, and 500 rows.
            assert place["row"] == 501 + (name == "old.2.csv")
            assert Path(place["file"]).read_bytes()[place["byte"] :].startswith(text)
    orders.execute("DROP TABLE orders", f"CREATE TABLE orders ({TABLE}, CHECK (season <> 'season 3'))")
    assert "new.0.gz, row " in orders.stable(orders.run(streams="1").error)


def test_a_row_of_a_join_that_breaks_a_constraint_is_found_in_both_files(sales: PostgresProject) -> None:
    columns = "key bigint, clerk text, o_day date, number int, price numeric(9,2), line_key int, label text"
    wanted = joined(sales, "full")
    number = next(row[3] for row in reversed(wanted) if row[0] is not None and row[3] is not None)
    sales.execute(f"CREATE TABLE sales ({columns}, CHECK (number <> {number}))")
    loading(sales, "full", "table: sales, target: append, load: single}")
    for streams in (1, 4):
        ended = sales.run(streams=streams)
        place = ended.summary["error"]["at"]
        text = Path(place["file"]).read_text()
        assert text.splitlines()[place["row"] - 1].startswith(f"{number},"), ended.error
        assert text[place["byte"] :].startswith(f"{number},")
        assert "orders." in ended.error


def test_a_resumed_run_tells_what_stands_in_front(sales: PostgresProject) -> None:
    """Pairs that were committed before, too."""
    write_pairs_of_falling_size(sales)
    loading(sales, "full", "table: sales, target: append, load: single, commit: {rows: 1000}}")
    columns = "key bigint, clerk text, o_day date, number int, price numeric(9,2), line_key int, label text"
    wanted = joined(sales, "full")
    whole = sales.run(streams=1).succeeded()["tables"][0]
    sales.execute("DROP TABLE sales", f"CREATE TABLE sales ({columns}, CONSTRAINT late CHECK (number <> {LATE}))")
    for path in sales.runs.iterdir():
        path.rename(sales.folder / f"before-{path.name}")
    assert sales.run(streams=1).exit_code == 1
    count = int(str(sales.query("SELECT count(*) FROM sales")[0][0]))
    assert 0 < count < len(wanted)
    sales.execute("ALTER TABLE sales DROP CONSTRAINT late")
    sales.resume().succeeded()
    assert sold(sales) == as_text(wanted)
    again = told(sales)
    assert again["join"] == whole["join"]
    for one, other in zip(again["transforms"], whole["transforms"], strict=True):
        assert {**one, "busy_seconds": 0, "lookup": 0} == {**other, "busy_seconds": 0, "lookup": 0}


def killed(project: PostgresProject, chance: random.Random, **parameters: object) -> Ended:
    with project.started(project.arguments("--streams", "2", **parameters)) as running:
        project.wait_for_event(running, "task_started")
        running.wait_until(chance.random() * 0.3)
        running.signal(signal.SIGKILL)
        running.wait()
    return project.resume()


@pytest.mark.faults
@pytest.mark.parametrize("clauses", ["commit: {rows: 500}", "load: staged, partition: {hash: {column: id, parts: 2}}"])
def test_a_run_with_a_union_that_is_killed_at_any_moment_goes_on(orders: PostgresProject, clauses: str) -> None:
    orders.package(union_package(more=clauses))
    chance, wanted = random.Random(clauses), as_text(rows(orders))
    for number in range(KILLS):
        orders.execute("DROP TABLE IF EXISTS orders CASCADE")
        resumed = killed(orders, chance)
        if resumed.exit_code:  # it had ended before
            assert orders.ledger()[-1] == "success", (number, resumed.stderr)
        else:
            assert {name: own[2] for name, own in sources(resumed).items()} == ROWS
        assert united(orders) == wanted, number
        assert orders.leftovers() == []
        for path in orders.runs.iterdir():
            path.rename(orders.folder / f"{number}-{path.name}")


@pytest.mark.faults
def test_a_run_with_a_join_that_is_killed_at_any_moment_goes_on(sales: PostgresProject) -> None:
    loading(sales, "full", "table: sales, target: replace, commit: {rows: 500}}")
    chance, wanted = random.Random(5), as_text(joined(sales, "full"))
    for number in range(KILLS):
        sales.execute("DROP TABLE IF EXISTS sales")
        resumed = killed(sales, chance)
        if resumed.exit_code:
            assert sales.ledger()[-1] == "success", (number, resumed.stderr)
        assert sold(sales) == wanted, number
        assert sales.leftovers() == []
        for path in sales.runs.iterdir():
            path.rename(sales.folder / f"{number}-{path.name}")


def test_destinations_of_several_connections(orders: PostgresProject) -> None:
    text = union_package(
        PRICED,
        'sorted: {input: united, split: {dear: "amount > 400"}}',
        destinations="dear: {input: sorted.dear, connection: warehouse, table: dear, target: replace}\n"
        "        rest: {input: sorted.rest, connection: lake, table: rest, target: create}\n"
        "        none: {input: united, connection: nowhere, table: none, target: replace}",
    )
    others = "  lake: {type: duckdb, path: warehouse.duckdb}\n  nowhere: {type: 'null'}\n"
    orders.package(text.replace("layouts:\n", f"{others}layouts:\n", 1))
    ended = orders.run()
    ended.succeeded()
    dear = as_text(orders.query("SELECT id, amount, day, note, channel, season FROM dear"))
    with duckdb.connect(str(orders.database)) as lake:
        rest = as_text(lake.execute("SELECT id, amount, day, note, channel, season FROM rest").fetchall())
    whole = rows(orders)
    assert dear == as_text([row for row in whole if row[1] is not None and row[1] > 400])
    assert sorted([*rest, *dear], key=repr) == as_text(whole)
    tables = {table["table"]: table for table in ended.summary["tables"]}
    assert set(tables) == {"dear", "rest", "none"}
    for table in tables.values():
        assert table["rows_read"] == sum(ROWS.values()) == table["rows_loaded"] + table["rows_filtered"]
        assert [own["name"] for own in table["transforms"]][:3] == ["priced", "keyed", "parted"]
    assert ended.summary["rows_filtered"] == sum(ROWS.values()) - len(whole)
