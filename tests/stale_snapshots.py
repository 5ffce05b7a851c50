"""A pytest plugin that finds stale snapshots: those that no test asks for any more.

A module is looked at after its last test, if all its tests were collected, ran in this process and passed. If some
were deselected, skipped or failed, they may be the ones that ask. Stale snapshots fail the last test of the module
and are proposed for removal; while `make snapshots` collects changes they are only proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.snapshots import ASKED, Change, Snapshot, is_collecting, read_topic, topic_of

_passed: set[str] = set()
_with_deselected: set[Path] = set()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _with_deselected.update(item.path for item in items)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid)


@pytest.fixture(scope="module", autouse=True)
def stale_snapshots(request: pytest.FixtureRequest) -> Iterator[None]:
    """Look for stale snapshots after the last test of each module."""
    yield
    if not _all_passed(request):
        return
    topic = topic_of(request.path)
    stored = {Snapshot(topic, name): text for name, text in read_topic(topic).items()}
    stale = [snapshot for snapshot in stored if snapshot not in ASKED]
    for snapshot in stale:
        Change(snapshot, stored[snapshot], None).propose()
    if stale and not is_collecting():
        lines = "\n".join(f"  {snapshot}" for snapshot in stale)
        hint = "hint: `make snapshots` shows them and removes them."
        pytest.fail(f"no test asks for these snapshots:\n{lines}\n\n{hint}", pytrace=False)


def _all_passed(request: pytest.FixtureRequest) -> bool:
    """Whether all tests of the module have passed; where only some were asked for, that is not known."""
    config = request.config
    are_all_collected = not config.getoption("lf", False) and not any("::" in argument for argument in config.args)
    own = {item.nodeid for item in request.session.items if item.path == request.path}
    return are_all_collected and request.path not in _with_deselected and own <= _passed
