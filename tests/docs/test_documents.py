"""What the documents say is true: their commands are run, their links exist, the generated reference is current."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from headrace.cli.app import app
from headrace.cli.failures import run_app
from tests.docs.documents import ROOT, Block, blocks
from tests.docs.test_sessions import SESSIONS

PAGES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def commands(block: Block) -> list[list[str]]:
    """The `$ headrace` commands of a console block."""
    if block.language != "console":
        return []
    lines = [line.removeprefix("$ ") for line in block.text.replace("\\\n", " ").splitlines() if line.startswith("$ ")]
    return [shlex.split(line)[1:] for line in lines if line.startswith("headrace ")]


PAGES_WITH_COMMANDS = [
    page for page in PAGES if page not in SESSIONS and any(commands(block) for block in blocks(page))
]


def test_some_pages_have_commands() -> None:
    assert Path("docs/tutorial/first-load.md") in PAGES_WITH_COMMANDS


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=str)
def test_commands_of_a_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.file is not None:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        for arguments in commands(block):
            code = run_app(app, arguments)
            assert code == block.exit_code, f"headrace {shlex.join(arguments)}\n{capsys.readouterr().err}"


def test_the_pipes_of_a_page(tmp_path: Path) -> None:
    """Through a shell, as they stand there: the other test runs commands of Headrace only."""
    program = tmp_path / "bin" / "headrace"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m headrace "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    for block in blocks(Path("docs/how-to/read-compressed-files-and-pipes.md")):
        if block.file is not None:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        for line in block.text.splitlines() if block.language == "console" else []:
            command = ["bash", "-c", line.removeprefix("$ ")]
            ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, f"{line}\n{ended.stderr}"
    with duckdb.connect(str(tmp_path / "sensors.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT sensor, celsius::VARCHAR FROM readings").fetchall() == [("n1", "-3.250")]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()]
    assert not missing


@pytest.mark.parametrize("page", ["cli.md", "tasks.md", "events.md", "errors.md", "python.md"])
def test_a_generated_page_is_current(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = ROOT / "docs" / "reference" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate_reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(module)
    assert path.with_name(page).read_text(encoding="utf-8") == module.generated()[page], "run `make docs`"


def test_the_tutorial_says_how_to_accept_bad_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last step of the tutorial, which edits a file: rejects up to a limit."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(Path("docs/tutorial/first-load.md")):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        if "rejects:" in block.text and block.file is None:
            line = block.text
    package = tmp_path / "load.yaml"
    package.write_text(package.read_text().replace("      sources:\n", f"{line}      sources:\n"))
    assert run_app(app, ["run", "load.yaml"]) == 0
    assert re.search(r"orders +7 +2 +5 +1 +4", capsys.readouterr().out)


def test_the_packages_of_the_reference_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted((ROOT / "docs" / "reference" / "examples").glob("*.yaml")):
        assert run_app(app, ["check", str(path)]) == 0, capsys.readouterr().err


def test_the_program_of_the_python_reference_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.csv").write_text("1\n2\n")
    first = next(block for block in blocks(Path("docs/reference/python.md")) if block.language == "python")
    names: dict[str, object] = {}
    exec(first.text, names)
    assert names["result"].rows_loaded == 2  # type: ignore[attr-defined]
    assert (tmp_path / "inbox" / "done" / "a.csv").exists()
