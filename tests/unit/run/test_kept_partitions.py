"""How a table is divided stays what it was when the run started, however often it is resumed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import LedgerError
from headrace.model import HashPartition
from headrace.planning import DataFlowPlan, KeyFacts, MemoryBudget, RunPlan, plan_data_flow
from headrace.run import request as requests
from headrace.run.folder import RunFolder
from headrace.run.redact import Redactor
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples

NOW = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)
NOBODY = Redactor(())
ANSWERS = {"load_orders": {"cpus": 3, "reply": {"files": [{"first": "1", "last": "2"}]}}, "other": {"cpus": 3}}


def flow(parts: int, **members: Any) -> DataFlowPlan:
    return plan_data_flow(
        samples.task(**{"partition": HashPartition("o_orderkey", parts), "load": "staged", **members}),
        samples.files(1, 1),
        None,
        samples.SERVER,
        MemoryBudget(1_000_000_000, 0),
        2,
        default_schema="main",
        key_facts=KeyFacts(),
    )


def run_plan(*flows: DataFlowPlan) -> RunPlan:
    return RunPlan("p", "hash", 2, 1_000_000_000, flows)


def test_the_answers_about_keys_are_kept(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, NOW)
    assert requests.load_keys(folder, ["load_orders"], NOBODY) == {}
    requests.check_partitions(folder, run_plan(flow(2)), NOBODY)
    requests.save_partitions(folder, ANSWERS, run_plan(flow(2)), NOBODY)
    assert requests.load_keys(folder, ["load_orders"], NOBODY) == {"load_orders": ANSWERS["load_orders"]}
    requests.check_partitions(folder, run_plan(flow(2)), NOBODY)
    requests.check_partitions(folder, run_plan(), NOBODY)


def test_names_of_tasks_that_hold_a_secret_are_not_written(tmp_path: Path) -> None:
    folder, redactor = RunFolder.create(tmp_path, NOW), Redactor(("load_orders",))
    requests.save_partitions(folder, ANSWERS, run_plan(flow(2)), redactor)
    assert "load_orders" not in folder.partitions.read_text()
    assert requests.load_keys(folder, ["load_orders"], redactor) == {"load_orders": ANSWERS["load_orders"]}


@pytest.mark.parametrize(
    ("case", "now"),
    [
        ("other_parts", flow(5)),
        ("none", flow(2, load="single")),
    ],
)
def test_another_division_is_refused(tmp_path: Path, case: str, now: DataFlowPlan) -> None:
    folder = RunFolder.create(tmp_path, NOW)
    requests.save_partitions(folder, ANSWERS, run_plan(flow(2)), NOBODY)
    with pytest.raises(LedgerError) as caught:
        requests.check_partitions(folder, run_plan(now), NOBODY)
    assert_snapshot(f"resumed_division_{case}", caught.value.render().replace(folder.run_id, "RUN"))
