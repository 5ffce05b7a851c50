"""What loops go over: ranges of numbers and days, lists, and what is written down before the first turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.errors import LedgerError
from headrace.model import Task
from headrace.run.control.journal import Entry, Journal
from headrace.run.control.loops import Listing, Loops, Values, _bound, _steps
from headrace.run.control.place import Place

QUERY = Task("loop", "loop", "foreach", ("tasks", "loop"), {"foreach": {"query": {}, "as": {"n": "integer"}}})
NOWHERE = cast("Place", None)


class Made:
    """The loops of a run, over rows that a query would give."""

    def __init__(self, folder: Path, rows: list[dict[str, Any]]) -> None:
        self.folder = folder
        self.rows = rows
        self.asked = 0
        self.journal = Journal(folder / "journal.jsonl", lambda: True)
        self.loops = Loops(folder / "loops", "loop", self.journal, lambda text: text == "pw", self._query)

    def _query(self, task: Task, place: Place, instance: str) -> Iterator[Values]:
        self.asked += 1
        return iter(self.rows)

    def values(self, entry: Entry | None = None) -> list[tuple[str, Values]]:
        return list(self.loops.values(QUERY, NOWHERE, entry or Entry()).values)

    def resumed(self) -> Entry:
        """What the next attempt knows of the loop."""
        self.journal.close()
        self.journal = Journal(self.folder / "journal.jsonl", lambda: True)
        return self.journal.before("loop")


def test_rows_are_written_down_and_never_asked_for_again(tmp_path: Path) -> None:
    made = Made(tmp_path, [{"n": 1, "day": date(2026, 1, 31)}, {"n": None, "day": None}])
    found = made.values()
    assert found == [("1", made.rows[0]), ("2", made.rows[1])]
    made.rows = [{"n": 9, "day": None}]
    entry = made.resumed()
    assert entry.listed is not None and entry.listed["count"] == 2
    assert made.values(entry) == found
    assert made.asked == 1
    assert [path.name[0] for path in (tmp_path / "loops").iterdir()] != ["."]


def test_rows_with_a_secret_are_nowhere_on_disk(tmp_path: Path) -> None:
    made = Made(tmp_path, [{"n": "a"}, {"n": "pw"}, {"n": "c"}])
    assert [row["n"] for _, row in made.values()] == ["a", "pw", "c"]
    assert list((tmp_path / "loops").iterdir()) == []
    assert made.resumed().listed is None


@pytest.mark.parametrize("damage", ["other", "gone"])
def test_a_list_that_is_damaged_is_refused(tmp_path: Path, damage: str) -> None:
    made = Made(tmp_path, [{"n": 1}])
    made.values()
    (path,) = (tmp_path / "loops").iterdir()
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(json.dumps(["1", {"n": 2}]) + "\n")
    with pytest.raises(LedgerError, match="what it goes over is damaged"):
        made.values(made.resumed())


def test_turns_that_have_ended_do_not_come_again(tmp_path: Path) -> None:
    listing = Listing([(str(number), {"n": number}) for number in range(1, 7)])
    entry = Entry(turns=4, open_turns={2})
    turns = list(Made(tmp_path, []).loops.each(QUERY, listing, entry))
    assert [turn.number for turn in turns if turn.has_ended] == [1, 3, 4]
    assert [(turn.number, turn.label, turn.values) for turn in turns if not turn.has_ended] == [
        (2, "2", {"n": 2}),
        (5, "5", {"n": 5}),
        (6, "6", {"n": 6}),
    ]


@pytest.mark.parametrize(
    ("first", "last", "step", "expected"),
    [
        (1, 3, 1, [1, 2, 3]),
        (1, 6, 2, [1, 3, 5]),
        (3, 1, -1, [3, 2, 1]),
        (3, 1, 1, []),
        (1, 3, -1, []),
        (2, 2, 1, [2]),
        (2, 2, -7, [2]),
        (date(2024, 2, 28), date(2024, 3, 1), 1, [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]),
        (date(2024, 3, 1), date(2024, 2, 28), -2, [date(2024, 3, 1), date(2024, 2, 28)]),
        (date(2024, 3, 1), date(2024, 2, 28), 1, []),
        (date(9999, 12, 30), date.max, 1, [date(9999, 12, 30), date.max]),
        (date(1, 1, 2), date.min, -1, [date(1, 1, 2), date.min]),
        (date(9999, 12, 30), date.max, 7, [date(9999, 12, 30)]),
    ],
)
def test_ranges(first: int | date, last: int | date, step: int, expected: list[object]) -> None:
    assert list(_steps(first, last, step)) == expected


def test_what_a_range_begins_with() -> None:
    assert [_bound(value) for value in (5, "2024-02-29", date(2024, 1, 1))] == [5, date(2024, 2, 29), date(2024, 1, 1)]
    assert [_bound(value) for value in (None, True, "5", "2024-02-30", 1.5)] == [None] * 5
