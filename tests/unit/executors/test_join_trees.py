"""The accounts of several joins: balanced ones pass, every imbalance is found and named, and what summaries say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import AccountsError
from headrace.executors import added_joins, join_accounts, join_of_flow, without_rows
from headrace.executors.accounts import check_accounts
from headrace.model import FileSource, Join, joins_told, leaves_told
from headrace.planning import DataFlowPlan, JoinPlan
from tests.snapshots import assert_snapshot
from tests.unit.executors import fake_flow
from tests.unit.planning import samples

Spoil = Callable[[dict[str, Any]], object]


def with_tree() -> tuple[DataFlowPlan, dict[str, Any]]:
    """Two sets of three files: parcels, and as the right side orders with lines. Of 1,000 rows of each file 40 have met
    none; 10 of the rows out of the inner join are refused, 5 behind the last one.
    """
    source = FileSource("parcels", "inbox", Path("/inbox"), ["*"], samples.layout(id="int64!", name="string"))
    orders, lines = replace(source, name="orders"), replace(source, name="lines")
    inner = Join("detailed", "inner", orders, lines, (), ())
    join = Join("sent", "left", source, inner, (), ())
    plan = fake_flow.plan(6)
    together = JoinPlan(join, (plan.layout,) * 3, (0, 2, 4))
    plan = replace(plan, together=together, source=replace(plan.source, pairs=2, joined=3))
    result = fake_flow.result(6, 2)
    for item in result["slices"]:
        item["file"] = item["number"] - 1
        is_parcels, is_lines = item["file"] < 2, item["file"] >= 4
        refused = 15 if is_lines else 0
        item["join"] = counts(1000, 40, 0 if is_parcels else 40) | {"rejected": refused}
        item["rejected"], item["out"] = refused, 945 if is_parcels else 0
        if is_parcels:
            # 960 have come out, 10 of them are refused before the last join, where 60 of the others meet none.
            item["inner"] = [counts(950, 60, 60) | {"rejected": 10}]
            item["join"] |= {"unmatched": 110}
            item["out"] = 890 + 110 - 5
    result["sink"]["rows"] = 2 * 995
    result["rejects"]["count"] = 30
    return plan, result


def counts(rows: int, unmatched: int, filtered: int) -> dict[str, int]:
    return {"rows": rows, "unmatched": unmatched, "filtered": filtered, "null_keys": 3}


def test_balanced_accounts_pass() -> None:
    plan, result = with_tree()
    check_accounts(plan, result, result["sink"]["rows"])


def test_a_side_that_is_a_join_has_that() -> None:
    account = join_accounts(*with_tree())
    assert account is not None
    inner = account["right"]
    assert [own["name"] for own in joins_told(account)] == ["detailed", "sent"]
    assert sorted(leaves_told(account)) == ["left", "right_left", "right_right"]
    assert (account["rows_out"], inner["rows"], inner["rejected_in_front"]) == (2000, 1900, 20)
    assert (inner["join"]["rows_out"], inner["rows_rejected"], inner["rejected_behind"]) == (1920, 30, 10)
    assert (inner["join"]["right"]["rejected_behind"], account["left"]["rejected_behind"]) == (30, 0)


def test_accounts_of_turns_are_added() -> None:
    account = join_accounts(*with_tree())
    assert account is not None
    twice = added_joins(account, account)
    assert twice["right"]["join"]["left"]["rows"] == 2 * account["right"]["join"]["left"]["rows"]
    nothing = without_rows(account)
    assert nothing["right"]["join"]["rows_out"] == nothing["right"]["rows"] == 0
    assert added_joins(nothing, account) == account


def test_what_all_destinations_have_refused_is_told() -> None:
    account = join_accounts(*with_tree())
    shared = {"right_right_rejected": 50, "right_right_rejected_behind": 40, "right_left_rejected": 7}
    told = join_of_flow({"join": account, "shared": shared})
    assert told is not None
    right = told["right"]
    assert (right["rows_rejected"], right["rejected_behind"]) == (57, 40 - 20)
    assert (right["join"]["right"]["rows_rejected"], told["left"]["rows_rejected"]) == (50, 0)


def spoil_inner(**members: int) -> Spoil:
    return lambda result: result["slices"][1]["inner"][0].update(members)


SPOILED: dict[str, Spoil] = {
    "rows": spoil_inner(rows=949),
    "rejected": spoil_inner(rejected=9),
    "filtered": spoil_inner(filtered=59),
    "unmatched": spoil_inner(unmatched=59, filtered=59),
    "null_keys": spoil_inner(null_keys=61),
    "not_told": lambda result: result["slices"][0].pop("inner"),
    "met": lambda result: result["slices"][2]["join"].update(unmatched=39, filtered=39),
    "leaf": lambda result: result["slices"][4]["join"].update(rejected=14),
}


@pytest.mark.parametrize("name", sorted(SPOILED))
def test_imbalances_are_named(name: str) -> None:
    plan, result = with_tree()
    SPOILED[name](result)
    with pytest.raises(AccountsError) as caught:
        check_accounts(plan, result, result["sink"]["rows"])
    assert_snapshot(f"accounts_join_tree_{name}", str(caught.value.found))
