"""A sequence with a transaction that is killed, watched, or that loses its session: all of it is done once, or not."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject

pytestmark = pytest.mark.faults

PACKAGE = """
headrace: 1
package: together
variables:
  n: {type: integer, value: 0}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  pair:
    delimiter: "|"
    columns: [{name: id, type: int32, nullable: false}, {name: note, type: string}]
tasks:
  all:
    sequence:
      transaction: warehouse
      tasks:
        first: {sql: {connection: warehouse, text: "INSERT INTO log VALUES (1)"}}
        one:
          after: first
          data_flow:
            sources: {rows: {connection: inbox, files: "one.*", layout: pair}}
            destinations: {table: {input: rows, connection: warehouse, table: one, target: replace}}
        two:
          after: one
          data_flow:
            sources: {rows: {connection: inbox, files: "two.*", layout: pair}}
            destinations: {table: {input: rows, connection: warehouse, table: two, target: replace}}
        last:
          after: two
          sql: {connection: warehouse, text: "SELECT count(*) AS n FROM one, two", row: {n: n}}
  behind:
    after: all
    sql: {connection: warehouse, text: "INSERT INTO log VALUES ($n)"}
"""
# The command line, with a process that kills itself when the moment has come.
KILLED = """
import os, signal, sys
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.postgres.group import PostgresGroup

moment = sys.argv.pop(1)

def at(owner, name):
    original = getattr(owner, name)
    calls = []
    def reached(self, *values, **more):
        calls.append(name)
        if moment == f"before {name} {len(calls)}":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(self, *values, **more)
        if moment == f"behind {name} {len(calls)}":
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, reached)

for group in (DuckdbGroup, PostgresGroup):
    for name in ("stage", "begin", "switch", "commit"):
        at(group, name)

