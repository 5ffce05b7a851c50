"""A sequence with a transaction: all of its tasks become visible together, or none of them, on every target that has
transactions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace.run as run
from headrace.errors import CancelledError, HeadraceError, SqlError, TaskTimeoutError
from headrace.model import load_package
from headrace.run import Summary
from tests.conformance.destinations import DESTINATIONS, Destination
from tests.servers.farm import Farm

# One version of the server for each test; `make test-every-case` has all.
pytestmark = pytest.mark.in_turn("together", among="postgres ")

PACKAGE = """
headrace: 1
package: together
variables:
  n: {{type: integer, value: 0}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: "null"}}
layouts:
  pair:
    delimiter: "|"
    columns: [{{name: id, type: int32, nullable: false}}, {{name: note, type: string}}]
tasks:
  make: {{sql: {{connection: warehouse, text: "CREATE TABLE IF NOT EXISTS log (id bigint, what varchar(20))"}}}}
  all:
    after: make
    {more}
    sequence:
      transaction: warehouse
      tasks:
        first: {{sql: {{connection: warehouse, text: "{first}"}}}}
        one: {{after: first, data_flow: {{sources: {{r: {{connection: inbox, files: one.*, layout: pair}}}},
          destinations: {{t: {{input: r, connection: warehouse, table: one, target: replace}}}}}}}}
        two: {{after: first, data_flow: {{sources: {{r: {{connection: inbox, files: two.*, layout: pair}}}},
          destinations: {{t: {{input: r, connection: warehouse, table: two, target: replace}}}}}}}}
        last: {{after: [one, two], sql: {{connection: warehouse, row: {{n: n}}, text: "{last}"}}}}
  behind:
    after: all
    sql: {{connection: warehouse, text: "INSERT INTO log VALUES ($n, 'behind')"}}
