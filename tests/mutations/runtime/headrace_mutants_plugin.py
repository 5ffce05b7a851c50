"""Tells which mutations each test of pytest reaches, and which tests fail. `tree` copies it beside the product.

`HEADRACE_MUTANT_LINKS` names a folder: each process writes there what its tests reach, as lines of JSON.
`HEADRACE_MUTANT_FAILED` names a file for the tests that fail.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_BYTES = 4096
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
# Only workers have tests. The variable is taken away there, so that a test that runs pytest does not write into the
# same files.
_LINKS = os.environ.pop("HEADRACE_MUTANT_LINKS", "") if _WORKER else ""
_FAILED = os.environ.get("HEADRACE_MUTANT_FAILED", "")
if _LINKS:
    _HITS = Path(_LINKS) / f"hits-{_WORKER}"
    _HITS.write_bytes(bytes(_BYTES))
    # Before anything reads it, and before `tests/integration/starts.py` copies the variables.
    os.environ["HEADRACE_MUTANT_HITS"] = str(_HITS)
    HITS = importlib.import_module("headrace_mutants").HITS

# What fixtures of wider scope have reached, which all tests depend on that use them.
_of_fixtures: defaultdict[Any, set[int]] = defaultdict(set)
# Those that are being set up, around them the test.
_around: list[set[int]] = [set()]
_failed: set[str] = set()


def _take() -> None:
    hits = HITS[:]
    if any(hits):
        HITS[:] = bytes(_BYTES)
        for reached in _around:
            reached.update(number for number, byte in enumerate(hits) if byte)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, object, object]:
    """Keeps apart what a fixture of wider scope reaches."""
    if not _LINKS or fixturedef.scope == "function":
        return (yield)
    _take()
    _around.append(_of_fixtures[fixturedef])
    try:
        return (yield)
    finally:
        _take()
        _around.pop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Writes what a test has reached while it was set up, ran and was torn down."""
    if not _LINKS:
        return (yield)
    HITS[:] = bytes(_BYTES)
    _around[:] = [set()]
    started = time.monotonic()
    try:
        return (yield)
    finally:
        _take()
        reached = _around[0]
        names = getattr(item, "_fixtureinfo", None)
        for definitions in names.name2fixturedefs.values() if names else ():
            for definition in definitions:
                reached |= _of_fixtures.get(definition, set())
        line = {"test": item.nodeid, "seconds": round(time.monotonic() - started, 3), "hits": sorted(reached)}
        with (Path(_LINKS) / f"links-{_WORKER}.jsonl").open("a") as file:
            file.write(json.dumps({**line, "failed": item.nodeid in _failed}) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes a failure; also that of a test whose process has died."""
    if report.failed:
        _failed.add(report.nodeid)
        if _FAILED and not _WORKER:
            with Path(_FAILED).open("a") as file:
                file.write(report.nodeid + "\n")
