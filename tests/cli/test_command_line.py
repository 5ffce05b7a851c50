"""Help, versions and wrong command lines: exit code 6, one error in our shape, the nearest name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from headrace.cli.failures import run_app
from tests.cli.conftest import CommandLine
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

COMMANDS = [
    "demo",
    "generate tpch",
    "init",
    "infer",
    "check",
    "plan",
    "run",
    "resume",
    "verify",
    "rejects",
    "replay",
    "schema",
]

WRONG = {
    "unknown_command": "runn x.yaml",
    "unknown_command_far": "frobnicate",
    "unknown_option": "run x.yaml --strems 4",
    "unknown_option_far": "run x.yaml --frobnicate",
    "unknown_root_option": "--verison",
    "missing_argument": "run",
    "missing_option": "generate tpch",
    "missing_value": "run x.yaml --set",
    "not_a_number": "run x.yaml --streams=many",
    "out_of_range": "run x.yaml --streams 0",
    "extra_argument": "run x.yaml y.yaml",
    "unknown_engine": "run x.yaml --engine ray",
    "unknown_schema": "schema packge",
    "unknown_destination": "demo --to postgresql",
    "unknown_table": "generate tpch --out x --tables lineitems",
    "no_table": "generate tpch --out x --tables ,",
    "no_such_chunk": "generate tpch --out x --chunks 2 --chunk 3",
    "scale_zero": "generate tpch --out x --scale 0",
    "scale_small": "generate tpch --out x --scale 0.00001",
    "scale_gap": "generate tpch --out x --scale 20000",
    "scale_nan": "generate tpch --out x --scale nan",
    "chunks": "generate tpch --out x --chunks 100000000",
    "threads": "generate tpch --out x --threads 2000",
    "flag_with_value": "run x.yaml --quiet=1",
    "option_before_command": "--quiet run x.yaml",
    "out_in_home": "generate tpch --out=~/data",
    "folder_in_home": "demo --folder ~user",
    "runs_folder_in_home": "run x.yaml --runs-dir=~/runs",
}


def test_help_lists_every_command(headrace: CommandLine) -> None:
    outcome = headrace("--help")
    assert outcome.exit_code == 0
    assert_snapshot("help", outcome.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(headrace: CommandLine, command: str) -> None:
    outcome = headrace(*command.split(), "--help")
    assert outcome.exit_code == 0
    assert "Example:" in outcome.stdout
    assert max(len(line) for line in outcome.stdout.splitlines()) <= 80
    assert_snapshot(f"help_{command.replace(' ', '_')}", outcome.stdout)


@pytest.mark.parametrize("arguments", ["", "generate"])
def test_without_a_command_the_help_is_shown(headrace: CommandLine, arguments: str) -> None:
    outcome = headrace(*arguments.split())
    assert outcome.exit_code == 6
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("Usage: headrace")


def test_version(headrace: CommandLine) -> None:
    outcome = headrace("--version")
    assert outcome.exit_code == 0
    assert re.fullmatch(r"headrace \d+\.\d+\.\d+\n", outcome.stdout)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_command_line(headrace: CommandLine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = headrace(*WRONG[name].split())
    assert outcome.exit_code == 6
    assert outcome.stdout == ""
    assert_snapshot(f"wrong_{name}", outcome.stderr)
    assert not list(tmp_path.iterdir())


def test_an_error_is_the_one_json_document(headrace: CommandLine) -> None:
    outcome = headrace("run", "x.yaml", "--json", "--strems", "4")
    document = json.loads(outcome.stdout)
    assert document["status"] == "failed"
    assert document["error"]["kind"] == "command_line"


@pytest.mark.parametrize("arguments", ["check x.yaml --json=1", "--json", "--json check x.yaml", "generate --json"])
def test_a_misplaced_json_option_prints_json(headrace: CommandLine, arguments: str) -> None:
    outcome = headrace(*arguments.split())
    assert outcome.exit_code == 6
    assert json.loads(outcome.stdout)["error"]["kind"] == "command_line"
    assert "--version" not in outcome.stderr


def test_missing_package_is_exit_code_4(headrace: CommandLine, tmp_path: Path) -> None:
    outcome = headrace("run", str(tmp_path / "none.yaml"))
    assert outcome.exit_code == 4
    assert_snapshot("package_not_found", outcome.stderr.replace(str(tmp_path), "FOLDER"))


def test_a_defect_shows_no_traceback_and_saves_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise ZeroDivisionError("division by zero")

    assert run_app(broken, []) == 1
    error = capsys.readouterr().err
    (saved,) = tmp_path.iterdir()
    assert "ZeroDivisionError" in saved.read_text() and "Traceback" in saved.read_text()
    assert_snapshot("internal_error", error.replace(str(saved), "FILE"))


def test_ctrl_c_outside_a_run_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted = typer.Typer()

    @interrupted.command()
    def wait() -> None:
        raise KeyboardInterrupt

    assert run_app(interrupted, []) == 3
    assert capsys.readouterr().err == "error: stopped by Ctrl-C\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = "from headrace.cli import main; main(['schema'])"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=4096, bufsize=0
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(HANG_SECONDS)


def test_help_imports_nothing_heavy() -> None:
    heavy = ["duckdb", "pydantic", "rich", "yaml", "headrace.model", "headrace.core", "headrace._native"]
    script = (
        "import sys\n"
        "from headrace.cli.app import app\n"
        "from headrace.cli.failures import run_app\n"
        "run_app(app, ['--help'])\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
