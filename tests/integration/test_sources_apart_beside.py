"""Sources beside a join or union whose rows meet no others: each table has the rows that belong into it, and all become
visible at once; rejects, kills, constraints, `verify`, and sources without files.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from typing import Any

import pytest

from tests.integration.apart_scenes import CUSTOMERS, ORDERS, PACKAGE
from tests.integration.beside_scenes import (
    LATER,
    LINES,
    OF_CUSTOMERS,
    Kind,
    balanced,
    package,
    wanted,
    write_files,
)
from tests.integration.connections_scenes import stopped
from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.replays import command
from tests.integration.tables import tables_of
from tests.integration.test_several_joined import killed_before_the_switch

KINDS = pytest.mark.parametrize("kind", ["join", "union"])


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    return project


@KINDS
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "fronts"])
@pytest.mark.in_turn("bare")
def test_each_table_gets_its_rows(sales: Project, kind: Kind, bare: bool) -> None:
    write_files(sales, kind, bare=bare)
    rows, accounts = wanted(sales, kind, bare=bare), []
    assert all(len(own) > 50 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        tables = balanced(ended, kind)
        assert tables_of(sales, rows) == rows, streams
        counts = ("lines", "rows_skipped", "rows_read", "rows_filtered", "rows_loaded", "values_ignored", "ignored")
        accounts.append({name: [table[own] for own in counts] for name, table in tables.items()})
        others = LINES + 500 if kind == "join" else LATER
        assert ended.summary["rows_read"] == ORDERS + others + CUSTOMERS - CUSTOMERS % 3
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []


BAD_ORDERS = "90001,S1,x,2024-01-01\n90002,S1,99999.00,2024-01-01\n"
BAD_CUSTOMER = "y|nobody|1\n"


@KINDS
def test_a_row_is_rejected_where_it_is_missing(sales: Project, kind: Kind) -> None:
    """Under its own file, row and byte; rejects of all sources have one limit."""
    write_files(sales, kind)
    rows = wanted(sales, kind)
    rows["orders"] = sorted([*rows["orders"], ("90002", "S1", "99999.00", "2024-01-01")])
    if kind == "union":
        rows["facts"] = sorted([*rows["facts"], ("90002", "S1", "99999.00", "2024-01-01")], key=repr)
    places = {}
    for name, bad in (("orders.1", BAD_ORDERS), ("customers.2", BAD_CUSTOMER)):
        path = sales.inbox / name
        places[name] = path.read_text().count("\n")
        path.write_text(path.read_text() + bad)
    ended = sales.run(limit=2)
    assert ended.exit_code == 1
    assert sales.tables() == []
    ended = sales.run(limit=3)
    tables = balanced(ended, kind, rejects=3)
    assert tables_of(sales, rows) == rows
    counts = {"open": 2, "strays": 1, "orders": 1, "big": 1, "small": 1, "facts": 1}
    assert {name: table["rows_rejected"] for name, table in tables.items()} == counts
    found = {
        (own["file"].rpartition("/")[2], own["row"], *own["destinations"])
        for own in rejects_of(sales, str(ended.summary["run_id"]))
    }
    assert found == {
        ("orders.1", places["orders.1"] + 1, "facts", "open", "strays", "orders"),
        ("orders.1", places["orders.1"] + 2, "open"),
        ("customers.2", places["customers.2"] + 1, "big", "small"),
    }


@pytest.mark.faults
@KINDS
@pytest.mark.parametrize(
    "archive",
    [
        ("facts",), ("big", "small"), ("facts", "big"), ("facts", "open", "strays", "orders"), ("orders", "small"),
    ],
    ids=["facts", "customers", "facts and customers", "all of orders", "orders and customers"],
)  # fmt: skip
@pytest.mark.in_turn("archive")
def test_what_is_left_is_loaded_once_more(warehouse: PostgresProject, kind: Kind, archive: tuple[str, ...]) -> None:
    """Killed between the commits of two places, whatever is left then: what comes together, sources apart, or both."""
    write_files(warehouse, kind, archived=archive)
    rows = wanted(warehouse, kind)
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    balanced(warehouse.resume(), kind)
    assert tables_of(warehouse, rows, archive) == rows


@KINDS
@pytest.mark.in_turn("kind")
def test_killed_before_the_switch(warehouse: PostgresProject, kind: Kind) -> None:
    write_files(warehouse, kind)
    rows = wanted(warehouse, kind)
    killed_before_the_switch(warehouse, "--streams", "2")
    balanced(warehouse.resume(), kind)
    assert tables_of(warehouse, rows) == rows
    assert warehouse.leftovers() == []


@KINDS
@pytest.mark.in_turn("kind")
def test_a_row_that_breaks_a_constraint_is_named(sales: Project, kind: Kind) -> None:
    """Of the source apart, by its own file and row."""
    write_files(sales, kind, text="".join(line for line in PACKAGE.splitlines(True) if ", from: " not in line))
    sales.execute("CREATE TABLE big (code INTEGER UNIQUE, name TEXT, sales INTEGER)")
    path = sales.inbox / "customers.2"
    path.write_text(path.read_text() + "1901|again|1500\n1901|again|1501\n")
    error = sales.run(target="append").summary["error"]
    assert error["at"] and error["at"]["file"].endswith("customers.2"), error
    assert error["at"]["row"] == path.read_text().count("\n"), error
    assert len(sales.tables()) == 1


@KINDS
@pytest.mark.in_turn("kind")
def test_each_table_is_verified_with_its_sources(sales: Project, kind: Kind) -> None:
    write_files(sales, kind)
    sales.run().succeeded()
    verified = sales.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last", "--json"])
    told = {own["table"]: (own["status"], own["reason"]) for own in json.loads(verified.stdout)["tables"]}
    assert told["orders"] == told["big"] == told["small"] == ("equal", None), verified.stdout + verified.stderr
    assert told["facts"] == ("equal", None)


@KINDS
@pytest.mark.parametrize("lacking", ["customers", "orders", "other"])
def test_a_source_without_files_leaves_its_tables_alone(project: Project, kind: Kind, lacking: str) -> None:
    """Without one of its sources an inner join has no rows, and none of its sources are loaded; a union has those of
    the others.
    """
    write_files(project, kind)
    text = package(kind)
    for name in ("orders.*", "customers.*", "lines.*", "later.*"):
        text = re.sub(rf'(files: \[?"{re.escape(name)}".*?layout: \w+)', r"\1, missing: skip", text)
    project.package(text)
    project.run().succeeded()
    before = tables_of(project, wanted(project, kind))
    files = {"customers": "[cm]*", "orders": "orders.*", "other": "l[ia]*"}
    for path in project.inbox.glob(files[lacking]):
        path.unlink()
    ended = project.run(streams=3)
    stay = set(OF_CUSTOMERS)
    if lacking != "customers":
        stay = {"orders", "open", "strays", "facts"} if kind == "join" else set()
        if kind == "union" and lacking == "orders":
            stay = {"orders", "open", "strays"}
    assert {own["table"] for own in ended.succeeded().get("skipped", ())} == stay
    found = tables_of(project, before)
    others = LATER if lacking == "orders" else ORDERS
    if kind == "union" and lacking != "customers":
        assert len(found.pop("facts")) == others
        before.pop("facts")
    assert found == before
    is_skipped = kind == "join" and lacking != "customers"
    assert ended.summary["bytes_read"] == text_bytes(project, "[cm]*" if is_skipped else "*[1-9z]")


@KINDS
def test_what_is_left_where_nothing_comes_together(project: Project, kind: Kind) -> None:
    """Killed between two places, each of which has a table of the join or union without rows, and one of customers."""
    write_files(project, kind, bare=True)
    text = package(kind, bare=True, archived=("small", "facts"))
    text += '        others: {input: met, connection: warehouse, table: others, target: "${target}"}\n'
    for name in ("orders.*", "lines.*", "later.*"):
        text = text.replace(f'files: "{name}"', f'files: "{name}", missing: skip')
    project.package(text)
    for path in project.inbox.glob("[ol]*"):
        path.unlink()
    project.command([sys.executable, "-c", stopped("before", 1), *project.arguments()[3:]])
    ended = project.resume()
    assert {own["table"] for own in ended.succeeded()["skipped"]} == {"facts", "others"}
    assert {own["table"] for own in ended.summary["tables"]} == {"big", "small"}
    found = tables_of(project, OF_CUSTOMERS, {"small"})
    assert sum(map(len, found.values())) == CUSTOMERS - CUSTOMERS % 3


def text_bytes(project: Project, files: str) -> int:
    """Of files that are there, as they are read."""
    texts = [path.read_bytes() for path in project.inbox.glob(files)]
    return sum(len(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text) for text in texts)


@KINDS
def test_plan_graph_and_report(project: Project, kind: Kind) -> None:
    """What comes together is told with its own sources, once; each other table with its own."""
    write_files(project, kind)
    ended = project.run()
    ended.succeeded()
    assert ended.summary["bytes_read"] == text_bytes(project, "*[1-9z]")
    headrace(project, "report", "--runs-dir", "runs", "last", "--output", "report.html")
    plan = json.loads(headrace(project, "plan", "package.yaml", "--json").stdout)
    tasks = {own["table"]: own for own in plan["tasks"]}
    assert {name: len(own["files"]) for name, own in tasks.items()} == {
        "facts": 2, "orders": 1, "open": 1, "strays": 1, "big": 3, "small": 3,
    }  # fmt: skip
    assert {name for name, own in tasks.items() if kind in own} == {"facts"}
    assert "customers" not in json.dumps([tasks["facts"][name] for name in (kind, "files", "flow")])
    assert plan["bytes_total"] == sum(path.stat().st_size for path in project.inbox.glob("*[1-9z]"))
    text = headrace(project, "plan", "package.yaml").stdout
    assert text.count(f"{kind}      met") + text.count(f"{kind}     met") == 1, text
    assert headrace(project, "plan", "package.yaml", "--graph", "mermaid").stdout


def test_repaired_rows_go_to_the_tables_of_their_source(sales: Project) -> None:
    """Beside a union. Those beside a join are not replayed, since of its pairs some would be."""
    write_files(sales, "union")
    for name, bad in (("orders.1", BAD_ORDERS), ("customers.2", BAD_CUSTOMER)):
        path = sales.inbox / name
        path.write_text(path.read_text() + bad)
    run = str(sales.run(limit=3).succeeded()["run_id"])
    assert sales.command(command("rejects", run, "--copy", "repair.txt")).exit_code == 0
    (sales.folder / "repair.txt").write_text("90001,S1,1.00,2024-01-01\n90003,S1,9.00,2024-01-01\n9|nobody|1001\n")
    ended = sales.command(command("replay", run, "repair.txt"))
    found = {own["table"]: (own["numbers"], own["loaded"]) for own in ended.succeeded()["replay"]["tables"]}
    tables = {"open": (2, 1), "strays": (1, 0), "big": (1, 1), "small": (1, 0), "orders": (1, 1), "facts": (1, 1)}
    assert found == tables
    assert ended.summary["replay"]["open"] == 0
    assert ("9", "nobody", "1001", "834", "customers.2") in tables_of(sales, ["big"])["big"]


def test_rejects_beside_a_join_are_not_replayed(project: Project) -> None:
    write_files(project, "join")
    path = project.inbox / "customers.2"
    path.write_text(path.read_text() + BAD_CUSTOMER)
    run = str(project.run(limit=1).succeeded()["run_id"])
    (project.folder / "repair.txt").write_text("9|nobody|1001\n")
    ended = project.command(command("replay", run, "repair.txt"))
    assert ended.exit_code != 0
    assert "rows of a join" in ended.stderr


def headrace(project: Project, *arguments: str) -> Ended:
    ended = project.command([sys.executable, "-m", "headrace", *arguments])
    assert ended.exit_code == 0, ended.stderr
    return ended


def rejects_of(project: Project, run: str) -> list[dict[str, Any]]:
    (told,) = project.folder.glob(f"runs/{run}/rejects/*.jsonl")
    return [json.loads(line) for line in told.read_text().splitlines()]
