"""The accounts of a query over all rows: what it has made is what is read of it, and what is kept fits the ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import AccountsError
from headrace.executors import (
    FlowOutcome,
    check_gathered,
    gathered_counts,
    keep_gathered,
    keep_gathered_in_front,
    kept_gathered,
)
from headrace.model import DataType, EmbeddedQuery, GatheredSource
from headrace.model.gathered_query import described_gathered
from headrace.model.row_query import RowColumnType
from headrace.planning import DataFlowPlan, GatherPlan
from headrace.targets import LoadTimes
from tests.snapshots import assert_snapshot
from tests.unit.executors import fake_flow
from tests.unit.planning import samples

SLICES = 3
MADE = 7


def gathered_plan() -> DataFlowPlan:
    plan, sql = fake_flow.plan(SLICES), "SELECT count(*) AS n FROM orders"
    query = described_gathered(EmbeddedQuery(sql, sql), "orders", [RowColumnType("id", DataType.parse("int64"))])
    task = samples.task()
    source = GatheredSource("counted", query, sql, task.source.layout, task)
    return replace(plan, gather=GatherPlan(source, plan, 1))


def before() -> FlowOutcome:
    return FlowOutcome(fake_flow.result(SLICES, 2), LoadTimes(0.0, 0.0, 0.0, MADE), None, 0.0, 0.0)


def behind(rows: int) -> dict[str, Any]:
    result = fake_flow.result(1, 1)
    result["slices"][0].update(rows=rows, out=rows, lines=rows)
    return result


def test_rows_that_were_not_read_are_told() -> None:
    plan = gathered_plan()
    check_gathered(plan, before(), behind(MADE))
    with pytest.raises(AccountsError) as caught:
        check_gathered(plan, before(), behind(MADE - 1))
    assert_snapshot("accounts_gathered", caught.value.render())


def test_what_is_kept_is_found_if_it_fits(tmp_path: Path) -> None:
    plan = gathered_plan()
    keep_gathered(tmp_path, [plan], 0, before(), behind(MADE))
    stem = plan.told.file_stem
    kept = kept_gathered(tmp_path, stem, MADE)
    assert kept is not None
    rows = SLICES * fake_flow.SLICE_ROWS
    assert sum(int(item["rows"]) for item in kept["slices"]) == rows
    assert {(item["stream"], item["bytes"], item["committed"]) for item in kept["slices"]} == {(None, 0, True)}
    assert kept["gathered"] == gathered_counts(plan, kept) == {"rows_in": rows, "rows_out": MADE, "filtered_behind": 0}
    assert kept_gathered(tmp_path, stem, MADE + 1) is None
    assert kept_gathered(tmp_path, "other", MADE) is None
    file = tmp_path / f"{stem}.gathered.json"
    file.write_text("[]")
    assert kept_gathered(tmp_path, stem, MADE) is None


def test_what_is_known_in_front_is_completed_by_the_ledger(tmp_path: Path) -> None:
    plan = gathered_plan()
    keep_gathered_in_front(tmp_path, [plan], before())
    stem, (file,) = plan.told.file_stem, tmp_path.iterdir()
    keep_gathered(tmp_path / "whole", [plan], 0, before(), behind(MADE))
    whole, kept = kept_gathered(tmp_path / "whole", stem, MADE), kept_gathered(tmp_path, stem, MADE)
    assert whole is not None and kept is not None
    assert kept["gathered"] == whole["gathered"]
    assert [item["out"] for item in kept["slices"]] == [item["out"] for item in whole["slices"]] == [MADE, 0, 0]
    # Nothing behind the query leaves rows out.
    assert kept_gathered(tmp_path, stem, MADE - 1) is None
    file.write_text(json.dumps({**json.loads(file.read_text()), "is_changed_behind": True}))
    fewer = kept_gathered(tmp_path, stem, MADE - 1)
    assert fewer is not None and fewer["gathered"] == {**whole["gathered"], "filtered_behind": 1}
    assert kept_gathered(tmp_path, stem, MADE + 1) is None


def test_that_it_cannot_be_kept_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    keep_gathered(tmp_path / "file", [gathered_plan()], 0, before(), behind(MADE))