"""
FIRST = "INSERT INTO log VALUES (1, 'first')"
# It sees what the flows before it have loaded.
LAST = "INSERT INTO log SELECT count(*), 'last' FROM one; SELECT count(*) + 100 AS n FROM one, two"


class Together:
    """The package, its files and one destination."""

    def __init__(self, folder: Path, destination: Destination) -> None:
        self.folder = folder
        self.destination = destination
        (folder / "inbox").mkdir()
        self.write("one.1", 3)
        self.write("two.1", 2)

    def write(self, name: str, rows: int, more: str = "") -> None:
        """A file with so many rows."""
        text = "".join(f"{number}|note {number}\n" for number in range(1, rows + 1))
        (self.folder / "inbox" / name).write_text(text + more, encoding="utf-8")

    def run(self, first: str = FIRST, last: str = LAST, more: str = "", text: str = PACKAGE, **options: Any) -> Summary:
        path = self.folder / "package.yaml"
        path.write_text(text.format(first=first, last=last, more=more), encoding="utf-8")
        package = load_package(path, connections=[f"warehouse={self.destination.url}"], streams=2, environ={})
        return run.execute(package, runs_dir=self.folder / "runs", **options)

    def state(self) -> tuple[int | None, int | None, list[int]]:
        """Rows of both tables, and what the statements have written."""
        return self.destination.count("one"), self.destination.count("two"), self.destination.ids("log")


@pytest.fixture(params=[name for name in DESTINATIONS if name != "null"])
def together(request: pytest.FixtureRequest, tmp_path: Path, servers: Farm) -> Iterator[Together]:
    destination = DESTINATIONS[request.param](tmp_path, servers)
    yield Together(tmp_path, destination)
    destination.close()


def failure(summary: Summary) -> HeadraceError:
    """The error of a run that must have failed."""
    assert summary.failure is not None
    return summary.failure


def test_all_of_it(together: Together) -> None:
    events: list[dict[str, Any]] = []
    summary = together.run(listener=events.append)
    assert summary.failure is None, summary.failure.render()
    assert together.state() == (3, 2, [1, 3, 106])
    document = summary.to_dict()
    assert [(table["table"], table["status"], table["rows_loaded"]) for table in document["tables"]] == [
        ("one", "success", 3),
        ("two", "success", 2),
    ]
    assert {task["task"]: task["success"] for task in document["tasks"]} == dict.fromkeys(
        ["make", "all", "all.first", "all.one", "all.two", "all.last", "behind"], 1
    )
    ended = [event["task"] for event in events if event["event"] == "task_finished"]
    assert ended == ["make", "all.first", "all.one", "all.two", "all.last", "all", "behind"]
    again = together.run()
    assert again.failure is None, again.failure.render()
    assert together.state() == (3, 2, [1, 1, 3, 3, 106, 106])


@pytest.mark.parametrize("together", ["duckdb"], indirect=True)
def test_it_begins_with_rows_that_are_appended(together: Together) -> None:
    """Nothing stands between the mark of the transaction and the rows of its first task. PostgreSQL refuses them: their
    writers commit by themselves.
    """
    assert together.run().failure is None
    lines = [line for line in PACKAGE.splitlines(keepends=True) if "first: {{sql" not in line]
    appending = (
        "".join(lines)
        .replace("after: first, ", "")
        .replace("table: one, target: replace", "table: one, target: append")
    )
    summary = together.run(text=appending)
    assert summary.failure is None, summary.failure.render()
    assert together.state() == (6, 2, [1, 3, 6, 106, 112])


@pytest.mark.parametrize(
    ("broken", "task"),
    [
        ({"first": f"{FIRST}; INSERT INTO nowhere VALUES (1)"}, "all.first"),
        ({"last": f"{LAST} FROM nowhere"}, "all.last"),
    ],
    ids=["first", "last"],
)
def test_a_statement_that_fails(together: Together, broken: dict[str, str], task: str) -> None:
    events: list[dict[str, Any]] = []
    error = failure(together.run(**broken, listener=events.append))
    assert isinstance(error, SqlError)
    assert f"task {task}" in error.what
    assert together.state() == (None, None, [])
    ended = {event["task"]: event["status"] for event in events if event["event"] == "task_finished"}
    assert ended[task] == ended["all"] == "failed"
    # The next run finds nothing in its way.
    assert together.run().failure is None
    assert together.state() == (3, 2, [1, 3, 106])


def test_a_flow_that_fails(together: Together) -> None:
    assert together.run().failure is None
    together.write("one.1", 7)
    together.write("two.1", 5, "no number|x\n")
    summary = together.run()
    assert "two.1" in failure(summary).render()
    assert together.state() == (3, 2, [1, 3, 106])
    tables = {table["table"]: table for table in summary.to_dict()["tables"]}
    assert {name: table["rows_loaded"] for name, table in tables.items()} in ({"one": 0, "two": 0}, {"two": 0})
    assert {table["status"] for table in tables.values()} == {"failed"}
    assert summary.tasks_failed == 1


def test_a_value_that_is_not_given(together: Together) -> None:
    """The statement succeeds, and what the task does with its rows fails."""
    error = failure(together.run(last="SELECT 1 AS n FROM log WHERE id = 77"))
    assert "all.last" in error.what
    assert together.state() == (None, None, [])


def test_a_transaction_that_takes_too_long(together: Together) -> None:
    slow = "INSERT INTO log SELECT count(*), 'slow' FROM {0} a, {0} b, {0} c, {0} d, {0} e"
    rows = (
        "(SELECT 1 FROM generate_series(1, 3000) AS s(i))" if "postgres" in together.destination.url else "range(3000)"
    )
    error = failure(together.run(last=slow.format(rows) + "; SELECT 1 AS n", more="timeout_seconds: 1"))
    assert isinstance(error, TaskTimeoutError)
    assert together.state() == (None, None, [])


def test_a_transaction_that_is_cancelled(together: Together) -> None:
    cancel = threading.Event()

    def listener(event: dict[str, Any]) -> None:
        if event["event"] == "task_started" and event["task"] == "all.two":
            cancel.set()

    together.write("two.1", 300_000)
    assert isinstance(failure(together.run(cancel=cancel, listener=listener)), CancelledError)
    assert together.state() == (None, None, [])


def test_no_file_for_one_of_the_flows(together: Together) -> None:
    (together.folder / "inbox" / "two.1").unlink()
    text = PACKAGE.replace("files: two.*,", "files: two.*, missing: skip,")
    path = together.folder / "package.yaml"
    path.write_text(text.format(first=FIRST, last="SELECT count(*) AS n FROM one", more=""), encoding="utf-8")
    package = load_package(path, connections=[f"warehouse={together.destination.url}"], environ={})
    summary = run.execute(package, runs_dir=together.folder / "runs")
    assert summary.failure is None, summary.failure.render()
    assert together.state() == (3, None, [1, 3])
