# ruff: noqa: E501
"""Whole control flows inside this process, on DuckDB: order, loops, variables, failures, handlers, child packages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace.run as run
from headrace.model import load_package
from headrace.run import Summary
from headrace.run.control.selection import Choice
from headrace.run.request import RunRequest

HEAD = """\
headrace: 1
package: flow
connections:
  inbox:     {type: files, path: inbox}
  warehouse: {type: duckdb, path: w.duckdb}
"""
CANARY = "c4n4ry-S3cret-value"


def say(text: str) -> str:
    """A task that notes a text, and the order of it."""
    return f'sql: {{connection: warehouse, text: "INSERT INTO said SELECT count(*), {text} FROM said"}}'


@dataclass
class Scene:
    """A folder with a package, and a database in which tasks note what they do."""

    folder: Path

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, text: str, choice: Choice | None = None, sets: Sequence[str] = ()) -> Summary:
        """Runs the package; `text` without its head."""
        self.write("package.yaml", HEAD + text)
        path = self.folder / "package.yaml"
        package = load_package(path, sets=list(sets), environ={"CANARY": CANARY, "PATH": "/usr/bin:/bin"})
        request = RunRequest(path, self.folder, tuple(sets), (), None, choice or Choice(), trusted=True)
        return run.execute(package, runs_dir=self.folder / "runs", request=request)

    def succeeded(self, text: str, choice: Choice | None = None) -> Summary:
        summary = self.run(text, choice)
        assert summary.failure is None, summary.failure
        return summary

    def failed(self, text: str) -> str:
        summary = self.run(text)
        assert summary.failure is not None
        return summary.failure.what

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.folder / "w.duckdb")) as connection:
            return connection.execute(query).fetchall()

    @property
    def said(self) -> list[str]:
        return [text for (text,) in self.rows("SELECT what FROM said ORDER BY n")]

    def events(self, name: str) -> list[dict[str, Any]]:
        (path,) = (self.folder / "runs").glob("*/events.jsonl")
        found = [json.loads(line) for line in path.read_text().splitlines()]
        return [event for event in found if event["event"] == name]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    (tmp_path / "inbox").mkdir()
    made.rows("CREATE TABLE said (n BIGINT, what VARCHAR)")
    return made


def test_order_and_containers(scene: Scene) -> None:
    scene.succeeded(f"""
tasks:
  last: {{after: [box], {say("'last'")}}}
  box:
    after: first
    sequence:
      tasks:
        b: {{after: a, {say("'box.b'")}}}
        a: {{{say("'box.a'")}}}
        inner: {{after: b, sequence: {{tasks: {{c: {{{say("'box.inner.c'")}}}}}}}}}
  first: {{{say("'first'")}}}
""")
    assert scene.said == ["first", "box.a", "box.b", "box.inner.c", "last"]


def test_failure_branches(scene: Scene) -> None:
    what = scene.failed(f"""
tasks:
  bad: {{sql: {{connection: warehouse, text: "INSERT INTO nowhere VALUES (1)"}}}}
  never: {{after: bad, {say("'never'")}}}
  behind_never: {{after: never, {say("'never'")}}}
  repair: {{after: {{bad: failure}}, {say("'repair'")}}}
  report: {{after: repair, {say("'report'")}}}
""")
    assert "nowhere" in str(what) or what
    assert scene.said == ["repair", "report"]


def test_maximum_errors_and_disabled(scene: Scene) -> None:
    summary = scene.succeeded(f"""
maximum_errors: 1
tasks:
  bad: {{sql: {{connection: warehouse, text: "INSERT INTO nowhere VALUES (1)"}}}}
  off: {{disabled: true, sql: {{connection: warehouse, text: "INSERT INTO nowhere VALUES (1)"}}}}
  behind_off: {{after: off, {say("'behind off'")}}}
  unless: {{after: behind_off, when: "1 > 2", {say("'never'")}}}
  behind_unless: {{after: unless, {say("'never'")}}}
  either: {{after: {{unless: {{on: success, or_skipped: true}}}}, {say("'either'")}}}
""")
    assert scene.said == ["behind off", "either"]
    assert summary.to_dict()["tasks_failed"] == 1


def test_every_kind_of_foreach(scene: Scene) -> None:
    for name in ("b.csv", "a10.csv", "a9.csv"):
        scene.write(f"inbox/{name}", "x")
    one = say("$kind || ':' || $x")
    scene.succeeded(f"""
