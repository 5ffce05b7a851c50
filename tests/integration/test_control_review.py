"""Control flow where failures, handlers and resumed runs meet: nothing is lost, and nothing waits for ever."""

from __future__ import annotations

import duckdb
import pytest

from tests.integration.driver import Project

HEAD = """
headrace: 1
package: review
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
"""


def command(script: str) -> str:
    """A task of kind process, in the folder of the package."""
    return f'{{process: {{command: [sh, -c, "{script}"]}}}}'


def ended_tasks(project: Project) -> list[tuple[str, str]]:
    """Tasks and how they ended, in the order of the events of all attempts."""
    return [(item["task"], item["status"]) for item in project.events() if item["event"] == "task_finished"]


def test_a_container_that_follows_a_failure_runs_what_is_in_it(project: Project) -> None:
    project.package(
        HEAD
        + """
tasks:
  bad: {sql: {connection: warehouse, text: "SELECT error('x')"}}
  clean:
    after: {bad: failure}
    sequence:
      tasks:
        make: {sql: {connection: warehouse, text: "CREATE TABLE cleaned AS SELECT 1 AS one"}}
"""
    )
    assert project.run().exit_code != 0
    assert project.query("SELECT one FROM cleaned") == [(1,)]


def test_what_a_failure_elsewhere_has_kept_from_starting_is_done_by_resume(project: Project) -> None:
    project.package(
        HEAD
        + f"""
tasks:
  bad: {command("sleep 0.3; test -e ok")}
  steps:
    sequence:
      tasks:
        one: {command("sleep 1")}
        two: {{after: one, {command("echo two >> done")[1:]}
  loop:
    foreach:
      item: number
      in: [1, 2]
      tasks:
        turn: {command("sleep 1; echo turn >> done")}
"""
    )
    assert project.run("--trust").exit_code != 0
    assert ("steps", "cancelled") in ended_tasks(project)
    (project.folder / "ok").touch()
    assert project.resume().exit_code == 0
    assert sorted((project.folder / "done").read_text().split()) == ["turn", "turn", "two"]


@pytest.mark.parametrize("own", [True, False], ids=["own_handlers", "one_handler"])
def test_handlers_and_tasks_do_not_wait_for_each_other(project: Project, own: bool) -> None:
    """One task has the only place and its handler wants the pool; the other one has the pool."""
    log = """{post_execute: {tasks: {log: {sql: {connection: warehouse, text: "INSERT INTO log VALUES (1)"}}}}}"""
    run = f"{{post_execute: {{tasks: {{log: {command('true')}}}}}}}"
    long = "CREATE TABLE long AS SELECT sum(a.range * b.range) AS s FROM range(50000) a, range(5000) b"
    project.package(
        HEAD
        + f"""
max_concurrent: 1
on: {log if not own else "null"}
tasks:
  make: {{sql: {{connection: warehouse, text: "CREATE TABLE log (one INTEGER)"}}}}
  long: {{after: make, on: {run if own else "null"}, sql: {{connection: warehouse, text: "{long}"}}}}
  short: {{after: make, on: {log if own else "null"}, process: {{command: [sleep, "0.1"]}}}}
"""
    )
    assert project.run("--trust").exit_code == 0
    assert project.query("SELECT count(*) FROM log") == [(1 if own else 3,)]


def test_handlers_of_two_failures_run_both(project: Project) -> None:
    project.package(
        HEAD
        + """
on:
  task_failed:
    tasks:
      name: {set: {source: system.source_task}}
      log: {after: name, sql: {connection: warehouse, text: "INSERT INTO log VALUES ($source)"}}
variables:
  source: {type: string}
tasks:
  make: {sql: {connection: warehouse, text: "CREATE TABLE log (task VARCHAR)"}}
  one: {after: make, process: {command: ["false"]}}
  two: {after: make, process: {command: [sh, -c, "sleep 0.5; false"]}}
"""
    )
    assert project.run("--trust").exit_code != 0
    assert project.query("SELECT task FROM log ORDER BY task") == [("one",), ("two",)]


def test_a_condition_that_cannot_be_evaluated_is_handled_as_a_failure(project: Project) -> None:
    project.package(
        HEAD
        + """
variables:
  text: {type: string, value: x}
on:
  task_failed:
    tasks:
      log: {sql: {connection: warehouse, text: "CREATE TABLE log AS SELECT 1 AS one"}}
tasks:
  one: {when: "CAST(text AS INTEGER) = 1", set: {text: "'y'"}}
"""
    )
    assert project.run().exit_code != 0
    assert project.query("SELECT one FROM log") == [(1,)]


