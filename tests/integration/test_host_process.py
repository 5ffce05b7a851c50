"""What Headrace sets of the process that it runs in: as a library nothing, as the command line its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.driver import GOOD_ROWS, Project
from tests.patience import HANG_SECONDS

# Of glibc's malloc.h.
M_MMAP_THRESHOLD = -3
AS_LIBRARY = """
import gc, os, signal
import headrace

def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask

def looks():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return handlers, gc.get_threshold(), os.getcwd(), dict(os.environ), umask()

before = looks()
assert headrace.run("package.yaml", runs_dir="runs").status == "success"
assert looks() == before
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `mallopt.c`."""
    library = tmp_path_factory.mktemp("library") / "mallopt.so"
    source = Path(__file__).with_name("mallopt.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (["-c", AS_LIBRARY], set()),
        (["-m", "headrace", "run", "package.yaml", "--runs-dir", "runs"], {M_MMAP_THRESHOLD}),
        (["-m", "headrace", "infer", "inbox/orders.tbl.1"], {M_MMAP_THRESHOLD}),
    ],
    ids=["library", "run", "infer"],
)
def test_the_allocator(project: Project, library: Path, tmp_path: Path, command: list[str], changed: set[int]) -> None:
    """Memory of large rows goes back at once, but what a program does with its own memory is its own affair."""
    project.file("orders.tbl.1", GOOD_ROWS)
    log = tmp_path / "mallopt.log"
    log.touch()
    variables = {**os.environ, "LD_PRELOAD": str(library), "MALLOPT_LOG": str(log)}
    done = subprocess.run(
        [sys.executable, *command], cwd=project.folder, env=variables, capture_output=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr.decode()
    assert {int(line.split()[0]) for line in log.read_text().splitlines()} == changed
