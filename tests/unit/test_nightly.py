"""Which nightly shards CI runs, and what is remembered of them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tests.nightly import ROOT, SHARDS, Passed, is_current, is_due, read_record, shards_of_ci, write_record

TODAY = datetime.date(2026, 11, 28)
SHARD = SHARDS[0]


def test_there_are_ten_and_their_areas_exist() -> None:
    assert len({shard.name for shard in SHARDS}) == len(SHARDS) == 10
    missing = [area for shard in SHARDS for area in shard.areas if not (ROOT / area).exists()]
    assert not missing


def test_each_takes_its_turn() -> None:
    assert [shards_of_ci(count, []) for count in range(40, 50)] == [[shard.name] for shard in SHARDS]


def test_one_other_that_is_due_runs_besides() -> None:
    assert shards_of_ci(0, [SHARDS[0].name]) == [SHARDS[0].name]
    assert shards_of_ci(0, [SHARDS[0].name, SHARDS[4].name, SHARDS[5].name]) == [SHARDS[0].name, SHARDS[4].name]


@pytest.mark.parametrize(
    ("days", "changed", "due"),
    [
        (10, [f"{SHARD.areas[0]}/src/lib.rs"], False),
        (11, [f"{SHARD.areas[0]}/src/lib.rs"], True),
        (11, [SHARD.areas[0]], True),
        (11, [f"{SHARD.areas[0]}x/lib.rs", "README.md"], False),
        (11, [], False),
        (11, None, True),
    ],
)
def test_a_changed_area_is_due_after_ten_days(days: int, changed: list[str] | None, due: bool) -> None:
    passed = Passed("c0ffee", TODAY - datetime.timedelta(days=days), 1)
    assert is_due(SHARD, passed, TODAY, lambda _: changed) == due


def test_what_never_passed_is_run_by_who_asks_for_all() -> None:
    """CI only says so: nobody knows yet how long it takes."""
    assert not is_due(SHARD, None, TODAY, lambda _: None)
    assert not is_current(None, lambda _: [])


@pytest.mark.parametrize(
    ("changed", "current"),
    [([], True), (["docs/contributing/nightly.tsv", "README.md"], True), (["Makefile"], False), (None, False)],
)
def test_documents_do_not_make_a_shard_run_again(changed: list[str] | None, current: bool) -> None:
    assert is_current(Passed("c0ffee", TODAY, 1), lambda _: changed) == current


def test_what_is_remembered_comes_back(tmp_path: Path) -> None:
    found = {shard.name: Passed("c0ffee12", TODAY, number) for number, shard in enumerate(SHARDS) if number != 3}
    write_record(found, tmp_path / "nightly.tsv")
    assert read_record(tmp_path / "nightly.tsv") == found
    assert read_record(tmp_path / "none.tsv") == {}
