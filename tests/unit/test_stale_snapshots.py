"""Snapshots that no test asks for are found after a module whose tests have all run, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshots import COLLECT_VARIABLE, ROOT, Snapshot

_CONFTEST = """
from pathlib import Path
from tests import snapshots
from tests.stale_snapshots import *
snapshots.PENDING = Path(__file__).parent / "pending"
"""
_MODULE = """
import pytest
from tests.snapshots import assert_snapshot

@pytest.mark.parametrize("name", ["a", "b"])
def test_named(name): assert_snapshot(name, name)

def test_c(): assert_snapshot("c", "c")
"""


def run(
    folder: Path, *arguments: str, module: str = _MODULE, collects: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a module whose topic has a, b, c and one that no test asks for."""
    (folder / "test_some.py").write_text(module)
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in ("a", "b", "c", "stale"):
        Snapshot(folder / "snapshots" / "some.txt", name).store(f"{name}\n")
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *(arguments or ["."])]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, COLLECT_VARIABLE: "1" if collects else ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def proposed(folder: Path) -> int:
    return len(list((folder / "pending").glob("*.json")))


@pytest.mark.parametrize("arguments", [[], ["-n", "2", "--dist", "loadfile"]])
def test_a_stale_snapshot_fails_the_last_test(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 1
    assert "no test asks for these snapshots:" in done.stdout
    assert "  stale in " in done.stdout and "  a in " not in done.stdout
    assert proposed(tmp_path) == 1


def test_a_stale_snapshot_is_only_proposed_while_changes_are_collected(tmp_path: Path) -> None:
    done = run(tmp_path, collects=True)
    assert (done.returncode, proposed(tmp_path)) == (0, 1), done.stdout


@pytest.mark.parametrize(
    "arguments", [["-k", "test_c"], ["test_some.py::test_named"], ["--deselect", "test_some.py::test_c"]]
)
def test_tests_that_were_not_asked_for_may_ask(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, proposed(tmp_path)) == (0, 0), done.stdout


@pytest.mark.parametrize("body", ["pytest.skip('not here')", "pytest.xfail('known')", "assert False"])
def test_tests_that_did_not_end_may_ask(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, module=f"{_MODULE}\ndef test_unable(): {body}\n")
    assert proposed(tmp_path) == 0, done.stdout


def test_tests_of_another_process_may_ask(tmp_path: Path) -> None:
    """Each process has at most two of the three tests."""
    done = run(tmp_path, "-n", "2", "--dist", "load")
    assert (done.returncode, proposed(tmp_path)) == (0, 0), done.stdout