from headrace.cli import main
main()
"""
MOMENTS = (
    "behind stage 1",
    "before stage 2",
    "behind stage 2",
    "behind begin 1",
    "behind switch 1",
    "before commit 1",
    "behind commit 1",
)


def packed(project: Project) -> Project:
    """The package, its files, the tables before."""
    project.package(PACKAGE)
    project.file("one.1", "".join(f"{number}|note {number}\n" for number in range(1, 301)))
    project.file("two.1", "".join(f"{number}|note {number}\n" for number in range(1, 201)))
    project.execute("CREATE TABLE log (id bigint)", "CREATE TABLE one (id int NOT NULL, note text)")
    project.execute("INSERT INTO one VALUES (-1, 'before')")
    return project


@pytest.fixture(params=["duckdb", "postgres"])
def together(request: pytest.FixtureRequest) -> Iterator[Project]:
    yield packed(request.getfixturevalue("project" if request.param == "duckdb" else "warehouse"))


def killed(project: Project, moment: str) -> Ended:
    """A run that is killed at a moment."""
    arguments = project.arguments()
    assert arguments[1:3] == ["-m", "headrace"]
    ended = project.command([sys.executable, "-c", KILLED, moment, *arguments[3:]])
    assert ended.exit_code == -signal.SIGKILL, ended.stderr
    return ended


def state(project: Project) -> tuple[list[int], ...]:
    """What is in the tables; empty lists for a table that is not there."""
    there = {name.rpartition(".")[2] for name in project.tables()}
    found = []
    for query in ("SELECT count(*) FROM one", "SELECT count(*) FROM two", "SELECT id FROM log ORDER BY id"):
        known = query.split("FROM ")[1].split()[0] in there
        found.append([int(str(row[0])) for row in project.query(query)] if known else [])
    return tuple(found)


BEFORE: tuple[list[int], ...] = ([1], [], [])
WITHOUT_THE_LAST = ([300], [200], [1])
DONE = ([300], [200], [1, 60_000])


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_is_resumed(together: Project, moment: str) -> None:
    killed(together, moment)
    assert state(together) == (WITHOUT_THE_LAST if moment == "behind commit 1" else BEFORE)
    summary = together.resume().succeeded()
    assert state(together) == DONE
    assert {table["table"]: table["rows_loaded"] for table in summary["tables"]} == {"one": 300, "two": 200}
    assert together.ledger() == ["success"]
    assert together.leftovers() == []


@pytest.mark.parametrize("moment", ["behind stage 2", "before commit 1"])
def test_a_killed_run_is_followed_by_another(together: Project, moment: str) -> None:
    killed(together, moment)
    together.run().succeeded()
    assert state(together) == DONE
    assert together.ledger() == ["lost", "success"]


def test_what_was_staged_is_not_read_again(warehouse: PostgresProject) -> None:
    packed(warehouse)
    killed(warehouse, "behind switch 1")
    summary = warehouse.resume().succeeded()
    assert state(warehouse) == DONE
    assert [table["bytes_read"] for table in summary["tables"]] == [0, 0]


def test_a_reader_sees_all_or_nothing(warehouse: PostgresProject) -> None:
    packed(warehouse)
    warehouse.package(PACKAGE.replace('text: "SELECT count', 'text: "SELECT pg_sleep(0.3); SELECT count'))
    seen: set[tuple[str | None, ...]] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            query = "SELECT (SELECT count(*) FROM log WHERE id = 1), to_regclass('two') IS NOT NULL"
            seen.update(warehouse.query(query))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        warehouse.run().succeeded()
    finally:
        stop.set()
        reader.join()
    assert seen <= {("0", "f"), ("1", "t")}
    assert ("0", "f") in seen


def test_what_a_script_sets_ends_with_it(warehouse: PostgresProject) -> None:
    """Else a trigger of the table would not fire, or its rows would go elsewhere."""
    packed(warehouse)
    warehouse.execute("CREATE SCHEMA other", "CREATE TABLE other.log (id bigint)")
    inserts = "INSERT INTO log VALUES (5); INSERT INTO public.log VALUES (1)"
    text = f"SET search_path = other; SET datestyle = 'German'; {inserts}"
    warehouse.package(PACKAGE.replace("INSERT INTO log VALUES (1)", text))
    warehouse.run().succeeded()
    assert state(warehouse) == DONE
    assert warehouse.query("SELECT id FROM other.log") == [("5",)]


def test_a_flow_that_commits_by_itself(warehouse: PostgresProject) -> None:
    packed(warehouse)
    warehouse.package(PACKAGE.replace("table: one, target: replace", "table: one, target: append"))
    ended = warehouse.run()
    assert ended.exit_code != 0
    assert "transaction" in ended.error
    assert state(warehouse) == BEFORE


# The command line, whose session of the transaction breaks at COMMIT: before the server gets it, or behind that.
LOSING = """
import sys
from headrace.errors import TargetBusyError
from headrace.targets.postgres import sql_sessions

moment = sys.argv.pop(1)

class Losing:
    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def query(self, sql, parameters=()):
        if sql != "COMMIT":
            return self._connection.query(sql, parameters)
        if moment == "behind":
            self._connection.query(sql)
        raise TargetBusyError("the connection was lost")

begin = sql_sessions.PostgresSqlSession.begin
def losing(self, **more):
    if self._task == "all":
        self._connection = Losing(self._connection)
    begin(self, **more)
sql_sessions.PostgresSqlSession.begin = losing

from headrace.cli import main
main()
"""


@pytest.mark.parametrize("moment", ["before", "behind"])
def test_an_answer_to_commit_that_never_came(warehouse: PostgresProject, moment: str) -> None:
    packed(warehouse)
    ended = warehouse.command([sys.executable, "-c", LOSING, moment, *warehouse.arguments()[3:]])
    if moment == "behind":
        ended.succeeded()
    else:
        assert "the connection was lost" in ended.error
        assert state(warehouse) == BEFORE
        # What was staged is kept, because trying again can help.
        summary = warehouse.resume().succeeded()
        assert [table["bytes_read"] for table in summary["tables"]] == [0, 0]
    assert state(warehouse) == DONE
    assert warehouse.left_in_database() == []
