"""Data flows with several destinations as members of a transaction: their tables become visible with it, or not."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.several_scenes import PARTED, package, write_files
from tests.integration.test_transaction_interruption import KILLED as KILLED_AT

ROWS = 600
KILLED = KILLED_AT.replace('("stage", ', '("stage", "stage_ways", ')
READ = {"archive": "orders", "big": "parted.big", "small": "parted.small", "others": "parted.rest"}
TASKS = """
tasks:
  all:
    sequence:
      transaction: warehouse
      tasks:
        first: {sql: {connection: warehouse, text: "INSERT INTO log VALUES (1)"}}
        one:
          after: first
SPREAD        again:
          after: one
          data_flow:
            sources: {codes: {connection: inbox, files: customers.csv, layout: customers}}
            destinations:
              codes: {input: codes, connection: warehouse, table: codes, target: replace}
              strict: {input: codes, connection: warehouse, table: strict, target: append}
        last: {after: again, sql: {connection: warehouse, text: "INSERT INTO log SELECT count(*) FROM archive, codes"}}
"""
MOMENTS = (
    "behind stage_ways 1", "before stage_ways 2", "behind stage_ways 2", "behind begin 1", "behind switch 2",
    "before commit 1", "behind commit 1",
)  # fmt: skip


def text(last: str = "") -> str:
    found = package(PARTED.replace('odd: "1000 / customer > 500"', 'odd: "amount IS NULL"'), READ)
    found = found.replace("table: archive, target: replace", "table: archive, target: append")
    found = found.replace("          split:", "          discard: [odd]\n          split:").replace('"${limit}"', "1")
    head, _, flow = found.partition("tasks:\n  load:\n")
    spread = "".join(f"      {line}\n" for line in flow.splitlines())
    return head + TASKS.replace("SPREAD", spread).replace("INSERT INTO log SELECT", f"{last}INSERT INTO log SELECT")


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    project.package(text())
    write_files(project, ROWS)
    (project.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    columns = "(id bigint, customer int, amount decimal(9,2), note varchar)"
    project.execute(
        "CREATE TABLE log (id bigint)",
        f"CREATE TABLE archive {columns}",
        "INSERT INTO archive VALUES (-1, 1, 1, 'old')",
        "CREATE TABLE strict (code int UNIQUE, label varchar)",
    )
    return project


def state(project: Project) -> dict[str, int]:
    """Rows of the tables; none of those that are not there."""
    there = {name.rpartition(".")[2] for name in project.tables()}
    names = ("log", *READ, "codes", "strict")
    return {name: int(project.query(f"SELECT count(*) FROM {name}")[0][0]) for name in names if name in there}


BEFORE = {"log": 0, "archive": 1, "strict": 0}


def done(project: Project, ended: Ended, *, is_resumed: bool = False) -> None:
    """All of it, and accounts as if nothing had happened."""
    summary = ended.succeeded()
    found = state(project)
    rows = project.query("SELECT id FROM log ORDER BY id")
    assert [int(row[0]) for row in rows] == [1, (ROWS + 1) * 20]
    odd = len(range(0, ROWS, 17))
    assert (found["archive"], found["codes"], found["strict"]) == (ROWS + 1, 20, 20)
    assert found["big"] + found["small"] + found["others"] == ROWS - odd
    loaded = {table["table"]: table["rows_loaded"] for table in summary["tables"]}
    assert loaded == {**{name: found[name] for name in loaded}, "archive": ROWS}
    assert list(loaded) == [*READ, "codes", "strict"]
    assert (summary["rows_read"], summary["rows_rejected"]) == (ROWS + 21, 1)
    # Of parts that PostgreSQL has committed out of sight it is not known which rows no table wanted.
    is_known = not is_resumed or not hasattr(project, "target")
    assert summary["rows_filtered"] in ((odd,) if is_known else (odd, 0))
    assert project.leftovers() == []


@pytest.mark.parametrize("streams", ["1", "8"])
def test_all_tables_become_visible_with_the_transaction(orders: Project, streams: str) -> None:
    done(orders, orders.run("--streams", streams))


@pytest.mark.faults
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_is_resumed(orders: Project, moment: str) -> None:
    arguments = orders.arguments("--streams", "2")
    killed = orders.command([sys.executable, "-c", KILLED, moment, *arguments[3:]])
    assert killed.exit_code == -signal.SIGKILL, killed.stderr
    if moment != "behind commit 1":
        assert state(orders) == BEFORE
    done(orders, orders.resume(), is_resumed=moment != "behind commit 1")


def test_a_statement_that_fails_undoes_all_tables(orders: Project) -> None:
    orders.package(text("INSERT INTO log SELECT 1 / 0; " if hasattr(orders, "target") else "SELECT error('no'); "))
    failed = orders.run()
    assert failed.exit_code == 1, failed.stderr
    assert state(orders) == BEFORE
    assert {table["status"] for table in failed.summary["tables"]} == {"failed"}
    assert orders.leftovers() == []


def test_a_row_that_breaks_a_constraint_is_named(orders: Project) -> None:
    orders.execute("INSERT INTO strict VALUES (7, 'there')")
    failed = orders.run()
    assert failed.exit_code == 1, failed.stderr
    assert state(orders) == {**BEFORE, "strict": 1}
    words = " ".join(failed.error.split())
    assert "strict" in words and "customers.csv" in words and "row 5" in words, words
    (strict,) = (table for table in failed.summary["tables"] if table["table"] == "strict")
    assert strict["status"] == "failed"


def test_another_connection_is_refused(project: Project) -> None:
    project.package(
        text()
        .replace("small: {input: parted.small, connection: warehouse", "small: {input: parted.small, connection: other")
        .replace("connections:\n", "connections:\n  other: {type: duckdb, path: other.duckdb}\n", 1)
    )
    write_files(project, 10)
    checked = project.command([sys.executable, "-m", "headrace", "check", "package.yaml"])
    assert checked.exit_code == 5
    assert "is a part of a transaction of `warehouse` and works elsewhere" in " ".join(checked.stderr.split())
