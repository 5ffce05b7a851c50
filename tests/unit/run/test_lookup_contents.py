"""What lookups hold is remembered while nothing is committed, and held to behind that."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import LedgerError
from headrace.run.folder import RunFolder
from headrace.run.lookup_contents import LookupContents

BEFORE = {"keyed": "00000000000000ab", "colored": "00000000000000cd"}
NOW = {**BEFORE, "colored": "00000000000000ce"}


def check(folder: RunFolder, found: dict[str, str], *, begun: bool, keeps: bool = True, task: str = "load") -> None:
    contents = LookupContents(folder)
    contents.expect(task, keeps=keeps, begun=begun)
    contents.check(task, found)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder("run", tmp_path)


def test_rows_that_are_committed_hold_a_task_to_its_lookups(folder: RunFolder) -> None:
    check(folder, BEFORE, begun=False)
    check(folder, BEFORE, begun=True)
    with pytest.raises(LedgerError, match="`colored` has other rows than when the first rows of load were committed"):
        check(folder, NOW, begun=True)


def test_the_last_attempt_without_committed_rows_counts(folder: RunFolder) -> None:
    check(folder, BEFORE, begun=False)
    check(folder, NOW, begun=False)
    check(folder, {"keyed": "00000000000000ff"}, begun=False, task="another")
    check(folder, NOW, begun=True)
    with pytest.raises(LedgerError, match="other rows"):
        check(folder, BEFORE, begun=True)


def test_what_nobody_has_written_is_not_believed(folder: RunFolder) -> None:
    with pytest.raises(LedgerError, match="nothing tells what lookup `keyed` held"):
        check(folder, BEFORE, begun=True)
    check(folder, {"keyed": BEFORE["keyed"]}, begun=False)
    with pytest.raises(LedgerError, match="nothing tells what lookup `colored` held"):
        check(folder, BEFORE, begun=True)


def test_a_try_that_follows_in_the_same_run_is_held_to_it_too(folder: RunFolder) -> None:
    contents = LookupContents(folder)
    contents.expect("load", keeps=True, begun=False)
    contents.check("load", BEFORE)
    contents.expect("load", keeps=True, begun=True)
    with pytest.raises(LedgerError, match="other rows"):
        contents.check("load", NOW)
    contents.expect("load", keeps=True, begun=False)
    contents.check("load", NOW)


def test_nothing_is_written_where_rows_are_committed_at_once_or_find_nothing(folder: RunFolder) -> None:
    check(folder, BEFORE, begun=False, keeps=False)
    check(folder, {}, begun=False)
    assert not folder.lookups.exists()