variables: {{found: {{type: rows}}, days: {{type: list, items: date, value: [2024-01-02, 2023-01-01]}}}}
tasks:
  list:  {{foreach: {{item: x, in: [b, a], tasks: {{t: {{{say("'list:' || $x")}}}}}}}}}
  files: {{after: list, foreach: {{item: x, files: {{connection: inbox, pattern: "*.csv"}}, tasks: {{t: {{{say("'files:' || $x")}}}}}}}}}
  query:
    after: files
    foreach:
      query: {{connection: warehouse, text: "SELECT range AS n, 'r' || range AS name FROM range(2)"}}
      as: {{n: integer, name: string}}
      tasks: {{t: {{{say("'query:' || $n || $name")}}}}}
  ask: {{after: query, sql: {{connection: warehouse, text: "SELECT 7 AS n, CAST(1.50 AS DECIMAL(9,2)) AS d", rows: found}}}}
  rows: {{after: ask, foreach: {{rows: found, as: {{n: integer, d: decimal}}, tasks: {{t: {{{say("'rows:' || $n || ':' || CAST($d AS DECIMAL(9,2))")}}}}}}}}}
  numbers: {{after: rows, foreach: {{item: x, range: {{from: 3, to: 1, step: -1}}, tasks: {{t: {{{say("'range:' || $x")}}}}}}}}}
  days: {{after: numbers, foreach: {{item: x, in: "${{days}}", tasks: {{t: {{{say("'day:' || $x")}}}}}}}}}
""")
    assert one
    assert scene.said == [
        "list:b", "list:a", "files:a9.csv", "files:a10.csv", "files:b.csv", "query:0r0", "query:1r1", "rows:7:1.50",
        "range:3", "range:2", "range:1", "day:2024-01-02", "day:2023-01-01",
    ]  # fmt: skip


def test_for(scene: Scene) -> None:
    scene.succeeded(f"""
variables: {{i: {{type: integer}}, sum: {{type: integer, value: 0}}}}
tasks:
  loop:
    for:
      initial: {{i: "1"}}
      while: i * i < 30
      step: {{i: i + 2}}
      tasks:
        add: {{set: {{sum: sum + i}}}}
  end: {{after: loop, {say("$i || ':' || $sum")}}}
""")
    assert scene.said == ["7:9"]


VALUES = {
    "integer": "9223372036854775807",
    "decimal": "12345678901234567890.1234567891",
    "boolean": "true",
    "date": "2024-02-29",
    "timestamp": "2024-02-29 23:59:59.999999",
    "string": 'it\'s \\u00e4 \\"text\\" with a line\\nbreak',
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_go_through_sql_and_python_and_back(scene: Scene, kind: str) -> None:
    scene.write("own.py", "def same(value):\n    return value\n")
    value = VALUES[kind] if kind in ("integer", "boolean", "decimal") else f'"{VALUES[kind]}"'
    there = 'python: {function: "own.py:same", arguments: {value: "${a}"}, result: b}'
    scene.succeeded(f"""
variables:
  a: {{type: {kind}, value: {value}}}
  b: {{type: {kind}}}
  c: {{type: {kind}}}
tasks:
  there: {{{there if kind in ("integer", "boolean", "string") else "set: {b: a}"}}}
  back: {{after: there, sql: {{connection: warehouse, text: "SELECT $b AS c", row: {{c: c}}}}}}
  same: {{after: back, when: "a = c AND a = b AND a IS NOT NULL", {say("'same'")}}}
""")
    assert scene.said == ["same"]


def test_a_process_gives_and_takes(scene: Scene) -> None:
    scene.succeeded(f"""
variables: {{text: {{type: string, value: "in"}}, out: {{type: string}}}}
tasks:
  run: {{process: {{command: [sh, -c, 'cat; echo "$GIVEN"; echo'], input: "${{text}} ", environment: {{GIVEN: "${{text}}2"}}, output: out}}}}
  end: {{after: run, {say("$out")}}}
""")
    assert scene.said == ["in in2"]


def test_child_packages(scene: Scene) -> None:
    child = """\
