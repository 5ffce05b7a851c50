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
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# It ends a program that hangs: the longest takes less than a minute.
LIMIT_SECONDS = 1200


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
    """Runs programs, and ends those that still run when it is left."""

    def __init__(self) -> None:
        self._running: dict[Program, subprocess.Popen[str]] = {}

    def run(self, program: Program) -> tuple[bool, str]:
        """Whether it passed, and what it printed. It is the head of a process group, so that it ends with its own."""
        command = [str(ROOT / ".ci" / "test-program"), str(program.executable), "--quiet"]
        process = subprocess.Popen(
            command,
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._running[program] = process
        try:
            output, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._end(process)
            output = process.communicate()[0] + f"\nended after {LIMIT_SECONDS} s\n"
        del self._running[program]
        return process.returncode == 0, output

    def end(self) -> None:
        """Ends what still runs."""
        for process in list(self._running.values()):
            self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """The exit code."""
    if not arguments:
        print(__doc__)
        return 2
    compiled = subprocess.run(
        [*arguments, "--no-run", "--message-format", "json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if compiled.returncode:
        return compiled.returncode
    found = programs(compiled.stdout)
    if not found:
        print("error: cargo named no test program", file=sys.stderr)
        return 1
    failed = []
    runner = Runner()
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            started = time.monotonic()
            tasks = {pool.submit(runner.run, program): program for program in found}
            for task in as_completed(tasks):
                passed, output = task.result()
                print(f"{tasks[task].name} (ended at {time.monotonic() - started:.0f} s)\n{output.strip()}", flush=True)
                if not passed:
                    failed.append(tasks[task].name)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        runner.end()
        raise
    if failed:
        print(f"\nerror: failed: {', '.join(sorted(failed))}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
