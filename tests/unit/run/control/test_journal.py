"""What a resumed run knows: every kind of line, damage, and how little is remembered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import LedgerError
from headrace.run.control.journal import Entry, Journal


def journal(path: Path, is_ours: Callable[[], bool] = lambda: True) -> Journal:
    return Journal(path / "journal.jsonl", is_ours)


def again(path: Path, write: Callable[[Journal], None]) -> Journal:
    """What the next attempt of the run finds."""
    first = journal(path)
    write(first)
    first.close()
    return journal(path)


@pytest.mark.parametrize("kind", ["listed", "note", "redo"])
def test_what_the_next_attempt_needs_is_on_disk_when_the_task_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    on_disk: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: on_disk.append(Path(f"/proc/self/fd/{file}").read_text()))
    written = journal(tmp_path)
    {
        "listed": lambda: written.listed("loop", {"file": "x.jsonl", "count": 9, "hash": "h"}),
        "note": lambda: written.note("task", {"a": 1}),
        "redo": lambda: written.redo("task", 2),
    }[kind]()
    assert len(on_disk) == 1 and json.loads(on_disk[0])[kind] in ("loop", "task")
    written.close()


def test_what_has_ended(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        first.ended("a", "success", {"n": 1}, 1)
        first.ended("b", "failed", {}, 2)

    found = again(tmp_path, write)
    assert (found.before("a").status, found.before("a").sets) == ("success", {"n": 1})
    assert (found.before("b").status, found.before("b").generation) == ("failed", 2)
    assert found.before("c") == Entry()


def test_a_container_that_ended_well_forgets_what_is_inside_and_one_that_failed_does_not(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        for name, status in (("good", "success"), ("bad", "failed")):
            first.ended(f"{name}.a", "success", {}, 1)
            first.ended(f"{name}[1].a", "success", {}, 1)
            first.ended(f"{name}#2.a", "success", {}, 1)
            first.ended(f"{name}_beside", "success", {}, 1)
            first.ended(name, status, {}, 1)

    found = again(tmp_path, write)
    inside = (".a", "[1].a", "#2.a")
    assert [found.before(f"good{name}").status for name in inside] == [None] * 3
    assert [found.before(f"bad{name}").status for name in inside] == ["success"] * 3
    assert found.before("good_beside").status == found.before("bad_beside").status == "success"


def test_turns(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        first.listed("loop", {"file": "x.jsonl", "count": 9, "hash": "h"})
        for number in (1, 2, 4):
            first.ended(f"loop[{number}].a", "success", {}, 1)
            first.turn_ended("loop", number, f"loop[{number}]", {"n": number}, 0)
        first.ended("loop[3].a", "success", {}, 1)

    found = again(tmp_path, write)
    entry = found.before("loop")
    assert (entry.turns, entry.open_turns, entry.turn_sets, entry.status) == (4, {3}, {"n": 4}, None)
    assert entry.listed is not None and entry.listed["file"] == "x.jsonl"
    assert [found.before(f"loop[{number}].a").status for number in (1, 2, 3, 4)] == [None, None, "success", None]


def test_memory_is_that_of_one_turn(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        for number in range(1, 2001):
            first.begun(f"loop[{number}].a$", {"n": [1]})
            first.ended(f"loop[{number}].a", "success", {}, 1)
            first.turn_ended("loop", number, f"loop[{number}]", {}, 0)
        assert len(first._entries) == 0  # nothing of what this attempt writes is kept

    assert len(again(tmp_path, write)._entries) == 1


def test_first_values(tmp_path: Path) -> None:
    found = again(tmp_path, lambda first: first.begun("a$", {"n": [None]}))
    assert found.before("a$").sets == {"n": [None]}


def test_notes_are_there_at_once_and_until_the_task_has_ended_well(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.note("a", {"step": 1})
    assert first.before("a").notes == [{"step": 1}]
    first.ended("a", "failed", {}, 1)
    assert first.before("a").notes == [{"step": 1}]
    first.ended("a", "success", {}, 1)
    assert first.before("a").notes == []
    first.close()
    assert journal(tmp_path).before("a").notes == []


def test_what_is_done_anew(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        first.begun("a$", {"n": [1]})
        first.ended("a.b", "success", {}, 1)
        first.ended("a", "failed", {"n": 2}, 1)
        first.redo("a", 2)
        assert (first.before("a").status, first.before("a").generation) == (None, 2)
        first.ended("a#2.b", "success", {}, 1)

    found = again(tmp_path, write)
    entry = found.before("a")
    assert (entry.status, entry.generation, entry.sets, entry.ends) == (None, 2, {}, 1)
    assert found.before("a.b").status is None
    assert found.before("a$").sets == {}
    assert found.before("a#2.b").status == "success"


def test_order_of_ends(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        first.ended("a", "failed", {}, 1)
        first.ended("b", "success", {}, 1)
        first.ended("a", "success", {}, 1)

    found = again(tmp_path, write)
    a, b = found.before("a"), found.before("b")
    assert (a.ends, b.ends) == (2, 1)
    assert a.line > b.line


def test_traces(tmp_path: Path) -> None:
    def write(first: Journal) -> None:
        first.ended("a.b", "success", {}, 1)
        first.ended("ab", "success", {}, 1)

    found = again(tmp_path, write)
    assert [found.knows(name) for name in ("a", "a.b", "ab", "b", "a.b.c")] == [True, True, True, False, False]


def test_a_last_line_that_is_cut_off_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    line = json.dumps({"end": "bä", "status": "success"}, ensure_ascii=False).encode()
    before = b'{"end": "a", "status": "success"}\n'
    for length in range(len(line) + 1):
        path.write_bytes(before + line[:length])
        found = journal(tmp_path)
        assert (found.before("a").status, found.before("bä").status) == ("success", None)
        # What is written next begins a line of its own.
        found.ended("c", "success", {}, 1)
        found.close()
        assert path.read_bytes() == before + b'{"end": "c", "status": "success"}\n'


@pytest.mark.parametrize(
    "damage",
    [b"nonsense", b"[]", b"1", b"{}", b'{"end": "a"}', b'{"turn": "a"}', b'{"end": "\xff", "status": "success"}', b""],
)
def test_another_damage_is_refused(tmp_path: Path, damage: bytes) -> None:
    good = b'{"end": "a", "status": "success"}\n'
    (tmp_path / "journal.jsonl").write_bytes(good + damage + b"\n" + good)
    with pytest.raises(LedgerError, match="the journal of the run is damaged") as caught:
        journal(tmp_path)
    assert caught.value.at is not None and caught.value.at["line"] == 2


@pytest.mark.parametrize(
    "damage", ['{"end": ["a"], "status": "x"}', '{"note": "a", "data": 1}', '{"begun": "a", "set": 1}']
)
def test_a_line_of_the_wrong_shape_is_refused(tmp_path: Path, damage: str) -> None:
    (tmp_path / "journal.jsonl").write_text(f"{damage}\n")
    with pytest.raises(LedgerError, match="the journal of the run is damaged"):
        journal(tmp_path)


def test_a_run_that_another_process_has_resumed_writes_nothing_more(tmp_path: Path) -> None:
    taken = journal(tmp_path, lambda: False)
    with pytest.raises(LedgerError, match="resumed by another process"):
        taken.ended("a", "success", {}, 1)
    assert (tmp_path / "journal.jsonl").read_bytes() == b""
