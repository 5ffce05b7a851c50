"""What has become of rejects, by the claims of replays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.run.reject_accounts import open_beside, reject_accounts
from headrace.targets import Replay

THEN = datetime(2026, 11, 22, tzinfo=UTC)


def claim(run: str, first: int, last: int, action: str = "load", status: str = "success", **rows: int) -> Replay:
    taken = THEN if status == "success" else None
    return Replay(run, first, last, action, status, taken, rows.get("loaded", 0), rows.get("rejected", 0))


CLAIMS = {
    "nothing": [],
    "loaded, rejected again and dropped": [
        claim("a", 1, 4, loaded=5, rejected=1),
        claim("a", 5, 5, "drop", loaded=5, rejected=1),
    ],
    "unfinished beside it": [claim("a", 1, 2, loaded=2), claim("b", 4, 6, status="failed")],
    "unfinished, and taken since": [claim("a", 1, 6, status="lost"), claim("b", 2, 3, loaded=1, rejected=1)],
    "two unfinished for the same": [claim("a", 1, 6, status="running"), claim("b", 2, 8, status="failed")],
    "given up": [claim("a", 1, 6, status="abandoned")],
}
# Open and unfinished, of ten.
EXPECTED = {
    "nothing": (10, 0),
    "loaded, rejected again and dropped": (5, 0),
    "unfinished beside it": (5, 3),
    "unfinished, and taken since": (4, 4),
    "two unfinished for the same": (2, 8),
    "given up": (10, 0),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_the_accounts_balance(case: str) -> None:
    found = reject_accounts(10, CLAIMS[case])
    assert (found.open, found.unfinished) == EXPECTED[case]
    resolved = found.loaded + found.rejected_again + found.dropped
    assert 10 + found.rows_added == resolved + found.unfinished + found.open
    taken = {number for item in CLAIMS[case] if item.taken_at for number in range(item.first, item.last + 1)}
    assert [number for number in range(1, 11) if not found.is_open(number)] == sorted(taken)
    assert open_beside(10, CLAIMS[case], ()) == found.open
    assert open_beside(10, CLAIMS[case], ((1, 10),)) == 0
