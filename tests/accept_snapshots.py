"""Show the changes of snapshots that tests have proposed, and accept them: `make snapshots`.

Failed tests have left their changes, so that nothing has to run again. `make snapshots TESTS="tests/cli -k infer"`
runs tests first and collects all their changes: no test stops at its first one. `ACCEPT=1` accepts without a question.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby

from tests import snapshots
from tests.snapshots import Change, shown_path


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: that of the tests if some failed, 1 if changes were not accepted."""
    parser = argparse.ArgumentParser(prog="python -m tests.accept_snapshots", description=__doc__, allow_abbrev=False)
    parser.add_argument("--accept", action="store_true", help="accept all changes without a question")
    own, tests = parser.parse_known_args(arguments)
    code = run(tests) if tests else 0
    changes = current_changes()
    show(changes)
    if not changes:
        print("no changes of snapshots")
        return code
    if not (own.accept or agreed(len(changes))):
        print(f"changes not accepted: {len(changes)}")
        return code or 1
    for change in changes:
        change.snapshot.store(change.text)
        snapshots.withdraw(change.snapshot)
    print(f"changes accepted: {len(changes)}")
    return code


def run(tests: Sequence[str]) -> int:
    """Run tests, given as arguments of pytest, and collect their changes. Forgets what was proposed before."""
    shutil.rmtree(snapshots.PENDING, ignore_errors=True)
    processes = os.environ.get("TEST_PROCESSES", "4")
    command = [sys.executable, "-m", "pytest", "--quiet", "-n", processes, "--dist", "loadfile", *tests]
    code = subprocess.run(command, env={**os.environ, snapshots.COLLECT_VARIABLE: "1"}).returncode
    if code:
        print(f"pytest ended with exit code {code}: changes of what did not run are missing here")
    return code


def current_changes() -> list[Change]:
    """What was proposed and is neither done nor outdated, because the stored text has changed since then."""
    changes = []
    for change in snapshots.proposed():
        stored = change.snapshot.stored()
        if stored == change.before:
            changes.append(change)
            continue
        snapshots.withdraw(change.snapshot)
        if stored != change.text:
            print(f"left out: {change.snapshot} has changed since its test ran; run it again")
    return changes


def show(changes: Sequence[Change]) -> None:
    for path, of_file in groupby(changes, key=lambda change: change.snapshot.path):
        print(f"==== {shown_path(path)}\n")
        for change in of_file:
            print(f"{change.snapshot.name or path.name} ({change.kind()})\n{change.difference()}\n")


def agreed(count: int) -> bool:
    """Ask for acceptance; without a terminal nobody can answer."""
    if not sys.stdin.isatty():
        print("hint: ACCEPT=1 accepts all changes without a question.\n")
        return False
    return input(f"Accept all changes ({count})? [y/N] ").strip().lower() in ("y", "yes")


if __name__ == "__main__":
    sys.exit(main())
