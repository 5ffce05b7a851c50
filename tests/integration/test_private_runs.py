"""What a run leaves is for its owner alone: no other user of the machine may read it, and no secret is in it, not even
when the program itself fails.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import GOOD_ROWS, PACKAGE, Project

CANARY = "c4n4ry-S3cret-pw"
TASKS = """
  print:
    process: {command: [sh, -c, "echo out; echo err >&2"]}
    after: {load_orders: completion}
  turns:
    foreach:
      item: source
      files: {connection: inbox, pattern: "*.tbl.*"}
      tasks:
        say: {process: {command: [echo, "${source}"]}}
"""


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    """Nothing but Headrace itself keeps others out."""
    before = os.umask(0)
    yield
    os.umask(before)


def headrace(project: Project, *arguments: str) -> int:
    return project.command([sys.executable, "-m", "headrace", *arguments]).exit_code


def open_to_others(folder: Path) -> list[str]:
    """What is below a folder, and others have any right to."""
    paths = [path for path in folder.rglob("*") if not path.is_symlink()]
    assert len(paths) > 8
    expected = {path: 0o700 if path.is_dir() else 0o600 for path in paths}
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    return [f"{path.relative_to(folder)}: {modes[path]:o}" for path in paths if modes[path] != expected[path]]


def test_run_folders_and_rejects(project: Project) -> None:
    """A run with rejects, programs and turns, one that fails and is resumed, a replay, reports, exports."""
    project.package(PACKAGE + TASKS)
    project.file("orders.tbl.1", GOOD_ROWS)
    project.file("orders.tbl.2", "x|1.00|||\n")
    assert project.run("--trust", limit=1).exit_code == 0
    (run,) = project.runs.iterdir()
    assert headrace(project, "report", run.name, "--runs-dir", "runs") == 0
    for option, name in (("--out", "rejects.jsonl"), ("--out", "rejects.parquet"), ("--copy", "repaired.tbl")):
        assert headrace(project, "rejects", run.name, "--runs-dir", "runs", option, name) == 0
        assert stat.S_IMODE((project.folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((project.folder / "repaired.tbl.numbers").stat().st_mode) == 0o600
    (project.folder / "repaired.tbl").write_text("101|1.00|2024-02-29||\n")
    assert headrace(project, "replay", run.name, "repaired.tbl", "--runs-dir", "runs") == 0
    assert project.run("--trust", limit=0).exit_code == 1
    assert project.resume().exit_code == 1
    names = {path.name for path in project.runs.rglob("*")}
    assert {"rejects", "processes", "loops", "report.html", "journal.jsonl", "metrics.jsonl", "attempt"} <= names
    assert open_to_others(project.runs) == []


def test_a_report_that_somebody_has_named_is_theirs_to_share(project: Project) -> None:
    project.file("orders.tbl.1", GOOD_ROWS)
    assert project.run().exit_code == 0
    assert headrace(project, "report", "--runs-dir", "runs", "--output", "shared.html") == 0
    assert stat.S_IMODE((project.folder / "shared.html").stat().st_mode) == 0o666


@pytest.mark.parametrize(
    "broken",
    ["headrace.model.load.PackageWalk", "headrace.run.runner.Journal", "headrace.cli.run.render_summary"],
    ids=["while the package is loaded", "in the run", "behind the run"],
)
@pytest.mark.parametrize("json_option", [[], ["--json"]], ids=["text", "json"])
def test_a_defect_of_headrace_shows_no_secret(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: str, json_option: list[str]
) -> None:
    """Neither on the screen nor in the file with its traceback."""

    def fail(*arguments: Any, **named: Any) -> None:
        try:
            raise KeyError(os.environ["FOLDER"])
        except KeyError as error:
            raise ValueError(f"the folder {os.environ['FOLDER']} is in a message", [os.environ["FOLDER"]]) from error

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(broken, fail)
    project.package(PACKAGE.replace("path: inbox}", 'path: "${env:FOLDER}"}'))
    folder = project.folder / CANARY
    folder.mkdir()
    (folder / "orders.tbl.1").write_text(GOOD_ROWS)
    command = [sys.executable, "-m", "headrace", "run", "package.yaml", "--runs-dir", "runs", *json_option]
    ended = project.command(command, {"FOLDER": str(folder)})
    if json_option and broken.endswith("render_summary"):
        return  # nothing is rendered
    assert ended.exit_code == 1 and "internal: ValueError" in ended.stderr, ended.stderr
    saved = [*project.folder.rglob("headrace-internal-*"), *(tmp_path / "temporary").glob("headrace-internal-*")]
    assert len(saved) == 1 and "Traceback" in saved[0].read_text() and "ValueError" in saved[0].read_text()
    assert stat.S_IMODE(saved[0].stat().st_mode) == 0o600
    written = [path for path in project.folder.rglob("*") if path.is_file() and path.parent != folder]
    texts = [path.read_text(errors="replace") for path in (*written, *saved)]
    assert [text for text in (*texts, ended.stdout, ended.stderr) if str(folder) in text] == []
