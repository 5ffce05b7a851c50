"""Replays of rejects of several destinations: what each of them lacks, and what has become of all of it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headrace.errors import AccountsError, LedgerError
from headrace.run.merged_claims import merged_claims
from headrace.run.reject_accounts import reject_accounts
from headrace.run.reject_files import RejectRow
from headrace.run.rejected import RejectedTable
from headrace.run.replay_ways import WayOfReplay, ways_of_replay
from tests.unit.run.test_reject_accounts import claim

# Of each reject, from 1, the destinations that lack its row.
LACKING = [["a", "b"], ["b"], ["b"], ["a", "b", "c"], ["c"], ["a"], ["a"]]


class Files:
    def __init__(self, lacking: list[list[str] | None]) -> None:
        self._lacking = lacking

    def rows(self) -> list[RejectRow]:
        told: list[dict[str, Any]] = [{} if own is None else {"destinations": own} for own in self._lacking]
        return [RejectRow(number, own, 0, 0) for number, own in enumerate(told, start=1)]


def table(lacking: list[Any]) -> RejectedTable:
    files = cast(Any, Files(lacking))
    return RejectedTable("t/a", "a", "success", 10, len(lacking), {}, [], files, flow="t", ways=("t/a", "t/b", "t/c"))


def test_each_destination_claims_what_it_lacks() -> None:
    found = ways_of_replay(table(LACKING), ["a", "b"], [(1, 2), (4, 6)], [(7, 7)], 0)
    assert [(way.name, list(way.loads), list(way.drops)) for way in found] == [
        ("a", [(1, 1), (4, 4), (6, 6)], [(7, 7)]),
        ("b", [(1, 2), (4, 4)], []),
    ]
    assert [way.numbers for way in found] == [4, 3]
    assert [WayOfReplay.from_dict(way.to_dict()).to_dict() for way in found] == [way.to_dict() for way in found]


def test_a_destination_that_lacks_nothing_claims_nothing() -> None:
    (only,) = ways_of_replay(table(LACKING), ["a", "b", "c"], [(5, 5)], [], 3)
    assert (only.name, only.rows_added) == ("c", 3)


def test_rejects_that_do_not_say_it() -> None:
    with pytest.raises(LedgerError, match="reject 2 does not say which of several destinations lack its row"):
        ways_of_replay(table([["a"], None]), ["a"], [(1, 2)], [], 0)


CASES = {
    "done": ([claim("x", 1, 2, loaded=2)], [claim("x", 2, 3, loaded=1, rejected=1)], (7, 0, [1, 2, 3])),
    "in one place": ([claim("x", 1, 2, loaded=2)], [claim("x", 2, 3, status="running")], (7, 3, [1, 2, 3])),
    "nowhere": ([claim("x", 1, 2, status="lost")], [claim("x", 2, 3, status="lost")], (7, 3, [])),
    "given up": ([claim("x", 1, 2, status="abandoned")], [], (10, 0, [])),
    "for one table alone": ([], [claim("x", 4, 4, loaded=1)], (9, 0, [4])),
    "dropped": ([claim("x", 1, 1, "drop")], [claim("x", 1, 1, "drop")], (9, 0, [1])),
    "two replays": ([claim("x", 1, 2, loaded=2)], [claim("y", 3, 3, loaded=1)], (7, 0, [1, 2, 3])),
}


@pytest.mark.parametrize("case", CASES)
def test_a_reject_is_taken_when_all_tables_have_it(case: str) -> None:
    one, other, (open_, unfinished, taken) = CASES[case]
    found = reject_accounts(10, merged_claims([one, other]))
    assert (found.open, found.unfinished) == (open_, unfinished)
    assert [number for number in range(1, 11) if not found.is_open(number)] == taken
    resolved = found.loaded + found.rejected_again + found.filtered + found.dropped
    assert 10 + found.rows_added == resolved + found.unfinished + found.open


def test_the_accounts_of_each_table_are_checked() -> None:
    with pytest.raises(AccountsError, match="replay x do not balance"):
        merged_claims([[claim("x", 1, 2, loaded=2, added=0)], [claim("x", 1, 2, loaded=1, added=0)]])
