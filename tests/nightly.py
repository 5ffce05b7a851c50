"""Runs what takes too long for every change, in ten shards of six to thirteen minutes on two cores.

    python -m tests.nightly run            every shard that has not passed with this code; can be stopped and run again
    python -m tests.nightly run SHARD...   these shards, by name or number
    python -m tests.nightly ci             the shard whose turn it is (commit count modulo 10, or ROTATION=n), and one
                                           whose area has changed and that last passed over ten days ago
    python -m tests.nightly list           the shards, their areas and when each passed last

A shard that passes is written to docs/contributing/nightly.tsv: commit that file with the change.
"""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "contributing" / "nightly.tsv"
HEADER = "shard\tcommit\tdate\tseconds\n"
# A change in the area of a shard that last passed longer ago than this runs it.
STALE_DAYS = 10
# Names the shard that CI runs, to repeat what it did.
_ROTATION_VARIABLE = "ROTATION"


@dataclass(frozen=True)
class Shard:
    """What runs together. `areas`: the paths whose changes it is for. `commands`: run by a shell, from the root."""

    name: str
    proves: str
    areas: tuple[str, ...]
    commands: tuple[str, ...]


def _pytest(cases: str, *arguments: str, **variables: object) -> str:
    """A run of pytest with the environment that make prepares."""
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    return f"HEADRACE_CASES={cases} {settings} make --no-print-directory pytest ARGUMENTS='{' '.join(arguments)}'"


_SERVER_TESTS = ("python/headrace/targets", "crates/engine", "crates/wire", "tests/conformance", "tests/servers")
_COMMIT_CODE = ("python/headrace/run", "python/headrace/targets", "python/headrace/executors", "crates/engine/src")
_KILLS = '-k "test_killed or test_sessions_are_terminated or test_many"'

SHARDS = (
    Shard(
        "parser",
        "the whole tests of the parser: under AddressSanitizer, on aarch64 in an emulator, in the build that users get",
        ("crates/types", "crates/parse"),
        (
            ".ci/sanitize parse",
            ".ci/install-neon-tools",
            "make test-neon",
            "cargo test --release --locked --quiet -p headrace-parse --lib --tests",
        ),
    ),
    Shard(
        "engine",
        "the whole tests of the engine under AddressSanitizer",
        ("crates/engine", "crates/wire", "crates/transform"),
        (".ci/sanitize engine",),
    ),
    Shard(
        "fuzz-parser",
        "a quarter of an hour of CPU: parse_differential, convert_one",
        ("crates/types", "crates/parse", "fuzz"),
        ("make fuzz TARGET='parse_differential convert_one' SECONDS=225 JOBS=2",),
    ),
    Shard(
        "fuzz-flows",
        "a quarter of an hour of CPU: flow_differential, stream",
        ("crates/engine", "fuzz"),
        ("make fuzz TARGET='flow_differential stream' SECONDS=225 JOBS=2",),
    ),
    Shard(
        "fuzz-files",
        "a quarter of an hour of CPU: slicing, inflate",
        ("crates/engine/src/slices", "crates/engine/src/source", "fuzz"),
        ("make fuzz TARGET='slicing inflate' SECONDS=225 JOBS=2",),
    ),
    Shard(
        "fuzz-specifications",
        "a quarter of an hour of CPU: spec_json",
        ("crates/engine/src/spec", "crates/engine/src/spec.rs", "fuzz"),
        ("make fuzz TARGET=spec_json SECONDS=450 JOBS=2",),
    ),
    Shard(
        "every-case",
        "every version of the server and every instruction set",
        (*_SERVER_TESTS, "crates/parse"),
        (_pytest("others", "-m", '"not faults"'),),
    ),
    Shard(
        "faults",
        "every case of kills, cuts, dead servers and full disks",
        _COMMIT_CODE,
        (_pytest("others", "-m", "faults"),),
    ),
    Shard(
        "kills",
        "loads into both databases killed at many random moments, and with sessions terminated",
        _COMMIT_CODE,
        ("make soak KILLS=40 TERMINATIONS=12",),
    ),
    Shard(
        "release",
        "every method of the bench on tiny files, the demo as users build it, each limit made to happen once",
        ("bench", "Cargo.toml", "python/headrace/diagnose", "python/headrace/tpch", "tests/provoked", "crates/native"),
        ("make bench-smoke", "make demo", "make limits CASES=20"),
    ),
)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Passed:
    """When a shard passed last."""

    commit: str
    date: datetime.date
    seconds: int


def read_record(path: Path = RECORD) -> dict[str, Passed]:
    """The last time that each shard passed; nothing of one that never did."""
    found: dict[str, Passed] = {}
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        name, commit, date, seconds = line.split("\t")
        found[name] = Passed(commit, datetime.date.fromisoformat(date), int(seconds))
    return found


