"""stdout and stderr that do not take what is written to them, and texts that would steer a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from headrace.cli.console import print_result, say, shown_path
from tests.cli.conftest import CommandLine
from tests.cli.filters import stable
from tests.cli.test_commands import SCALE, write_small
from tests.snapshots import assert_snapshot


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `headrace` is this program."""
    script = f'headrace() {{ "{sys.executable}" -m headrace "$@"; }}\n{command}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )


@pytest.mark.parametrize("json_option", ["", "--json"])
def test_a_run_whose_result_cannot_be_printed_says_how_it_ended(tmp_path: Path, json_option: str) -> None:
    write_small(tmp_path, "1;2026-01-30;120.50\n")
    done = shell(f"headrace run small.yaml --quiet {json_option} >/dev/full", tmp_path)
    assert done.returncode == 1
    assert_snapshot("output_run", stable(done.stderr, tmp_path))
    (summary,) = tmp_path.glob(".headrace/runs/*/summary.json")
    assert json.loads(summary.read_text())["status"] == "success"
    with duckdb.connect(str(tmp_path / "small.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM orders").fetchall() == [(1,)]


def test_a_failed_run_whose_result_cannot_be_printed_tells_its_error_too(tmp_path: Path) -> None:
    write_small(tmp_path, "x;x;x\ny;y;y\n")
    done = shell("headrace run small.yaml --quiet >/dev/full", tmp_path)
    assert done.returncode == 1
    assert_snapshot("output_failed_run", stable(done.stderr, tmp_path))


@pytest.mark.parametrize(
    "command", ["check small.yaml", "plan small.yaml --json", "schema", "--help", "run --help", "--version", "--json"]
)
def test_a_full_stdout_is_one_error_without_traceback(tmp_path: Path, command: str) -> None:
    write_small(tmp_path, "")
    done = shell(f"headrace {command} >/dev/full", tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == (6 if command == "--json" else 1)
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr and "internal" not in done.stderr and "Exception" not in done.stderr
    assert not list(tmp_path.glob("headrace-internal*"))


def test_a_demo_whose_result_cannot_be_printed(tmp_path: Path) -> None:
    done = shell(f"headrace demo --scale {SCALE} --quiet --json >/dev/full", tmp_path)
    assert done.returncode == 1
    assert "ended with status success, but its result cannot be printed" in done.stderr


def test_a_full_stderr_does_not_fail_a_run(tmp_path: Path) -> None:
    write_small(tmp_path, "1;2026-01-30;120.50\n")
    done = shell("headrace run small.yaml --json 2>/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows_loaded"] == 1


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
def test_closed_standard_files_are_harmless(tmp_path: Path, closed: str) -> None:
    """The next file opened would get the number of a closed one: the database would get the talk."""
    write_small(tmp_path, "1;2026-01-30;120.50\n")
    done = shell(f"headrace run small.yaml {closed}", tmp_path)
    assert "Traceback" not in done.stderr
    with duckdb.connect(str(tmp_path / "small.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM orders").fetchall() == [(1,)]


@pytest.mark.parametrize("command", ["schema", "plan small.yaml", "plan small.yaml --json", "--help"])
def test_a_reader_that_has_gone_is_no_error(tmp_path: Path, command: str) -> None:
    write_small(tmp_path, "1;2026-01-30;120.50\n")
    done = shell(f"set -o pipefail; headrace {command} | head -c 0", tmp_path)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("command", ["plan", "run", "check"])
def test_an_encoding_without_the_characters_of_a_path(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "größe"
    folder.mkdir()
    write_small(folder, "1;2026-01-30;120.50\n")
    for option in ("--json", ""):
        done = shell(f"headrace {command} small.yaml {option}", folder, PYTHONIOENCODING="ascii")
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
        if option:
            assert "größe" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_names_of_files_cannot_steer_the_terminal(
    headrace: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path, "")
    (tmp_path / "orders.csv").rename(tmp_path / "orders\x1b]0;owned\x07\n.csv")
    (tmp_path / "orders\x1b]0;owned\x07\n.csv").write_text("id;day;amount\nx;2026-01-30;1\n")
    for arguments in (["plan", "small.yaml"], ["run", "small.yaml"], ["check", "none\x1b[31m\n.yaml"]):
        outcome = headrace(*arguments)
        assert "\x1b" not in outcome.text() and "\x07" not in outcome.text() and "\\x1b" in outcome.text()
        assert "\\n.csv" in outcome.text() or "\\n.yaml" in outcome.text()


def test_everything_printed_is_without_controls(capsys: pytest.CaptureFixture[str]) -> None:
    print_result("a\x1b[31m\nb")
    say("c\x9b31m")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("a\\x1b[31m\nb\n", "c\\x9b31m\n")
    assert shown_path("/a\nb\x1b") == "/a\\nb\\x1b"


@pytest.mark.parametrize("json_option", ["", "--json"])
def test_a_current_folder_that_was_deleted(tmp_path: Path, json_option: str) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && headrace run {json_option} package.yaml"
    done = shell(command, tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 6
    assert_snapshot("deleted_folder", done.stderr)
    assert not list(tmp_path.glob("headrace-internal*"))
    if json_option:
        assert json.loads(done.stdout)["error"]["kind"] == "command_line"
