"""Runs the test programs of cargo, as many at a time as there are cores: cargo runs them one after the other.

    python -m tests.cargo_programs cargo test --workspace --lib --tests

The output of a program is printed when it ends. Exits with 1 if one failed or took longer than LIMIT_SECONDS.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# It ends a program that hangs; the longest takes a minute on two cores.
LIMIT_SECONDS = 900


@dataclass(frozen=True)
class Program:
    """A test program, and the folder of its crate, in which cargo would run it."""

    executable: Path
    folder: Path

    @property
    def name(self) -> str:
        """Crate and program, for instance `engine/flow`."""
        return f"{self.folder.name}/{self.executable.name.rpartition('-')[0]}"


def programs(output: str) -> list[Program]:
    """The test programs that cargo names on its lines of JSON, the largest first: they run longest."""
    found = []
    for line in output.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            found.append(Program(Path(message["executable"]), Path(message["manifest_path"]).parent))
    return sorted(found, key=lambda program: program.executable.stat().st_size, reverse=True)


class Runner:
    """Runs programs; each leads a process group, so that its children end with it."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._limit_seconds = limit_seconds
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._has_ended = False

    def run(self, program: Program) -> tuple[bool, str]:
        """Whether it passed, and what it printed."""
        with self._lock:
            if self._has_ended:
                return False, "not run\n"
            process = subprocess.Popen(
                [str(ROOT / ".ci" / "test-program"), str(program.executable), "--quiet"],
                cwd=program.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
        try:
            output, _ = process.communicate(timeout=self._limit_seconds)
            passed = process.returncode == 0
        except subprocess.TimeoutExpired:
            _end(process)
            output, passed = f"{process.communicate()[0]}\nended after {self._limit_seconds} s\n", False
        with self._lock:
            self._running.remove(process)
        return passed, output

    def end(self) -> None:
        """Ends what runs, and begins nothing more."""
        with self._lock:
            self._has_ended = True
            for process in self._running:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_all(found: Sequence[Program], runner: Runner) -> list[str]:
    """The names of those that failed. An exception, such as that of a signal, ends all of them."""
    started = time.monotonic()
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            tasks = {pool.submit(runner.run, program): program for program in found}
            for task in as_completed(tasks):
                passed, output = task.result()
                print(f"{tasks[task].name} (ended at {time.monotonic() - started:.0f} s)\n{output.strip()}", flush=True)
                if not passed:
                    failed.append(tasks[task].name)
        except BaseException:
            runner.end()
            raise
    return sorted(failed)


def main(arguments: list[str]) -> int:
    """The exit code."""
    if not arguments:
        print(__doc__)
        return 2
    command = [*arguments, "--no-run", "--message-format", "json-render-diagnostics"]
    compiled = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if compiled.returncode:
        return compiled.returncode
    found = programs(compiled.stdout)
    if not found:
        print("error: cargo named no test program", file=sys.stderr)
        return 1
    # The programs are in process groups of their own: without a handler they would outlive this one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    failed = run_all(found, Runner())
    if failed:
        print(f"\nerror: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
