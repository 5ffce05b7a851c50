"""`headrace verify` of data flows with several destinations: each table beside the rows that have gone its way."""

from __future__ import annotations

import sys

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.several_scenes import KEYED, ROWS, accounts, package, write_files

PARTED = """
        parted:
          input: orders
          split: {big: "amount > 900", small: "amount < 100"}
"""
READ = {
    "archive": "orders", "strict": "orders", "big": "parted.big", "small": "parted.small", "others": "parted.rest",
    "found": "keyed", "missed": "keyed.no_match",
}  # fmt: skip
NOT_NULL = "id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR(30)"


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    """In either place: files with a line that nobody can read, and a table that cannot hold all rows."""
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    (project.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    project.execute(f"CREATE TABLE strict ({NOT_NULL})")
    return project


def text() -> str:
    found = package(KEYED + PARTED, READ).replace('"${limit}"', "10000")
    divided = "target: replace, load: view, partition: {range: {column: id, bounds: [2000, 4000]}}"
    found = found.replace("table: big, target: replace", f"table: big, {divided}")
    return found.replace("name: note, type: string", 'name: note, type: "varchar(30)"')


def verified(project: Project) -> Ended:
    return project.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", "last"])


def test_each_table_is_compared_with_its_rows(orders: Project) -> None:
    orders.package(text())
    ended = orders.run()
    ended.succeeded()
    loaded = {name: (own[1], own[3]) for name, own in accounts(ended).items()}
    assert loaded["strict"][1] == 1 + len(range(0, ROWS, 13)), "what a table cannot hold is on neither side"
    found = verified(orders)
    assert found.exit_code == 0, found.stderr
    tables = {table["table"]: table for table in found.summary["tables"]}
    for name in ("archive", "strict", "big", "small", "others"):
        own = tables[name]
        assert (own["status"], own["rows_in_table"]) == ("equal", loaded[name][0]), own
        assert (own["rows_in_source"], own["rows_rejected"]) == loaded[name]
        assert own["values_compared"] == 17
    for name in ("found", "missed"):
        assert tables[name]["status"] == "not_comparable"
        assert "passed a lookup" in tables[name]["reason"]

    # A value, and a row that stands in the table of another way.
    orders.execute(
        "UPDATE archive SET amount = amount + 0.01 WHERE id = 1", "INSERT INTO small SELECT * FROM others WHERE id = 20"
    )
    found = verified(orders)
    assert found.exit_code == 1
    different = [table for table in found.summary["tables"] if table["status"] == "different"]
    assert [table["table"] for table in different] == ["archive", "small"]
    assert [own["aggregate"] for own in different[0]["differences"]] == ["sum"]
    assert different[1]["differences"][0]["aggregate"] == "rows"


def test_a_table_into_which_rejects_were_replayed_is_not_compared(orders: Project) -> None:
    orders.package(text())
    run = str(orders.run().succeeded()["run_id"])
    strict = orders.command(
        [sys.executable, "-m", "headrace", "rejects", run, "--runs-dir", "runs", "--json", "--first", "2"]
    )
    number = next(own["number"] for own in strict.summary["tables"][0]["first"] if own["destinations"] == ["strict"])
    (orders.folder / "one.tbl").write_text("1|1|1.00|one\n")
    arguments = ["replay", run, "one.tbl", "--rows", str(number), "--runs-dir", "runs", "--json"]
    orders.command([sys.executable, "-m", "headrace", *arguments]).succeeded()
    found = orders.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", run])
    tables = {table["table"]: table for table in found.summary["tables"]}
    assert (tables["archive"]["status"], tables["strict"]["status"]) == ("equal", "not_comparable")
    assert "replayed" in tables["strict"]["reason"]


def test_a_flow_behind_a_statement(project: Project) -> None:
    """It is known before the run, and planned when it starts: each of its tables is one for both."""
    write_files(project)
    (project.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    statement = "tasks:\n  first:\n    sql: {connection: warehouse, text: CREATE TABLE other (n BIGINT)}\n"
    flow = package(PARTED, {"archive": "orders", "big": "parted.big", "small": "parted.small"})
    flow = flow.replace('"${limit}"', "1").replace("          split:", "          discard: [rest]\n          split:")
    project.package(flow.replace("tasks:\n  load:\n", f"{statement}  load:\n    after: {{first: success}}\n"))
    project.run().succeeded()
    found = verified(project)
    assert [table["status"] for table in found.summary["tables"]] == ["equal"] * 3
    (project.folder / "repair.tbl").write_text("70000|1|1.00|good\n")
    replay = [sys.executable, "-m", "headrace", "replay", "--runs-dir", "runs", "--json", "last", "repair.tbl"]
    accounts_of_replay = project.command(replay).succeeded()["replay"]
    assert (accounts_of_replay["numbers"], accounts_of_replay["loaded"], accounts_of_replay["filtered"]) == (1, 2, 1)


def test_why_a_table_is_not_compared(project: Project) -> None:
    write_files(project)
    transforms = f"""{KEYED}
        parted: {{input: keyed, split: {{big: "amount > 500"}}, discard: [rest]}}
        priced: {{input: parted.big, sql: "SELECT *, amount + 1 AS more FROM parted"}}
        halves: {{input: orders, split: {{odd: "id % 2 = 1"}}}}
        whole: {{union: {{inputs: [halves.odd, halves.rest]}}}}
"""
    ends = {"missed": "keyed.no_match", "big": "parted.big", "priced": "priced", "odd": "halves.odd", "whole": "whole"}
    project.package(package(transforms, ends))
    project.run().succeeded()
    reasons = {table["table"]: table["reason"] for table in verified(project).summary["tables"]}
    assert reasons == {
        "missed": "its rows have passed a lookup, whose rows may be other ones by now",
        "big": "its rows have passed a lookup, whose rows may be other ones by now",
        "priced": "its rows have passed a query",
        "odd": None,
        "whole": "its rows have gone different ways and come together again",
    }
