"""Runs tests so that a mutation can do no harm: with limits of time and memory, and nothing is left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.mutations.tree import build_environment

PYTEST = ["python", "-m", "pytest", "--quiet", "--no-header", "-p", "no:cacheprovider", "--no-loadscope-reorder"]
# No test of cargo needs a tenth of it.
CARGO_SECONDS = 600.0
# Of each process. Nothing that is tested needs it.
_MOST_BYTES = 10 << 30
_MARK = "HEADRACE_MUTANT_RUN"


def run(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    seconds: float,
    tree: Path | None = None,
    output: Path | None = None,
) -> int | None:
    """How a command ended; None if it had to be killed because its time was up. `tree`: where `folder` is in."""
    mark = uuid.uuid4().hex
    paths = {"PYTHONPATH": "", "PYTEST_PLUGINS": "headrace_mutants_plugin", _MARK: mark}
    # The inputs of hypothesis are the same each time.
    environment = {**build_environment(tree or folder), **paths, "CI": "1", **variables}
    with open(output or os.devnull, "ab") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            preexec_fn=_limit,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also the processes that a test has left behind: all of them have inherited the mark.
            _kill(mark)
            process.wait()


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    # When memory runs out, Linux kills what runs here and nothing else.
    Path("/proc/self/oom_score_adj").write_text("1000")


def _kill(mark: str) -> None:
    wanted = f"{_MARK}={mark}".encode()
    while True:
        found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _has(path, wanted)]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _has(process: Path, wanted: bytes) -> bool:
    try:
        # A process that has ended, but was not waited for, has no variables any more.
        return wanted in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