headrace: 1
package: child
parameters: {n: {type: integer, required: true}}
variables: {own: {type: integer, expr: n * 2}, seen: {type: string, value: none}}
connections: {theirs: {type: duckdb, path: other.duckdb}}
tasks:
  note: {sql: {connection: theirs, text: "INSERT INTO said SELECT count(*), 'child ' || $n || ' ' || $own FROM said"}}
  bad: {after: note, when: n = 2, sql: {connection: theirs, text: "INSERT INTO nowhere VALUES (1)"}}
  end: {after: {bad: {on: success, or_skipped: true}}, set: {seen: "'n' || n", own: own + 1}}
"""
    scene.write("child.yaml", child)
    summary = scene.run(f"""
variables: {{result: {{type: integer}}, failed: {{type: integer, value: 0}}}}
maximum_errors: 1
on:
  task_failed:
    tasks:
      note:
        variables: {{which: {{type: string, expr: system.source_task}}}}
        {say("'failed ' || $which")}
tasks:
  turns:
    maximum_errors: 5
    foreach:
      item: i
      range: {{from: 1, to: 3}}
      tasks:
        call:
          package: {{file: child.yaml, parameters: {{n: {{expr: i}}}}, connections: {{theirs: warehouse}}, results: {{result: own}}}}
        behind: {{after: call, {say("'own ' || $result")}}}
""")
    assert summary.failure is None, summary.failure
    assert scene.said == [
        "child 1 2", "own 3", "child 2 4", "failed turns[2].call.bad", "child 3 6", "own 7",
    ]  # fmt: skip


def test_handlers_bubble_until_one_keeps_the_event(scene: Scene) -> None:
    def handler(where: str, event: str, more: str = "") -> str:
        note = say(f"'{where} {event} ' || $t")
        variables = "{t: {type: string, expr: system.source_task}}"
        return f"{event}: {{{more}tasks: {{note: {{variables: {variables}, {note}}}}}}}"

    scene.succeeded(f"""
maximum_errors: 9
on: {{{handler("package", "post_execute")}, {handler("package", "task_failed")}}}
tasks:
  box:
    maximum_errors: 9
    on: {{{handler("box", "task_failed")}, {handler("box", "post_execute", "propagate: false, ")}}}
    sequence:
      tasks:
        bad:
          on: {{{handler("own", "error")}, {handler("own", "pre_execute")}, {handler("own", "task_failed")}}}
          sql: {{connection: warehouse, text: "INSERT INTO nowhere VALUES (1)"}}
""")
    assert scene.said == [
        "own pre_execute box.bad",
        "own error box.bad",
        "own task_failed box.bad",
        "box task_failed box.bad",
        "package task_failed box.bad",
        "box post_execute box.bad",
        "box post_execute box",
    ]


def test_a_failing_handler_is_an_error_and_hides_none(scene: Scene) -> None:
    bad = 'sql: {connection: warehouse, text: "INSERT INTO handler_nowhere VALUES (1)"}'
    what = scene.run(f"""
tasks:
  good: {{on: {{post_execute: {{tasks: {{h: {{{bad}}}}}}}}}, {say("'good'")}}}
""").failure
    assert what is not None and "handler_nowhere" in str(what.to_dict())
    what = scene.run(f"""
tasks:
  bad: {{on: {{task_failed: {{tasks: {{h: {{{bad}}}}}}}}}, sql: {{connection: warehouse, text: "INSERT INTO nowhere VALUES (1)"}}}}
""").failure
    assert what is not None and "handler_nowhere" not in str(what.to_dict()) and "nowhere" in str(what.to_dict())


def test_a_handler_loads_a_data_flow(scene: Scene) -> None:
    scene.write("inbox/rows.csv", "1\n2\n")
    scene.succeeded(
        f"""
layouts: {{rows: {{delimiter: ",", columns: [{{name: id, type: int64}}]}}}}
tasks:
  load: &load
    on:
      post_execute:
        tasks:
          again:
            data_flow:
              sources: {{rows: {{connection: inbox, files: rows.csv, layout: rows}}}}
              destinations: {{loaded: {{input: rows, connection: warehouse, table: second, target: append}}}}
    data_flow:
      sources: {{rows: {{connection: inbox, files: rows.csv, layout: rows}}}}
      destinations: {{loaded: {{input: rows, connection: warehouse, table: first, target: replace}}}}
  end: {{after: load, {say("'end'")}}}
