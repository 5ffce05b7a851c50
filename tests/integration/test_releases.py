"""`releases`: a program has the file of a DuckDB connection while it runs, and the run goes on behind it."""

from __future__ import annotations

import json
import sys

import pytest

from tests.integration.driver import Ended, Project

PACKAGE = """
headrace: 1
package: together
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  pair: {delimiter: "|", columns: [{name: id, type: int32}, {name: note, type: string}]}
tasks:
  one:
    data_flow:
      sources: {rows: {connection: inbox, files: one.txt, layout: pair}}
      destinations: {table: {input: rows, connection: warehouse, table: one, target: replace}}
  program:
    after: one
    process:
      command: COMMAND
      releases: [warehouse]
  again:
    after: {program: completion}
    data_flow:
      sources: {rows: {connection: inbox, files: one.txt, layout: pair}}
      destinations: {table: {input: rows, connection: warehouse, table: one, target: append}}
  count:
    after: {again: completion}
    sql: {connection: warehouse, text: "CREATE OR REPLACE TABLE counted AS SELECT count(*) AS n FROM one"}
"""
OPENED = "import duckdb; c = duckdb.connect('warehouse.duckdb'); "
ADDS = OPENED + "c.execute('CREATE TABLE added AS SELECT count(*) AS n FROM one')"
LATER = (
    "INSERT INTO headrace.run SELECT * REPLACE ('20991231-000000-abcdef' AS run_id, 'running' AS status, "
    "started_at + INTERVAL 1 MINUTE AS started_at, 'PACKAGE' AS package) FROM headrace.run"
)


def run(project: Project, program: str, *arguments: str) -> Ended:
    """The package with this program in Python."""
    project.file("one.txt", "1|a\n2|b\n3|c\n")
    project.package(PACKAGE.replace("COMMAND", json.dumps([sys.executable, "-c", program])))
    return project.run("--trust", *arguments)


def test_a_program_has_the_file(project: Project) -> None:
    summary = run(project, ADDS).succeeded()
    assert [(task["task"], task["success"]) for task in summary["tasks"]][1] == ("program", 1)
    assert project.query("SELECT n FROM added") == [(3,)]
    assert project.query("SELECT n FROM counted") == [(6,)]
    assert project.ledger() == ["success"]


def test_a_program_that_fails(project: Project) -> None:
    """What follows it has the file again."""
    ended = run(project, f"{ADDS}; raise SystemExit(3)")
    assert ended.exit_code != 0
    assert "exit code 3" in ended.error
    assert project.query("SELECT n FROM counted") == [(6,)]
    assert project.ledger() == ["failed"]


def test_a_run_of_another_package_meanwhile(project: Project) -> None:
    other = LATER.replace("PACKAGE", "another")
    lost = "UPDATE headrace.run SET status = 'lost'"
    run(project, f'{OPENED}c.execute("""{other}"""); c.execute("""{lost}""")').succeeded()
    assert project.query("SELECT n FROM counted") == [(6,)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (f'{OPENED}c.execute("""{LATER.replace("PACKAGE", "together")}""")', "a later run of package together"),
        ("import os; os.remove('warehouse.duckdb')", "does not know it any more"),
        (f'{OPENED}c.execute("DROP SCHEMA headrace CASCADE")', "does not know it any more"),
    ],
    ids=["a later run", "no file", "no ledger"],
)
def test_a_ledger_without_a_place_for_the_run(project: Project, change: str, says: str) -> None:
    ended = run(project, change)
    assert ended.exit_code != 0
    assert says in ended.error
    if "remove" not in change:
        assert "counted" not in str(project.tables())
