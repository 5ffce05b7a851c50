"""What the control flow of packages costs: `python -m bench.packages [--turns 100000]` prints figures, checks nothing.

Every figure but those of the start is a slope between two sizes, in processes of their own: the start of the
interpreter does not count there. Modules are read compiled, as an installed package has them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

HEAD = """\
headrace: 1
package: bench
variables: {n: {type: integer, value: 0}}
connections: {warehouse: {type: duckdb, path: w.duckdb}}
tasks:
"""
REPETITIONS = 5


@dataclass(frozen=True)
class Measured:
    """One run: wall time, and the most memory that was resident."""

    seconds: float
    start_seconds: float  # from the start of the process to that of the first task
    peak_bytes: int


def run(tasks: str) -> Measured:
    """Runs a package with these tasks in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "package.yaml").write_text(HEAD + tasks, encoding="utf-8")
        command = [sys.executable, "-m", "headrace", "run", "package.yaml", "--json"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before, began = time.monotonic(), time.time()
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - before
        if process.returncode != 0:
            raise SystemExit(f"a package of the bench has failed with exit code {process.returncode}")
        return Measured(seconds, _first_task(Path(folder)) - began, _peak_bytes(usage))


def _first_task(folder: Path) -> float:
    (log,) = folder.glob(".headrace/runs/*/events.jsonl")
    with log.open(encoding="utf-8") as lines:
        events = map(json.loads, lines)
        return next(
            datetime.fromisoformat(event["at"]).timestamp() for event in events if event["event"] == "task_started"
        )


def _peak_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * 1024


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]


def chain(kind: str, count: int) -> str:
    """So many tasks, one behind the other."""
    lines = []
    for number in range(count):
        after = f"after: t{number - 1}, " if number else ""
        lines.append(f"  t{number}: {{{after}{kind}}}")
    return "\n".join(lines) + "\n"


def beside(kind: str, count: int) -> str:
    """So many tasks side by side."""
    return "\n".join(f"  t{number}: {{{kind}}}" for number in range(count)) + "\n"


def turns(count: int) -> str:
    """A loop of so many turns."""
    return (
        "  loop: {for: {initial: {n: '0'}, while: n < "
        + str(count)
        + ", step: {n: n + 1}, tasks: {t: {set: {n: n}}}}}\n"
    )


SET = "set: {n: '1'}"
SQL = "sql: {connection: warehouse, text: 'SELECT 1'}"
INSERT = "sql: {connection: warehouse, text: 'CREATE TABLE IF NOT EXISTS t (n int)'}"


def slope(few: str, many: str, difference: int) -> float:
    """Seconds for each of what `many` has more, measured alternately."""
    return median([(run(many).seconds - run(few).seconds) / difference for _ in range(REPETITIONS)])


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000, help="of the long loop (10,000)")
    options = parser.parse_args()
    run(chain(SET, 1))  # compiles what was not
    starts = [run(chain(SET, 100)) for _ in range(REPETITIONS)]
    print(f"a package of 100 tasks, to the first task  {median([one.start_seconds for one in starts]):8.2f} s")
    print(f"a package of 100 tasks, from start to end  {median([one.seconds for one in starts]):8.2f} s")
    for what, kind, count in (("set", SET, 500), ("sql that reads", SQL, 200), ("sql that writes", INSERT, 200)):
        each = slope(chain(kind, 1), chain(kind, 1 + count), count)
        print(f"one more task: {what:28}{each * 1e3:8.2f} ms")
    many = median([run(beside(SQL, 1000)).seconds for _ in range(REPETITIONS)])
    print(f"1,000 tasks side by side                   {many:8.2f} s")
    few, long = run(turns(options.turns // 10)), run(turns(options.turns))
    each = (long.seconds - few.seconds) / (options.turns - options.turns // 10)
    print(f"one more turn of a loop                    {each * 1e3:8.2f} ms")
    growth = (long.peak_bytes - few.peak_bytes) / 1e6
    print(f"{options.turns:,} turns beside a tenth of them      {growth:+8.1f} MB")


if __name__ == "__main__":
    main()
