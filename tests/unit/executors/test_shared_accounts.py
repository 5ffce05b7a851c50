"""Accounts of several destinations: the core's result is taken apart, and each way balances as a plain flow does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import AccountsError
from headrace.executors.accounts import check_accounts
from headrace.model import FlowRows
from headrace.planning import SharedPlan, shared_plan
from tests.unit.executors import fake_flow
from tests.unit.planning import test_lookups

SLICES = 2
ROWS = fake_flow.SLICE_ROWS
MISSED, BAD = 10, 3


def shared() -> SharedPlan:
    """Two ways by the outputs of one lookup."""
    lookup = test_lookups.plan(test_lookups.lookup()).lookups[0]
    lookup = replace(lookup, lookup=replace(lookup.lookup, sends_misses=True))
    plan = replace(fake_flow.plan(SLICES), flow="load")
    found = replace(plan, task="load/found", transforms=(lookup,), end=FlowRows("keyed"))
    end = FlowRows("keyed", "no_match")
    missed = replace(plan, task="load/missed", table="missed", transforms=(lookup,), end=end)
    return shared_plan([found, missed])


def result() -> dict[str, Any]:
    """Of each slice ten rows find nothing, and three are bad."""
    found = ROWS - MISSED - BAD
    core = fake_flow.result(SLICES, 2)
    for item in core["slices"]:
        counts = {"rows": ROWS - BAD, "matched": found, "defaulted": 0, "rejected": 0, "null_keys": 4, "filtered": 0}
        item.update(
            out=ROWS - BAD,
            rejected=BAD,
            transforms=[{**counts, "outputs": [MISSED]}],
            destinations=[
                {"committed": False, "out": found, "rejected": BAD, "filtered": MISSED, "refused_at_end": 0},
                {"committed": False, "out": MISSED, "rejected": BAD, "filtered": found, "refused_at_end": 0},
            ],
        )
    sink = dict(core["sink"])
    core["destinations"] = [
        {"sink": {**sink, "rows": SLICES * found}, "columns": None},
        {"sink": {**sink, "rows": SLICES * MISSED}, "columns": None},
    ]
    core["rejects"]["count"] = SLICES * BAD
    return core


def test_each_way_balances_and_what_is_shared_is_told_once() -> None:
    plan, core = shared(), result()
    first, second = (plan.result_of(number, core) for number in (0, 1))
    check_accounts(plan.ways[0], first, SLICES * (ROWS - MISSED - BAD))
    check_accounts(plan.ways[1], second, SLICES * MISSED)
    assert first["shared"] == {"rows_rejected": SLICES * BAD, "rows_filtered": 0}
    assert (second["shared"], second["rejects"]["count"], first["rejects"]["count"]) == (None, 0, SLICES * BAD)
    assert "destinations" not in first["slices"][0]


@pytest.mark.parametrize("member", ["out", "rejected", "filtered", "outputs", "handed over", "taken"])
@pytest.mark.parametrize("number", [0, 1])
def test_an_imbalance_of_one_way_is_found(member: str, number: int) -> None:
    plan, core = shared(), result()
    rows = SLICES * (MISSED if number else ROWS - MISSED - BAD)
    if member == "outputs":
        core["slices"][1]["transforms"][0]["outputs"] = [MISSED + 1]
    elif member == "handed over":
        core["destinations"][number]["sink"]["rows"] -= 1
    elif member == "taken":
        rows -= 1
    else:
        core["slices"][1]["destinations"][number][member] += 1
    with pytest.raises(AccountsError):
        check_accounts(plan.ways[number], plan.result_of(number, core), rows)


def test_rows_that_are_lost_at_the_end_of_a_way_are_found() -> None:
    """They came through the transforms, are in no table, and are no reject; as many as the rejects of that way say."""
    plan, core = shared(), result()
    core["slices"][0]["destinations"][0].update(out=ROWS - MISSED - BAD - 2, rejected=BAD + 2)
    core["destinations"][0]["sink"]["rows"] -= 2
    rows = SLICES * (ROWS - MISSED - BAD) - 2
    with pytest.raises(AccountsError) as found:
        check_accounts(plan.ways[0], plan.result_of(0, core), rows)
    assert found.value.found == "rows behind the transforms and not out: 2, rows refused at the end of the way: 0"
    core["slices"][0]["destinations"][0]["refused_at_end"] = 2
    check_accounts(plan.ways[0], plan.result_of(0, core), rows)


def test_every_row_that_any_way_refuses_is_a_reject() -> None:
    plan, core = shared(), result()
    core["rejects"]["count"] -= 1
    with pytest.raises(AccountsError) as found:
        check_accounts(plan.ways[0], plan.result_of(0, core), SLICES * (ROWS - MISSED - BAD))
    assert found.value.found == f"rows rejected in the slices: {SLICES * BAD}, rejects kept: {SLICES * BAD - 1}"
    check_accounts(plan.ways[1], plan.result_of(1, core), SLICES * MISSED)


def test_rows_of_an_output_that_nobody_reads_are_filtered_for_all() -> None:
    plan, core = shared(), result()
    alone = shared_plan([plan.ways[0]])
    assert alone.result_of(0, core)["shared"] == {"rows_rejected": SLICES * BAD, "rows_filtered": SLICES * MISSED}


def test_streams_that_do_not_work_need_no_connection() -> None:
    """Of all ways as many work as of that which has the fewest."""
    many, few = shared().ways
    many, few = replace(many, streams=24, connections=48), replace(few, streams=4, connections=4)
    assert [(way.streams, way.connections) for way in shared_plan([many, few]).ways] == [(4, 8), (4, 4)]


def test_the_core_is_told_a_tree() -> None:
    spec = shared().core_spec("rejects", [{"kind": "null"}, {"kind": "null"}])
    assert [own["name"] for own in spec["transforms"]] == ["keyed"]
    assert (spec["destination"], spec["input"]) == ("found", {"transform": 0, "output": 0})
    assert spec["others"] == [
        {"name": "missed", "input": {"transform": 0, "output": 1}, "sink": {"kind": "null"}, "committed": {}}
    ]
