"""The accounts: balanced ones pass, every imbalance is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import AccountsError
from headrace.executors import join_accounts
from headrace.executors.accounts import check_accounts
from headrace.model import FileSource, FlowRows, Join
from headrace.model.spec_joins import JoinType
from headrace.planning import DataFlowPlan, JoinPlan
from tests.snapshots import assert_snapshot
from tests.unit.executors import fake_flow
from tests.unit.planning import samples, test_lookups

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


def spoil_transform(number: int, **members: int) -> Spoil:
    return lambda result: result["slices"][1]["transforms"][number].update(members)


SPOILED_TRANSFORMS: dict[str, Spoil] = {
    "matched": spoil_transform(0, matched=1),
    "null_keys": spoil_transform(1, null_keys=fake_flow.SLICE_ROWS),
    "chain": spoil_transform(1, rows=fake_flow.SLICE_ROWS - 1, matched=fake_flow.SLICE_ROWS - 11),
    "out": lambda result: [
        counts.update(rows=fake_flow.SLICE_ROWS + 1, matched=fake_flow.SLICE_ROWS - 9)
        for counts in result["slices"][1]["transforms"]
    ],
    "missing": lambda result: result["slices"][1]["transforms"].pop(),
}


def with_lookups() -> tuple[DataFlowPlan, dict[str, Any]]:
    """A plan with two lookups, which ten rows of each slice have not found, and a result that balances."""
    lookup = test_lookups.plan(test_lookups.lookup()).lookups[0]
    again = replace(lookup, lookup=replace(lookup.lookup, name="again", input="keyed"))
    result = balanced()
    counts = {
        "rows": fake_flow.SLICE_ROWS,
        "matched": fake_flow.SLICE_ROWS - 10,
        "defaulted": 10,
        "rejected": 0,
        "null_keys": 2,
        "filtered": 0,
    }
    for item in result["slices"]:
        item["transforms"] = [dict(counts), dict(counts)]
    return replace(fake_flow.plan(SLICES), transforms=(lookup, again), end=FlowRows("again")), result


def test_rows_that_no_partition_takes_are_rejects_behind_the_transforms() -> None:
    plan, result = with_lookups()
    check_accounts(plan, result, ROWS)
    result["slices"][0].update(out=fake_flow.SLICE_ROWS - 2, rejected=2, refused_at_end=2)
    result["sink"]["rows"] = ROWS - 2
    result["rejects"].update(count=2)
    check_accounts(plan, result, ROWS - 2)
    result["slices"][0].update(refused_at_end=1)
    with pytest.raises(AccountsError) as caught:
        check_accounts(plan, result, ROWS - 2)
    assert_snapshot("accounts_transform_rejects", caught.value.render())


def test_rows_that_a_transform_rejects_do_not_come_to_the_next() -> None:
    plan, result = with_lookups()
    for item in result["slices"]:
        first, second = item["transforms"]
        first.update(defaulted=0, rejected=10)
        second.update(rows=fake_flow.SLICE_ROWS - 10, matched=fake_flow.SLICE_ROWS - 20, defaulted=7, rejected=3)
        item.update(out=fake_flow.SLICE_ROWS - 13, rejected=13)
    rejected = 13 * len(result["slices"])
    result["sink"]["rows"] = ROWS - rejected
    result["rejects"].update(count=rejected, by_rule={"no_match": rejected})
    check_accounts(plan, result, ROWS - rejected)
    result["slices"][0]["transforms"][1].update(rejected=4, defaulted=6)
    with pytest.raises(AccountsError) as caught:
        check_accounts(plan, result, ROWS - rejected)
    assert_snapshot("accounts_transform_rejected", caught.value.render())


def test_slices_that_were_not_read_have_no_transforms() -> None:
    plan, result = with_lookups()
    result["slices"][0].update(stream=None, committed=True, transforms=[])
    result["streams"][0]["rows"] -= fake_flow.SLICE_ROWS
    result["sink"]["rows"] -= fake_flow.SLICE_ROWS
    check_accounts(plan, result, ROWS - fake_flow.SLICE_ROWS)


@pytest.mark.parametrize("case", sorted(SPOILED_TRANSFORMS))
def test_imbalance_of_transforms(case: str) -> None:
    plan, result = with_lookups()
    SPOILED_TRANSFORMS[case](result)
    with pytest.raises(AccountsError) as caught:
        check_accounts(plan, result, ROWS)
    assert_snapshot(f"accounts_transform_{case}", caught.value.render())


def with_join(kind: JoinType = "inner") -> tuple[DataFlowPlan, dict[str, Any]]:
    """A plan with two pairs of files, of whose 1,000 rows each side 40 have met none, and a result that balances."""
    source = FileSource("orders", "inbox", Path("/inbox"), ["*"], samples.layout(id="int64!", name="string"))
    join = Join("joined", kind, source, replace(source, name="lines"), (), ())
    plan = fake_flow.plan(4)
    together = JoinPlan(join, (plan.layout, plan.layout), (0, 2))
    plan = replace(plan, together=together, source=replace(plan.source, pairs=2, joined=2))
    result = fake_flow.result(4, 2)
    kept = {"inner": 0, "left": 40, "right": 40, "full": 80}[kind]
    for item in result["slices"]:
        item["file"] = item["number"] - 1
        is_kept = kind in ("left" if item["file"] < 2 else "right", "full")
        item["join"] = {"rows": 1000, "unmatched": 40, "filtered": 0 if is_kept else 40, "null_keys": 3, "rejected": 0}
        item["out"] = 960 + kept if item["file"] < 2 else 0
    result["sink"]["rows"] = 2 * (960 + kept)
    return plan, result


def spoil_join(number: int = 1, **members: int) -> Spoil:
    return lambda result: result["slices"][number]["join"].update(members)


SPOILED_JOINS: dict[str, Spoil] = {
    "rows": spoil_join(rows=999),
    "unmatched": spoil_join(3, unmatched=41, filtered=41),
    "filtered": spoil_join(filtered=39),
    "null_keys": spoil_join(null_keys=41),
    "out": lambda result: (result["slices"][0].update(out=959), result["sink"].update(rows=1919)),
    "more_left_than_right": lambda result: (
        spoil_join(0, unmatched=30, filtered=30)(result),
        spoil_join(2, unmatched=50, filtered=50)(result),
        spoil_join(3, unmatched=30, filtered=30)(result),
    ),
    "not_told": lambda result: result["slices"][2].pop("join"),
    "rejected_behind": lambda result: (result["slices"][2]["join"].update(rejected=5), spoil_join(rejected=0)(result)),
    "rejected_before": lambda result: spoil_join(2, rejected=1)(reject_behind(result)),
}


def reject_behind(result: dict[str, Any]) -> dict[str, Any]:
    """Five rows that have come out of the first pair are rejects of its right file."""
    pair = result["slices"][0], result["slices"][2]
    pair[1]["join"]["rejected"] = pair[1]["rejected"] = 5
    pair[1]["rows"], pair[1]["lines"] = 1000, pair[1]["lines"] - pair[1]["rows"] + 1000
    pair[0]["out"] -= 5
    result["sink"]["rows"] -= 5
    result["rejects"]["count"] += 5
    return result


def test_rows_that_are_rejected_behind_a_join_are_rows_of_a_side() -> None:
    plan, result = with_join()
    reject_behind(result)
    check_accounts(plan, result, result["sink"]["rows"])
    account = join_accounts(plan, result)
    assert account is not None
    assert (account["rows_out"], account["right"]["rejected_behind"]) == (result["sink"]["rows"] + 5, 5)


def test_rows_that_are_left_out_behind_a_join_have_come_out_of_it() -> None:
    plan, result = with_join()
    reject_behind(result)
    first = result["slices"][0]
    first["out"], first["filtered"] = first["out"] - 7, 7
    result["sink"]["rows"] -= 7
    check_accounts(plan, result, result["sink"]["rows"])
    account = join_accounts(plan, result)
    assert account is not None
    assert account["rows_out"] == result["sink"]["rows"] + 7 + 5
    first["filtered"] = 6
    with pytest.raises(AccountsError):
        check_accounts(plan, result, result["sink"]["rows"])


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
def test_balanced_accounts_of_a_join_pass(kind: JoinType) -> None:
    plan, result = with_join(kind)
    check_accounts(plan, result, result["sink"]["rows"])
    account = join_accounts(plan, result)
    assert account is not None
    assert account["rows_out"] == result["sink"]["rows"]
    assert (account["left"]["source"], account["left"]["matched"], account["right"]["matched"]) == (
        "orders",
        1920,
        1920,
    )


@pytest.mark.parametrize("case", sorted(SPOILED_JOINS))
def test_imbalance_of_a_join(case: str) -> None:
    plan, result = with_join()
    SPOILED_JOINS[case](result)
    with pytest.raises(AccountsError) as caught:
        check_accounts(plan, result, result["sink"]["rows"])
    assert_snapshot(f"accounts_join_{case}", caught.value.render())


@pytest.mark.parametrize("case", sorted(SPOILED))
def test_imbalance(case: str) -> None:
    spoil, rows_inserted = SPOILED[case]
    result = balanced()
    spoil(result)
    with pytest.raises(AccountsError) as caught:
        check_accounts(fake_flow.plan(SLICES), result, rows_inserted)
    assert_snapshot(f"accounts_{case}", caught.value.render())
