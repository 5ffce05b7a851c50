"""Packages with other tasks than data flows on the command line: check, plan, dry run, run, resume, their choices."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace.cli.control_flow import render_control
from tests.cli.conftest import CommandLine
from tests.cli.filters import stable
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: nightly
max_concurrent: 4
streams: 2
parameters:
  names: {type: list, default: [one, two]}
  fail: {type: boolean, default: false}
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
layouts:
  rows: {delimiter: ";", columns: [{name: id, type: int32}, {name: name, type: string}]}
variables:
  count: {type: integer, value: 0}
on:
  task_failed:
    tasks:
      noted: {set: {count: -1}}
tasks:
  prepare:
    sql: {connection: warehouse, text: "CREATE TABLE IF NOT EXISTS log (name TEXT); INSERT INTO log VALUES ('begun')"}
    retry: {times: 3}
    timeout_seconds: 60
  loads:
    after: prepare
    foreach:
      item: name
      in: ${names}
      tasks:
        load:
          data_flow:
            sources: {rows: {connection: inbox, files: "${name}.csv", layout: rows}}
            destinations: {out: {input: rows, connection: warehouse, table: t, target: append}}
  counted:
    after: loads
    sql: {connection: warehouse, text: "SELECT count(*) AS n FROM t", row: {count: n}}
  archive:
    after: {counted: {when: count > 0}}
    foreach:
      item: name_of
      files: {connection: inbox, pattern: "*.csv"}
      tasks:
        away: {file: {archive: "${name_of}", connection: inbox, to: old/}}
  broken:
    after: {archive: completion}
    when: fail
    sql: {connection: warehouse, text: "SELECT * FROM nowhere"}
maximum_errors: 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the package and its files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightly.yaml").write_text(PACKAGE)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.csv").write_text("1;a\n2;b\n")
    (tmp_path / "data" / "two.csv").write_text("3;c\n")
    (tmp_path / "environments.yaml").write_text(
        "headrace: 1\nenvironments:\n"
        "  test: {parameters: {names: [one]}, connections: {warehouse: 'duckdb:t.duckdb'}}\n"
    )
    return tmp_path


def document(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


def timeless(text: str, folder: Path) -> str:
    """Without the seconds of tasks."""
    return re.sub(r" \d+\.\d\d$", " TIME", stable(text, folder), flags=re.MULTILINE)


def rows(file: str, sql: str) -> list[Any]:
    with duckdb.connect(file, read_only=True) as connection:
        return connection.sql(sql).fetchall()


def test_check_and_plan(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", "nightly.yaml")
    assert_snapshot("control_check", stable(outcome.text(), folder))
    outcome = headrace("plan", "nightly.yaml")
    assert_snapshot("control_plan", stable(outcome.text(), folder))
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert not (folder / "w.duckdb").exists()
    flow = document(headrace("plan", "nightly.yaml", "--json").stdout)["control_flow"]
    assert [task["task"] for task in flow["tasks"]] == ["prepare", "loads", "counted", "archive", "broken"]
    assert flow["tasks"][1]["tasks"][0]["late"] == "`prepare` may run before it"
    assert flow["on"]["task_failed"]["tasks"][0]["kind"] == "set"


def test_a_dry_run_says_what_plan_says_and_changes_nothing(headrace: CommandLine, folder: Path) -> None:
    for options in ([], ["--env", "test"], ["--only", "loads,counted"], ["--from", "archive"], ["--skip", "prepare"]):
        planned = headrace("plan", "nightly.yaml", *options)
        dry = headrace("run", "nightly.yaml", "--dry-run", *options)
        assert (dry.exit_code, dry.stdout) == (planned.exit_code, planned.stdout), options
    assert sorted(path.name for path in folder.iterdir()) == ["data", "environments.yaml", "nightly.yaml"]
    assert headrace("run", "nightly.yaml", "--dry-run", "--only", "laods").exit_code == 6


def test_a_dry_run_without_its_files_fails_like_plan(headrace: CommandLine, folder: Path) -> None:
    (folder / "data" / "one.csv").unlink()
    planned = headrace("plan", "nightly.yaml", "--skip", "prepare")
    dry = headrace("run", "nightly.yaml", "--dry-run", "--skip", "prepare")
    assert planned.exit_code == 1
    assert dry == planned


def test_run(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("run", "nightly.yaml")
    assert outcome.exit_code == 0
    assert_snapshot("control_run", timeless(outcome.stdout, folder))
    assert rows("w.duckdb", "SELECT count(*) FROM t") == [(3,)]
    assert sorted(path.name for path in (folder / "data" / "old").iterdir()) == ["one.csv", "two.csv"]


def test_a_task_fails_and_the_run_goes_on(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("run", "nightly.yaml", "--set", "fail=true", "--quiet")
    assert outcome.exit_code == 0
    assert_snapshot("control_run_with_failure", timeless(outcome.text(), folder))
    again = headrace("resume", "--quiet", "--json")
    tasks = {task["task"]: task for task in document(again.stdout)["tasks"]}
    assert (tasks["prepare"]["before"], tasks["broken"]["failed"]) == (1, 1)
    assert rows("w.duckdb", "SELECT count(*) FROM log") == [(1,)]


def test_some_tasks(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("run", "nightly.yaml", "--only", "prepare", "--quiet", "--json")
    tasks = {task["task"]: task for task in document(outcome.stdout)["tasks"]}
    assert outcome.exit_code == 0
    assert tasks["prepare"]["success"] == 1 and tasks["counted"]["passed"] == 1
    outcome = headrace("run", "nightly.yaml", "--from", "loads", "--skip", "archive, broken", "--quiet", "--json")
    tasks = {task["task"]: task for task in document(outcome.stdout)["tasks"]}
    assert tasks["prepare"]["passed"] == 1 and tasks["counted"]["success"] == 1 and tasks["archive"]["passed"] == 1
    assert rows("w.duckdb", "SELECT count(*) FROM t") == [(3,)]
    assert rows("w.duckdb", "SELECT count(*) FROM log") == [(1,)]


def test_messages_about_choices(headrace: CommandLine, folder: Path) -> None:
    for name, options in {
        "control_no_such_task": ["--only", "laods"],
        "control_no_task_left": ["--only", "prepare", "--skip", "prepare"],
        "control_no_such_environment": ["--env", "tset"],
        "control_no_such_level": ["--log-level", "debug"],
    }.items():
        outcome = headrace("run", "nightly.yaml", *options)
        assert outcome.exit_code == 6
        assert_snapshot(name, stable(outcome.text(), folder))


def test_an_environment_is_repeated_by_resume_and_verify(headrace: CommandLine, folder: Path) -> None:
    assert headrace("run", "nightly.yaml", "--env", "test", "--set", "fail=true", "--quiet").exit_code == 0
    assert headrace("resume", "--quiet").exit_code == 0
    assert rows("t.duckdb", "SELECT count(*) FROM t") == [(2,)]
    assert not (folder / "w.duckdb").exists()
    (folder / "environments.yaml").write_text(
        (folder / "environments.yaml").read_text().replace("t.duckdb", "other.duckdb")
    )
    changed = headrace("resume", "--quiet")
    assert changed.exit_code == 5
    assert_snapshot("control_environment_changed", stable(changed.text(), folder))


def test_code_of_the_package_needs_trust(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    (folder / "code.yaml").write_text(
        "headrace: 1\npackage: code\ntasks:\n  made: {process: {command: [touch, made.txt]}}\n"
        "  failing: {after: made, process: {command: ['false']}}\n"
    )
    refused = headrace("run", "code.yaml")
    assert refused.exit_code == 5 and not (folder / "made.txt").exists()
    assert_snapshot("control_not_trusted", stable(refused.text(), folder))
    assert headrace("check", "code.yaml").exit_code == 0
    assert headrace("run", "code.yaml", "--trust", "--quiet").exit_code == 1
    (folder / "made.txt").unlink()
    resumed = headrace("resume", "--quiet")
    assert resumed.exit_code == 1 and not (folder / "made.txt").exists(), "what has succeeded is not repeated"


def test_settings_of_the_command_line_are_kept(headrace: CommandLine, folder: Path) -> None:
    options = ["--max-concurrent", "1", "--log-level", "error", "--only", "prepare"]
    assert headrace("run", "nightly.yaml", *options, "--quiet").exit_code == 0
    (run_folder,) = (folder / ".headrace" / "runs").iterdir()
    request = document((run_folder / "request.json").read_text())
    assert (request["max_concurrent"], request["log_level"], request["only"]) == (1, "error", ["prepare"])
    events = [json.loads(line)["event"] for line in (run_folder / "events.jsonl").read_text().splitlines()]
    assert set(events) == {"run_started", "run_finished"}


def test_connect_opens_what_other_tasks_use(headrace: CommandLine, folder: Path) -> None:
    (folder / "sql.yaml").write_text(
        "headrace: 1\npackage: sql\nconnections: {other: {type: duckdb, path: none/o.duckdb}}\n"
        "tasks:\n  only: {sql: {connection: other, text: SELECT 1}}\n"
    )
    outcome = headrace("check", "sql.yaml", "--connect")
    assert outcome.exit_code == 1
    assert_snapshot("control_check_connect", stable(outcome.text(), folder))


def test_a_thousand_tasks_are_a_page() -> None:
    task = {"kind": "set", "disabled": False, "after": [], "when": True, "repeat": "exactly once", "settings": {}}
    task |= {"needs_trust": False, "retries": 0, "timeout_seconds": None, "maximum_errors": 0, "join": "all"}
    inner = [{**task, "task": f"outer.t{number}"} for number in range(1000)]
    groups = [{**task, "kind": "sequence", "task": f"s{number}", "tasks": inner} for number in range(20)]
    lines = render_control({"tasks": groups, "on": {}}, width=80)
    assert len(lines) <= 201
    assert "... 970 more" in "\n".join(lines) and lines[-1].strip() == "... more: --json has all of them"
