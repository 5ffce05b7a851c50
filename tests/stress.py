"""Runs a command with little CPU: no test may depend on how fast the machine is.

    python -m tests.stress [--seed N] -- COMMAND...

Two busy loops for each core take most of the CPU. Besides, processes below the command are stopped at random
(`SIGSTOP`) and go on after 50 ms. The exit code is that of the command. `make stress` runs the tests so.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STOP_SECONDS = 0.05
# The longest time between two stops.
PAUSE_SECONDS = 0.1
BUSY_LOOPS_PER_CORE = 2
# Set: the folder with a file for each process that a test has stopped.
FOLDER_VARIABLE = "HEADRACE_STRESS_FOLDER"
_LOCK = "lock"


def stop(process_id: int) -> None:
    """Sends `SIGSTOP` for a test. Under stress, nobody but `go_on` continues the process from now on."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        os.kill(process_id, signal.SIGSTOP)
        return
    with _locked(Path(folder)):
        (Path(folder) / str(process_id)).touch()
        os.kill(process_id, signal.SIGSTOP)


def go_on(process_id: int) -> None:
    """Sends `SIGCONT` to a process that `stop` has stopped."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is not None:
        with _locked(Path(folder)):
            (Path(folder) / str(process_id)).unlink(missing_ok=True)
    os.kill(process_id, signal.SIGCONT)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state_and_parent(process_id: str) -> tuple[str, int] | None:
    try:
        fields = Path("/proc", process_id, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def _below(root: int) -> list[int]:
    """The processes below this one that run or wait."""
    parents: dict[int, int] = {}
    running: list[int] = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        if (found := _state_and_parent(name)) is not None:
            parents[int(name)] = found[1]
            if found[0] in "RSD":
                running.append(int(name))

    def is_below(process_id: int) -> bool:
        while process_id in parents:
            process_id = parents[process_id]
            if process_id == root:
                return True
        return False

    return [process_id for process_id in running if is_below(process_id)]


def _stop_one(root: int, folder: Path, chance: random.Random) -> None:
    processes = _below(root)
    if not processes:
        return
    process_id = chance.choice(processes)
    with _locked(folder):
        if (folder / str(process_id)).exists():
            return
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGSTOP)
    time.sleep(STOP_SECONDS)
    with _locked(folder):
        if not (folder / str(process_id)).exists():
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGCONT)


def run(command: list[str], seed: int) -> int:
    """Runs the command under stress; its exit code."""
    chance = random.Random(seed)
    cores = len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS_PER_CORE * cores)]
    stops = 0
    try:
        with tempfile.TemporaryDirectory(prefix="headrace-stress-") as folder:
            # Servers of the tests run under another account, and are not asked to enter it.
            environment = {**os.environ, FOLDER_VARIABLE: folder}
            with subprocess.Popen(command, env=environment) as process:
                while process.poll() is None:
                    _stop_one(process.pid, Path(folder), chance)
                    stops += 1
                    time.sleep(chance.random() * PAUSE_SECONDS)
                print(f"stress: {len(busy)} busy loops, {stops} stops of {STOP_SECONDS} s, seed {seed}", flush=True)
                return process.returncode
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()


def main() -> None:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    sys.exit(run(options.command, options.seed))


if __name__ == "__main__":
    main()
