"""Activates one mutation after another, and runs only the tests that reach it, until one fails."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Any

from tests.mutations.links import Test, read_links
from tests.mutations.mutation_set import Mutation
from tests.mutations.processes import PYTEST, run

# Seconds of tests that run together: a start of pytest costs some itself, and most mutations are killed by the first.
_PYTEST_STAGES = (30.0, 150.0)
_CARGO_STAGE = 10.0
TIME_LIMIT = "time limit"


@dataclass
class Verdict:
    """What became of a mutation. `left_out`: tests that reach it, but there was no time for them."""

    number: int
    verdict: str = "survived"
    by: str | None = None
    tests: int = 0
    left_out: int = 0
    seconds: float = 0.0


@dataclass
class Runner:
    """Runs the tests of a tree. `most_seconds`: of pytest for one mutation, counted as the tests took when linked.

    `first`: by number of a mutation, the test that is tried before the others, because it has caught it elsewhere.
    """

    tree: Path
    scratch: Path
    most_seconds: float
    first: Mapping[int, str] = field(default_factory=dict)
    # Tests that have failed without any mutation.
    unreliable: set[str] = field(default_factory=set)

    def all(self, mutations: Sequence[Mutation], gone: Sequence[Mutation], output: Path) -> None:
        """Appends the verdict on each mutation to a file, except on those that it has already."""
        tests = read_links(self.tree)
        known = {item["number"] for item in read_results(output)}
        for mutation in mutations:
            if mutation.number in known:
                continue
            started = time.monotonic()
            if mutation in gone:
                verdict = Verdict(mutation.number, "gone")
            else:
                verdict = self.one(mutation.number, [test for test in tests if mutation.number in test.hits])
            verdict.seconds = round(time.monotonic() - started, 1)
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")
            print(f"{mutation.number:3} {mutation.area}: {asdict(verdict)}", flush=True)

    def one(self, number: int, tests: Sequence[Test]) -> Verdict:
        """The verdict on a mutation that these tests reach."""
        verdict = Verdict(number, "survived" if tests else "not covered")
        for stage in stages(tests, self.most_seconds, self.first.get(number)):
            killer = self._killer(number, stage)
            verdict.tests += len(stage)
            if killer is not None:
                verdict.verdict, verdict.by = "killed", killer
                return verdict
        verdict.left_out = len(tests) - verdict.tests
        return verdict

    def _killer(self, number: int, stage: Sequence[Test]) -> str | None:
        """The test that fails because of the mutation: without it it passes, and with it it fails again."""
        while left := [test for test in stage if test.name not in self.unreliable]:
            failed = self._failed(left, number)
            if not failed:
                return None
            if failed == [TIME_LIMIT]:
                return TIME_LIMIT
            again = [test for test in left if test.name in failed] or left
            if not self._failed(again, None) and (more := self._failed(again, number)):
                return more[0]
            if again is left:
                raise RuntimeError(f"tests fail without any mutation, and do not say which: see {self._log}")
            self.unreliable.update(failed)
            print(f"    not reliable, left out from here on: {', '.join(failed)}", flush=True)
        return None

    @property
    def _log(self) -> Path:
        return self.tree / "run.log"

    def _failed(self, tests: Sequence[Test], number: int | None) -> list[str]:
        """The tests that fail first; one without a name if none is blamed for a failure of all."""
        self._log.write_bytes(b"")
        variables = {} if number is None else {"HEADRACE_MUTANT": str(number)}
        names = [test.name for test in tests]
        limit = 60 + 10 * max(test.seconds for test in tests)
        seconds = limit + 3 * _seconds(tests)
        first = tests[0]
        if first.program is not None and first.folder is not None:
            command = [first.program, "--exact", "--test-threads=2", *names]
            ended = run(command, Path(first.folder), variables, seconds=seconds, tree=self.tree, output=self._log)
            failed = re.findall(r"^test (\S+)(?: - .*)? \.\.\. FAILED$", self._read_log(), re.MULTILINE)
        else:
            listed, failures = self.tree / "run.tests", self.tree / "run.failed"
            listed.write_text("".join(f"{name}\n" for name in names))
            failures.write_text("")
            basetemp = self.scratch / "run"
            shutil.rmtree(basetemp, ignore_errors=True)
            processes = "4" if _seconds(tests) > 10 else "0" if len(tests) == 1 else "2"
            options = ["-x", "-n", processes, "--dist", "loadfile", f"--basetemp={basetemp}"]
            command = [*PYTEST, *options, "-o", f"faulthandler_timeout={limit:.0f}", f"@{listed}"]
            variables["HEADRACE_MUTANT_FAILED"] = str(failures)
            ended = run(command, self.tree, variables, seconds=seconds, output=self._log)
            failed = [*failures.read_text().splitlines(), *re.findall(r"not found: (.*)", self._read_log())]
        if ended is None:
            return [TIME_LIMIT]
        return [] if ended == 0 else [name for name in failed if name in names] or ["all"]

    def _read_log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")


def stages(tests: Sequence[Test], most_seconds: float, first: str | None = None) -> Iterator[list[Test]]:
    """The tests in groups that run together: `first`, each program of cargo, then those of pytest that fit the time."""
    yield from ([test] for test in tests if test.name == first)
    tests = [test for test in tests if test.name != first]
    of_cargo = sorted((test for test in tests if test.program), key=lambda test: test.program or "")
    programs = (list(own) for _, own in groupby(of_cargo, key=lambda test: test.program))
    yield from sorted((stage for own in programs for stage in _cut(own, repeat(_CARGO_STAGE))), key=_seconds)
    seconds, fitting = 0.0, list[Test]()
    for test in tests:
        if test.program is None and seconds + test.seconds <= most_seconds:
            seconds += test.seconds
            fitting.append(test)
    yield from _cut(fitting, chain(_PYTEST_STAGES, repeat(float("inf"))))


def read_catchers(path: Path | None) -> dict[int, str]:
    """By number of a mutation, the test that caught it according to a file of results."""
    results = read_results(path) if path is not None else []
    return {item["number"]: item["by"] for item in results if item["by"] not in (None, TIME_LIMIT)}


def read_results(path: Path) -> list[dict[str, Any]]:
    """The verdicts in a file; none if it is not there yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _cut(tests: Sequence[Test], limits: Iterator[float]) -> Iterator[list[Test]]:
    stage, seconds, limit = list[Test](), 0.0, next(limits)
    for test in tests:
        if stage and seconds + test.seconds > limit:
            yield stage
            stage, seconds, limit = [], 0.0, next(limits)
        stage.append(test)
        seconds += test.seconds
    if stage:
        yield stage


def _seconds(tests: Sequence[Test]) -> float:
    return sum(test.seconds for test in tests)
