"""What has become of rejects, by the claims of replays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.errors import AccountsError
from headrace.run.reject_accounts import open_beside, reject_accounts
from headrace.targets import Replay

THEN = datetime(2026, 11, 22, tzinfo=UTC)


def claim(run: str, first: int, last: int, action: str = "load", status: str = "success", **rows: int) -> Replay:
    is_half = "half" in rows
    taken = THEN if status == "success" or is_half else None
    counts = rows.get("loaded", 0), rows.get("rejected", 0), rows.get("added")
    return Replay(run, first, last, action, status, taken, *counts, is_half)


CLAIMS = {
    "nothing": [],
    "loaded, rejected again and dropped": [
        claim("a", 1, 4, loaded=5, rejected=1),
        claim("a", 5, 5, "drop", loaded=5, rejected=1),
    ],
    "unfinished beside it": [claim("a", 1, 2, loaded=2), claim("b", 4, 6, status="failed")],
    "unfinished, and taken since": [claim("a", 1, 6, status="lost"), claim("b", 2, 3, loaded=1, rejected=1)],
    "two unfinished for the same": [claim("a", 1, 6, status="running"), claim("b", 2, 8, status="failed")],
    "half appended": [claim("a", 1, 6, status="failed", half=1, loaded=2), claim("b", 4, 8, status="failed")],
    "rows more than numbers": [claim("a", 3, 3, loaded=4, added=3)],
    "given up": [claim("a", 1, 6, status="abandoned")],
}
# Open and unfinished, of ten.
EXPECTED = {
    "nothing": (10, 0),
    "loaded, rejected again and dropped": (5, 0),
    "unfinished beside it": (5, 3),
    "unfinished, and taken since": (4, 4),
    "two unfinished for the same": (2, 8),
    "half appended": (2, 8),
    "rows more than numbers": (9, 0),
    "given up": (10, 0),
}
# Replays with which somebody can go on, each with its own numbers that no other one has taken.
UNFINISHED = {
    "unfinished beside it": {"b": 3},
    "unfinished, and taken since": {"a": 4},
    "two unfinished for the same": {"a": 6, "b": 7},
    "half appended": {"a": 6, "b": 2},
}


@pytest.mark.parametrize("case", CLAIMS)
def test_the_accounts_balance(case: str) -> None:
    found = reject_accounts(10, CLAIMS[case])
    assert (found.open, found.unfinished) == EXPECTED[case]
    resolved = found.loaded + found.rejected_again + found.dropped
    assert 10 + found.rows_added == resolved + found.unfinished + found.open
    assert {item.run_id: item.numbers for item in found.replays if item.is_unfinished} == UNFINISHED.get(case, {})
    taken = {number for item in CLAIMS[case] if item.taken_at for number in range(item.first, item.last + 1)}
    assert [number for number in range(1, 11) if not found.is_open(number)] == sorted(taken)
    assert open_beside(10, CLAIMS[case], ()) == found.open


def test_a_replay_that_is_superseded_is_not_shown() -> None:
    found = reject_accounts(2, [claim("a", 1, 2, status="failed"), claim("b", 1, 2, loaded=2)])
    assert [item.run_id for item in found.replays] == ["b"]


def test_rows_that_are_missing() -> None:
    with pytest.raises(AccountsError, match="replay a do not balance"):
        reject_accounts(10, [claim("a", 1, 3, loaded=2, added=0)])


@pytest.mark.parametrize("case", CLAIMS)
def test_nothing_is_open_beside_all(case: str) -> None:
    assert open_beside(10, CLAIMS[case], ((1, 10),)) == 0