""".replace("&load", "")
    )
    assert scene.rows("SELECT (SELECT sum(id) FROM first), (SELECT sum(id) FROM second)") == [(3, 3)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(only=("b",)), ["b"]),
        (Choice(only=("a", "box")), ["a", "box.c"]),
        (Choice(start="b"), ["b", "box.c", "d"]),
        (Choice(skip=("b", "box.c")), ["a", "d"]),
        (Choice(start="box.c", skip=("d",)), ["box.c"]),
    ],
)
def test_parts_of_a_package(scene: Scene, choice: Choice, expected: list[str]) -> None:
    scene.succeeded(
        f"""
tasks:
  a: {{{say("'a'")}}}
  b: {{after: a, {say("'b'")}}}
  box: {{after: b, sequence: {{tasks: {{c: {{{say("'box.c'")}}}}}}}}}
  d: {{after: box, {say("'d'")}}}
""",
        choice,
    )
    assert scene.said == expected


def test_tasks_run_side_by_side_up_to_the_bound(scene: Scene) -> None:
    """Each waits until the others are there: one place less, and they would wait for ever."""
    wait = "touch here_$N; for i in $(seq 600); do test $(ls here_* | wc -l) -ge 4 && exit 0; sleep 0.1; done; exit 1"
    tasks = "\n".join(
        f"  t{number}: {{process: {{command: [sh, -c, '{wait}'], environment: {{N: '{number}'}}}}}}"
        for number in range(4)
    )
    scene.succeeded(f"max_concurrent: 4\ntasks:\n{tasks}\n")


def test_no_more_than_the_bound_run_side_by_side(scene: Scene) -> None:
    look = "mkdir in_$N; ls -d in_* | wc -l >> seen; sleep 0.1; rmdir in_$N"
    tasks = "\n".join(
        f"  t{number}: {{process: {{command: [sh, -c, '{look}'], environment: {{N: '{number}'}}}}}}"
        for number in range(6)
    )
    scene.succeeded(f"max_concurrent: 2\ntasks:\n{tasks}\n")
    assert max(int(line) for line in (scene.folder / "seen").read_text().split()) <= 2


def test_time_outs_are_failures_and_leave_the_destination_usable(scene: Scene) -> None:
    summary = scene.run(f"""
maximum_errors: 5
tasks:
  query: {{timeout_seconds: 0.3, sql: {{connection: warehouse, text: "CREATE TABLE big AS SELECT count(*) FROM range(100000000000)"}}}}
  program: {{timeout_seconds: 0.3, process: {{command: [sleep, "60"]}}}}
  box: {{timeout_seconds: 0.3, sequence: {{tasks: {{inner: {{process: {{command: [sleep, "60"]}}}}}}}}}}
  behind: {{after: {{query: completion, program: completion, box: completion}}, {say("'behind'")}}}
""")
    assert summary.failure is None, summary.failure
    assert scene.said == ["behind"]
    failed = {task["task"]: task["error"]["kind"] for task in summary.to_dict()["tasks"] if task["error"]}
    assert set(failed.values()) == {"timeout"}, failed
    assert {"query", "program"} <= set(failed)


def test_secrets_are_nowhere(scene: Scene) -> None:
    """In variables, parameters of SQL, the environment of programs, errors that quote them, and handlers."""
    summary = scene.run(f"""
parameters: {{pw: {{type: string, default: "${{env:CANARY}}"}}}}
variables: {{copy: {{type: string, expr: "pw || '!'"}}, hidden: {{type: string, secret: true}}}}
maximum_errors: 5
on: {{task_failed: {{tasks: {{note: {{variables: {{e: {{type: string, expr: system.error}}}}, {say("$e")}}}}}}}}}
tasks:
  quote: {{sql: {{connection: warehouse, text: "SELECT CAST($copy AS INTEGER)"}}}}
  program: {{process: {{command: [sh, -c, 'echo "$PW" >&2; echo "$PW"; exit 3'], environment: {{PW: "${{pw}}"}}}}}}
  keep: {{set: {{hidden: "'{CANARY[::-1]}'"}}}}
  loop: {{foreach: {{item: x, in: ["${{pw}}", other], tasks: {{t: {{sql: {{connection: warehouse, text: "SELECT $x"}}}}}}}}}}
""")
    assert summary.failure is None
    files = [path for path in (scene.folder / "runs").rglob("*") if path.is_file()]
    for path in [*files, scene.folder / "w.duckdb"]:
        assert CANARY.encode() not in path.read_bytes(), path
    assert CANARY[::-1].encode() not in b"".join(path.read_bytes() for path in files if path.name == "journal.jsonl")
    assert CANARY not in json.dumps(summary.to_dict())
