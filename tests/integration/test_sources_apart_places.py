"""Sources apart: what they are read from, or not; replays; where their tables stand, and inside of what."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.integration.apart_scenes import (
    BAD_CUSTOMER,
    BAD_ORDERS,
    OF_ORDERS,
    ORDERS,
    PACKAGE,
    WANTED,
    archived,
    balanced,
    customer,
    order,
    wanted,
    write_files,
)
from tests.integration.connections_scenes import stopped
from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.replays import command
from tests.integration.tables import tables_of

SOURCE = '{connection: inbox, files: "orders.*", layout: orders}'


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def source(text: str, setting: str) -> str:
    """The package with a setting of the source of orders."""
    assert SOURCE in text
    return text.replace(SOURCE, f"{SOURCE[:-1]}, {setting}}}")


def test_repaired_rows_go_to_the_tables_of_their_source(sales: Project) -> None:
    """Each is read by the layout of its source, and shows the file in which it stood."""
    sales.package(PACKAGE.replace('limit: "${limit}"', 'limit: "${limit}", table: bad'))
    for name, bad in (("orders.1", BAD_ORDERS), ("customers.2", BAD_CUSTOMER)):
        path = sales.inbox / name
        path.write_text(path.read_text() + bad)
    run = str(sales.run(limit=3).succeeded()["run_id"])
    stored = sales.query("SELECT rule, file FROM bad ORDER BY 1, 2")
    assert [Path(str(file)).name for _, file in stored] == ["orders.1", "customers.2", "orders.1"], stored
    assert sales.command(command("rejects", run, "--copy", "repair.txt")).exit_code == 0
    path = sales.folder / "repair.txt"
    assert path.read_text() == BAD_ORDERS + BAD_CUSTOMER
    path.write_text("90001,S1,1.00,2024-01-01\n90003,S1,9.00,2024-01-01\n9|nobody|1001\n")
    ended = sales.command(command("replay", run, "repair.txt"))
    found = {own["table"]: (own["numbers"], own["loaded"]) for own in ended.succeeded()["replay"]["tables"]}
    assert found == {"open": (2, 1), "strays": (1, 0), "big": (1, 1), "small": (1, 0), "orders": (1, 1)}
    assert ended.summary["replay"]["open"] == 0
    assert ("9", "nobody", "1001", "834", "customers.2") in tables_of(sales, WANTED)["big"]
    assert sales.query("SELECT count(*) FROM orders") in ([(ORDERS + 2,)], [(str(ORDERS + 2),)])


@pytest.mark.parametrize("names", [{"open", "strays", "orders"}, {"big", "small"}, {"open", "big"}])
def test_tables_that_are_not_stored(project: Project, names: set[str]) -> None:
    write_files(project)
    rows = wanted(project)
    project.package(archived(names, "nowhere"))
    tables = balanced(project.run())
    assert {name: own["rows_loaded"] for name, own in tables.items()} == {name: len(own) for name, own in rows.items()}


def test_a_source_without_files_leaves_its_tables_alone(sales: Project) -> None:
    """Whichever source it is; with none at all nothing is touched."""
    sales.run().succeeded()
    before = tables_of(sales, WANTED)
    sales.package(source(PACKAGE, "missing: skip"))
    (sales.inbox / "orders.1").unlink()
    path = sales.inbox / "customers.1"
    path.write_text(path.read_text() + customer(3001))
    ended = sales.run()
    assert {own["table"] for own in ended.succeeded()["tables"]} == {"big", "small"}
    assert {own["table"] for own in ended.summary["skipped"]} == {*OF_ORDERS}
    found = tables_of(sales, WANTED)
    assert all(found[name] == before[name] for name in OF_ORDERS)
    assert len(found["big"]) + len(found["small"]) == len(before["big"]) + len(before["small"]) + 1
    assert ended.summary["rows_read"] == len(found["big"]) + len(found["small"])
    assert ended.summary["bytes_read"] > 0


@pytest.mark.faults
@pytest.mark.parametrize("archive", [{"big", "small"}, {"orders", "big"}, {"open", "strays", "small"}])
def test_what_is_left_without_one_source(warehouse: PostgresProject, archive: set[str]) -> None:
    """Killed between the commits of two places, and resumed: nothing is left of the source without files."""
    write_files(warehouse)
    warehouse.package(source(archived(archive), "missing: skip"))
    warehouse.run().succeeded()
    before = tables_of(warehouse, WANTED, archive)
    (warehouse.inbox / "orders.1").unlink()
    path = warehouse.inbox / "customers.1"
    path.write_text(path.read_text() + customer(3001))
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    ended = warehouse.resume()
    assert {own["table"] for own in ended.succeeded()["tables"]} == {"big", "small"}
    assert {own["table"] for own in ended.summary["skipped"]} == {*OF_ORDERS}
    found = tables_of(warehouse, WANTED, archive)
    assert all(found[name] == before[name] for name in OF_ORDERS)
    assert len(found["big"]) + len(found["small"]) == len(before["big"]) + len(before["small"]) + 1
    assert ended.summary["rows_read"] == len(found["big"]) + len(found["small"])


def test_tables_without_rows_are_neither_visible_nor_left(project: Project) -> None:
    """A commit fails: only tables that get rows are told as there, or as missing."""
    write_files(project)
    project.package(source(archived({"orders", "small"}), "missing: skip"))
    (project.inbox / "orders.1").unlink()
    failed = project.command([sys.executable, "-c", stopped("before", 1, "busy"), *project.arguments()[3:]])
    what = failed.error.splitlines()[0]
    assert what == "error: busy; visible already: warehouse.big; left to load: archive.small", failed.error


def test_files_that_have_come_since_a_kill(project: Project) -> None:
    """Of a source that had none: all that is left is a place without rows."""
    write_files(project)
    project.package(source(archived({"orders"}, "nowhere"), "missing: skip"))
    text = (project.inbox / "orders.1").read_text()
    (project.inbox / "orders.1").unlink()
    project.command([sys.executable, "-c", stopped("before", 1), *project.arguments()[3:]])
    project.file("orders.1", text)
    error = project.resume().error
    assert "its source files have changed" in error and "a file that was not there" in error, error
    assert "orders.1" in error


def test_without_any_file_nothing_is_loaded(project: Project) -> None:
    write_files(project)
    project.package(source(PACKAGE, "missing: skip").replace('"more.gz"]', '"more.gz"], missing: skip'))
    for path in project.inbox.glob("[!n]*"):
        path.unlink()
    ended = project.run()
    reasons = {own["table"]: own["skipped"] for own in ended.succeeded()["skipped"]}
    assert "orders.*" in reasons["open"] and "customers.*" in reasons["small"]
    assert ended.summary["tables"] == []


def test_a_source_without_rows_is_an_error_of_its_own(project: Project) -> None:
    write_files(project)
    project.file("orders.1", "id,status,total,day\n")
    ended = project.run()
    assert ended.exit_code == 1
    assert "the source file has no data row" in ended.error and "orders.1" in ended.error
    assert "Set `empty: allow` for source `orders`" in ended.error and "`replace` then empties" in ended.error
    project.package(source(PACKAGE, "empty: allow"))
    tables = balanced(project.run())
    assert (tables["orders"]["rows_loaded"], tables["big"]["rows_loaded"] > 0) == (0, True)


def test_sources_that_name_one_file(project: Project) -> None:
    write_files(project)
    project.package(PACKAGE.replace('"more.gz"', '"more.gz", "orders.1"'))
    error = project.run().error
    assert error.startswith("error: two sources of one data flow have the same file\n"), error
    assert "orders.1" in error and "Let several destinations read one source" in error


def test_a_pipe_beside_files(project: Project) -> None:
    write_files(project)
    rows = wanted(project)
    text = (project.inbox / "orders.1").read_bytes()
    (project.inbox / "orders.1").unlink()
    os.mkfifo(project.inbox / "pipe")
    project.package(PACKAGE.replace('files: "orders.*"', "files: pipe"))
    writer = Thread(target=(project.inbox / "pipe").write_bytes, args=(text,))
    writer.start()
    tables = balanced(project.run())
    writer.join()
    assert tables_of(project, WANTED) == rows
    assert tables["orders"]["rows_read"] == ORDERS
    verified = json.loads(headrace(project, "verify", "--runs-dir", "runs", "last", "--json").stdout)["tables"]
    told = {own["table"]: own["status"] for own in verified}
    assert (told["orders"], told["big"], told["small"]) == ("not_comparable", "equal", "equal"), verified


def test_more_pipes_than_streams(project: Project) -> None:
    """Of two sources: who writes to them may wait for one of them."""
    write_files(project)
    for name in ("one", "two"):
        os.mkfifo(project.inbox / name)
    project.package(PACKAGE.replace('files: "orders.*"', "files: one").replace('["customers.*", "more.gz"]', "two"))
    error = project.run(streams=1).error
    assert error.startswith("error: the sources `orders` and `customers` have more pipes than streams"), error


def test_what_is_left_behind_a_pipe(project: Project) -> None:
    """Killed when all tables of the pipe are complete: those of the files are loaded."""
    write_files(project)
    rows = wanted(project)
    text = (project.inbox / "orders.1").read_bytes()
    (project.inbox / "orders.1").unlink()
    os.mkfifo(project.inbox / "pipe")
    archive = {"big", "small"}
    project.package(archived(archive).replace('files: "orders.*"', "files: pipe"))
    writer = Thread(target=(project.inbox / "pipe").write_bytes, args=(text,))
    writer.start()
    project.command([sys.executable, "-c", stopped("before", 1), *project.arguments()[3:]])
    writer.join()
    balanced(project.resume())
    assert tables_of(project, WANTED, archive) == rows


@pytest.mark.parametrize(
    "clause",
    [
        "partition: {hash: {column: id, parts: 3}}",
        "load: single, partition: {range: {column: id, bounds: [1000, 4000]}}",
        "partition: {range: {column: id, bounds: [1000, 4000]}}",
    ],
)
def test_a_table_of_one_source_is_divided(sales: Project, clause: str) -> None:
    write = 'input: orders, connection: warehouse, table: orders, target: "${target}"'
    text = PACKAGE.replace(write, f"{write}, {clause}")
    assert clause in text
    if "hash" in clause and not hasattr(sales, "target"):
        text = text.replace("partition: {hash", "load: view, partition: {hash")
    rows = wanted(sales)
    sales.package(text)
    balanced(sales.run())
    assert tables_of(sales, WANTED) == rows


def test_a_view_of_a_source_with_fewer_slices_than_streams(warehouse: PostgresProject) -> None:
    """One table for each of its slices at most, however short some are."""
    write_files(warehouse)
    write = 'connection: warehouse, table: {}, target: "${{target}}"'
    warehouse.package(PACKAGE.replace(write.format("small"), f"{write.format('small')}, load: view"))
    warehouse.file("customers.1", customer(1))
    rows = wanted(warehouse)
    balanced(warehouse.run())
    assert tables_of(warehouse, WANTED) == rows
    assert sum("public.small_" in name for name in warehouse.tables()) == 3


def test_members_of_a_transaction_in_a_loop(sales: Project) -> None:
    head, _, flow = PACKAGE.partition("tasks:\n  load:\n")
    flow = flow.replace('files: "orders.*"', 'files: "orders.${n}"').replace('"${target}"', "append")
    inside = (
        "  turns:\n    foreach:\n      item: n\n      in: [1, 2]\n      tasks:\n        all:\n          sequence:\n"
        "            transaction: warehouse\n            tasks:\n              load:\n"
    )
    spread = "".join(f"{14 * ' '}{line}\n" for line in flow.splitlines())
    sales.package(f"{head}tasks:\n{inside}{spread}")
    sales.file("orders.2", "id,status,total,day\n" + "".join(map(order, range(ORDERS, 2 * ORDERS))))
    sales.run().succeeded()
    rows = wanted(sales)
    found = tables_of(sales, WANTED)
    assert found["orders"] == rows["orders"]
    assert found["big"] == sorted(2 * rows["big"], key=repr)


def test_files_of_each_source_are_cut_into_slices(project: Project) -> None:
    """By all streams, as those of one source alone."""
    write_files(project)
    project.file("orders.1", "id,status,total,day\n" + 900_000 * order(1))
    project.file("customers.1", 900_000 * customer(1))
    plan = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json", "--set", "streams=8"])
    tasks = {own["table"]: own for own in json.loads(plan.stdout)["tasks"]}
    assert {own["streams"] for own in tasks.values()} == {8}
    cut = {name: {int(item["file"]) for item in tasks[name]["slices"]} for name in ("orders", "big")}
    assert [len(tasks[name]["slices"]) - len(cut[name]) for name in ("orders", "big")] == [4, 2]


def test_plan_graph_and_report(project: Project) -> None:
    """Each table with its own source, and nothing of a union."""
    write_files(project)
    project.run().succeeded()
    plan = headrace(project, "plan", "package.yaml")
    graph = headrace(project, "plan", "package.yaml", "--graph", "mermaid")
    report = headrace(project, "report", "--runs-dir", "runs", "last", "--output", "report.html")
    page = (project.folder / "report.html").read_text()
    for text in (plan.stdout, graph.stdout, report.stdout, page):
        assert "union" not in text.lower(), text
    assert plan.stdout.count("from      1 file") == 3 and plan.stdout.count("from      3 files") == 2
    assert "orders" in graph.stdout and "customers" in graph.stdout


def headrace(project: Project, *arguments: str) -> Ended:
    ended = project.command([sys.executable, "-m", "headrace", *arguments])
    assert ended.exit_code == 0, ended.stderr
    return ended
