"""The accounts: balanced ones pass, every imbalance is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import AccountsError
from headrace.executors.accounts import check_accounts
from tests.snapshots import assert_snapshot
from tests.unit.executors import fake_flow

SLICES = 3
ROWS = SLICES * fake_flow.SLICE_ROWS
Spoil = Callable[[dict[str, Any]], object]


def balanced() -> dict[str, Any]:
    return fake_flow.result(SLICES, 2)


def spoil_slice(**members: int) -> Spoil:
    return lambda result: result["slices"][1].update(members)


SPOILED: dict[str, tuple[Spoil, int | None]] = {
    "slice_missing": (lambda result: result["slices"].pop(), ROWS),
    "slice_twice": (lambda result: result["slices"].append(dict(result["slices"][0])), ROWS),
    "slice_unknown": (spoil_slice(number=9), ROWS),
    "lines": (spoil_slice(lines=1), ROWS),
    "rows": (spoil_slice(rejected=1), ROWS),
    "handed_over": (lambda result: result["sink"].update(rows=ROWS - 1), ROWS),
    "destination": (lambda result: None, ROWS - 1),
    "destination_too_many": (lambda result: None, ROWS + 1),
    "partitions": (lambda result: result["sink"].update(rows_by_place=[1, ROWS]), ROWS),
    "rejects": (lambda result: result["rejects"].update(count=1), ROWS),
    "stream_missing": (lambda result: result["streams"].pop(), ROWS),
    "stream_rows": (lambda result: result["streams"][0].update(rows=1), ROWS),
}


def test_balanced_accounts_pass() -> None:
    check_accounts(fake_flow.plan(SLICES), balanced(), ROWS)
    check_accounts(fake_flow.plan(SLICES), balanced(), None)


def test_rejected_rows_are_no_imbalance() -> None:
    result = balanced()
    result["slices"][0].update(out=fake_flow.SLICE_ROWS - 2, rejected=2)
    result["sink"]["rows"] = ROWS - 2
    result["rejects"]["count"] = 2
    check_accounts(fake_flow.plan(SLICES), result, ROWS - 2)


@pytest.mark.parametrize("case", sorted(SPOILED))
def test_imbalance(case: str) -> None:
    spoil, rows_inserted = SPOILED[case]
    result = balanced()
    spoil(result)
    with pytest.raises(AccountsError) as caught:
        check_accounts(fake_flow.plan(SLICES), result, rows_inserted)
    assert_snapshot(f"accounts_{case}", caught.value.render())