def write_record(found: dict[str, Passed], path: Path = RECORD) -> None:
    """Writes one line for each shard of today's table."""
    lines = [
        f"{shard.name}\t{passed.commit}\t{passed.date.isoformat()}\t{passed.seconds}\n"
        for shard in SHARDS
        if (passed := found.get(shard.name)) is not None
    ]
    path.write_text(HEADER + "".join(lines))


# The paths that have changed since a commit; None if this repository does not have the commit.
Changed = Callable[[str], list[str] | None]


def is_due(shard: Shard, passed: Passed | None, today: datetime.date, changed: Changed) -> bool:
    """Whether a shard must run because its own area has changed, and it last passed over ten days ago."""
    if passed is None or (today - passed.date).days <= STALE_DAYS:
        return False
    paths = changed(passed.commit)
    return paths is None or any(path == area or path.startswith(f"{area}/") for path in paths for area in shard.areas)


def is_current(passed: Passed | None, changed: Changed) -> bool:
    """Whether a shard has passed with the code of today: nothing but documents has changed since."""
    paths = changed(passed.commit) if passed is not None else None
    return paths is not None and all(path.startswith("docs/") or path.endswith(".md") for path in paths)


def _changed(commit: str) -> list[str] | None:
    try:
        return _git("diff", "--name-only", commit).splitlines()
    except subprocess.CalledProcessError:
        return None


def shards_of_ci(count: int, due: Iterable[str]) -> list[str]:
    """The shard whose turn it is, then the first other one that is due: one at most, CI has a time limit."""
    turn = SHARDS[count % len(SHARDS)].name
    return [turn, *[name for name in due if name != turn][:1]]


def _chosen_by_ci() -> list[str]:
    number = os.environ.get(_ROTATION_VARIABLE)
    if number is not None:
        if not number.isdecimal():
            sys.exit(f"error: {_ROTATION_VARIABLE} is {number!r}\n\nhint: It is a number, like the count of commits.")
        return [SHARDS[int(number) % len(SHARDS)].name]
    record = read_record()
    today = datetime.datetime.fromtimestamp(int(_git("log", "-1", "--format=%ct")), datetime.UTC).date()
    due = [shard.name for shard in SHARDS if is_due(shard, record.get(shard.name), today, _changed)]
    due.sort(key=lambda name: record[name].date)
    for shard in SHARDS:
        if shard.name not in record:
            print(f"NEVER PASSED: {shard.name} (make nightly SHARDS={shard.name})", flush=True)
    chosen = shards_of_ci(int(_git("rev-list", "--count", "HEAD")), due)
    for name in due:
        if name not in chosen:
            print(f"DUE, NOT RUN HERE: {name} (make nightly SHARDS={name})", flush=True)
    return chosen


def _run(names: list[str]) -> None:
    # What `make test` of this commit leaves out is among the others (tests/conftest.py).
    count = os.environ.get(_ROTATION_VARIABLE) or _git("rev-list", "--count", "HEAD")
    os.environ.setdefault("HEADRACE_ROTATION", count)
    by_name = {shard.name: shard for shard in SHARDS}
    for number, name in enumerate(names, start=1):
        began = time.monotonic()
        for command in by_name[name].commands:
            print(f"\n=== nightly shard {name} ({number} of {len(names)}): {command}", flush=True)
            ended = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, check=False)
            if ended.returncode != 0:
                sys.exit(f"\nerror: the nightly shard {name} failed\n\nhint: make nightly SHARDS={name}")
        seconds = round(time.monotonic() - began)
        print(f"=== nightly shard {name} passed in {seconds} s", flush=True)
        passed = Passed(_git("rev-parse", "--short=8", "HEAD"), datetime.datetime.now(datetime.UTC).date(), seconds)
        write_record({**read_record(), name: passed})


def _named(words: list[str]) -> list[str]:
    names = [shard.name for shard in SHARDS]
    chosen = [names[int(word)] if word.isdecimal() and int(word) < len(names) else word for word in words]
    if unknown := [word for word in chosen if word not in names]:
        sys.exit(f"error: there is no nightly shard {', '.join(unknown)}\n\nhint: The shards are {', '.join(names)}.")
    return chosen


def main(arguments: list[str]) -> None:
    """The command line; see the top of this file."""
    match arguments:
        case ["list"]:
            # A pipe that is closed early, as by `head`, ends it without a traceback.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            record = read_record()
            for number, shard in enumerate(SHARDS):
                passed = record.get(shard.name)
                last = f"{passed.date} at {passed.commit}, {passed.seconds} s" if passed else "never"
                print(f"{number} {shard.name}: {shard.proves}\n  areas: {', '.join(shard.areas)}\n  passed: {last}")
        case ["ci"]:
            _run(_chosen_by_ci())
        case ["run", *words]:
            record = read_record()
            _run(_named(words) or [shard.name for shard in SHARDS if not is_current(record.get(shard.name), _changed)])
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