def test_numbers_can_be_secrets(project: Project) -> None:
    project.package(
        HEAD
        + """
variables:
  number: {type: integer, secret: true}
tasks:
  get: {set: {number: "987654321"}}
  loop:
    after: get
    foreach:
      item: item
      range: {from: "${number}", to: "${number}"}
      tasks:
        fail: {sql: {connection: warehouse, text: "SELECT error($item::VARCHAR)"}}
"""
    )
    ended = project.run()
    assert "***" in ended.error
    assert "987654321" not in ended.error + "".join(map(str, project.events()))


def test_failures_in_ended_turns_of_a_for_are_not_forgotten(project: Project) -> None:
    project.package(
        HEAD
        + f"""
variables:
  number: {{type: integer}}
tasks:
  loop:
    maximum_errors: 5
    for:
      initial: {{number: 1}}
      while: number <= 3
      step: {{number: number + 1}}
      tasks:
        turn: {command("false")}
"""
    )
    assert project.run("--trust").summary["tasks_failed"] == 3
    assert project.resume().summary["tasks_failed"] == 3


def test_a_flow_is_planned_behind_the_handlers_of_the_package(project: Project) -> None:
    """A handler makes the table before the only task starts."""
    project.file("numbers.csv", "1\n")
    project.package(
        HEAD
        + """
  inbox: {type: files, path: inbox}
layouts:
  numbers: {delimiter: ",", columns: [{name: number, type: int64}]}
on:
  pre_execute:
    tasks:
      make: {sql: {connection: warehouse, text: "CREATE TABLE IF NOT EXISTS numbers (number DECIMAL(10, 2))"}}
tasks:
  load:
    data_flow:
      sources: {numbers: {connection: inbox, files: numbers.csv, layout: numbers}}
      destinations: {main: {input: numbers, connection: warehouse, table: numbers, target: append}}
"""
    )
    project.run().succeeded()
    assert project.query("SELECT count(*), any_value(typeof(number)) FROM numbers") == [(1, "DECIMAL(10,2)")]


def test_days_up_to_the_last_one_that_there_is(project: Project) -> None:
    project.package(
        HEAD
        + """
variables:
  days: {type: string, value: ""}
  time: {type: timestamp, value: 2024-01-01 10:00:00}
tasks:
  last:
    foreach: {item: day, range: {from: 9999-12-30, to: 9999-12-31}, tasks: {add: {set: {days: "days || day || ' '"}}}}
  first:
    after: last
    foreach:
      item: day
      range: {from: 0001-01-02, to: 0001-01-01, step: -1}
      tasks: {add: {set: {days: "days || day || ' '"}}}
  keep: {after: first, sql: {connection: warehouse, text: "CREATE TABLE seen AS SELECT $days AS days"}}
  times: {after: keep, foreach: {item: day, range: {from: "${time}", to: "${time}"}, tasks: {nothing: {set: {}}}}}
"""
    )
    ended = project.run()
    assert "cannot be gone through" in ended.error
    assert project.query("SELECT days FROM seen") == [("9999-12-30 9999-12-31 0001-01-02 0001-01-01 ",)]


def test_planned_flows_do_not_wait_for_those_of_turns_that_have_ended(project: Project) -> None:
    for name in ("one", "two", "three"):
        project.file(f"{name}.csv", "1\n")
    project.package(
        HEAD
        + """
  inbox: {type: files, path: inbox}
layouts:
  ids: {delimiter: "|", columns: [{name: id, type: int32}]}
tasks:
  tables:
    foreach:
      item: table
      in: [one, two, three]
      tasks:
        load:
          data_flow:
            sources: {rows: {connection: inbox, files: "${table}.csv", layout: ids}}
            destinations: {loaded: {input: rows, connection: warehouse, table: "${table}", target: append}}
"""
    )
    with duckdb.connect(str(project.folder / "warehouse.duckdb")) as connection:
        connection.execute("CREATE TABLE two (id INTEGER CHECK (id > 1))")
    assert project.run().exit_code == 1
    with duckdb.connect(str(project.folder / "warehouse.duckdb")) as connection:
        connection.execute("DROP TABLE two")
    assert project.resume().exit_code == 0
    assert [project.query(f"SELECT id FROM {name}") for name in ("one", "two", "three")] == [[(1,)]] * 3
