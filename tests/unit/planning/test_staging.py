"""Targets with hidden tables: what is loaded where, how it becomes the target, and what the plan says about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.model import LoadOptions, RangePartition
from headrace.planning import (
    WHOLE_TABLE,
    Capabilities,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DataFlowPlan,
    FileKeys,
    KeyFacts,
    MemoryBudget,
    RangeRule,
    plan_data_flow,
    table_after,
)
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples

FITTING = samples.table(
    ("o_orderkey", "int64!"), ("o_totalprice", "decimal(15,2)"), ("o_orderdate", "date"), ("o_comment", "string")
)
INDEXED = replace(FITTING, indexes=("PRIMARY KEY (o_orderkey)",))
WATCHED = replace(FITTING, prevents_rename=("view daily", "trigger audit"))
DIVIDED = replace(
    FITTING,
    partitioning=CatalogPartitioning("range", ("o_orderkey",), (CatalogPartition("orders_1", RangeRule("1", "9")),)),
)
VIEW = replace(FITTING, kind="view", view_tables=("orders_1", "orders_2"))
BY_KEY = RangePartition("o_orderkey")
KEYS = [FileKeys("1", "9"), FileKeys("10", "19")]


def plan(
    catalog: CatalogTable | None = None,
    *,
    streams: int = 2,
    slices: tuple[int, ...] = (2, 2),
    capabilities: Capabilities = samples.SERVER,
    taken_names: tuple[str, ...] = (),
    **members: Any,
) -> DataFlowPlan:
    return plan_data_flow(
        samples.task(**members),
        samples.files(*slices),
        catalog,
        capabilities,
        MemoryBudget(1_000_000_000, 0),
        streams,
        default_schema="main",
        key_facts=KeyFacts(KEYS),
        taken_names=taken_names,
    )


def text(planned: DataFlowPlan) -> str:
    """What the plan decides and says."""
    tables = [
        f"{table.partition or '-'} {table.table} {table.slices} {'owned' if table.owned else 'shared'}"
        for table in planned.staging
    ]
    steps = [f"{step.kind}: {step.text}" for step in planned.steps]
    return "\n".join([f"{planned.load}, {planned.switch}", *tables, "", *planned.notes, "", *steps])


PLANS: dict[str, tuple[CatalogTable | None, dict[str, Any]]] = {
    "new": (None, {"target": "create"}),
    "new_one_stream": (None, {"streams": 1, "slices": (1,)}),
    "append": (FITTING, {"target": "append"}),
    "append_one_stream": (FITTING, {"target": "append", "streams": 1, "options": LoadOptions(lock=True, analyze=True)}),
    "append_to_keys": (INDEXED, {"target": "append", "options": LoadOptions(lock=True)}),
    "rename": (INDEXED, {"options": LoadOptions(check_constraints=False, analyze=True)}),
    "rename_indexes_before": (INDEXED, {"options": LoadOptions(indexes="before")}),
    "move": (WATCHED, {}),
    "single_into_partitions": (DIVIDED, {"partition": BY_KEY}),
    "staged_new": (None, {"load": "staged", "partition": BY_KEY}),
    "staged_shared": (None, {"load": "staged", "partition": BY_KEY, "streams": 4}),
    "staged_replace": (replace(DIVIDED, indexes=("orders_key",)), {"load": "staged", "partition": BY_KEY}),
    "staged_without_clause": (None, {"load": "staged"}),
    "view_new": (None, {"load": "view", "streams": 3}),
    "view_replace": (VIEW, {"load": "view", "taken_names": ("orders", "orders_1", "orders_2")}),
    "view_append": (VIEW, {"load": "view", "target": "append", "taken_names": ("orders", "orders_1", "orders_2")}),
}


@pytest.mark.parametrize("case", PLANS)
def test_plan(case: str) -> None:
    catalog, members = PLANS[case]
    assert_snapshot(f"staging_{case}", text(plan(catalog, **members)))


REFUSED: dict[str, tuple[CatalogTable | None, dict[str, Any]]] = {
    "replace_prevented": (replace(FITTING, prevents_replace=("the missing right to TRUNCATE it",)), {}),
    "locked_by_several": (FITTING, {"target": "append", "options": LoadOptions(lock=True)}),
    "checks_of_append": (
        replace(FITTING, checks=("positive",)),
        {"target": "append", "options": LoadOptions(check_constraints=False)},
    ),
    "view_over_table": (FITTING, {"load": "view"}),
    "view_of_others": (replace(FITTING, kind="view"), {"load": "view"}),
    "view_exists": (VIEW, {"load": "view", "target": "create"}),
    "view_with_more_columns": (VIEW, {"load": "view", "columns": {"o_orderkey": "o_orderkey"}}),
    "table_over_view": (VIEW, {}),
    "view_taken_name": (None, {"load": "view", "taken_names": ("orders_2",)}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    catalog, members = REFUSED[case]
    with pytest.raises(HeadraceError) as caught:
        plan(catalog, **members)
    assert_snapshot(f"staging_refused_{case}", caught.value.render())


def test_a_whole_table_has_the_name_of_no_partition() -> None:
    (table,) = plan(FITTING).staging
    assert (table.partition, table.table) == (WHOLE_TABLE, "orders")
    assert table.slices == (1, 2, 3, 4)


@pytest.mark.parametrize(("streams", "slices"), [(1, (1,)), (3, (1, 1, 1)), (4, (9, 1, 1)), (5, (2, 3, 8)), (7, (40,))])
def test_the_tables_of_a_view_share_the_slices(streams: int, slices: tuple[int, ...]) -> None:
    tables = plan(load="view", streams=streams, slices=slices).staging
    assert len(tables) == streams
    numbers = [number for table in tables for number in table.slices]
    assert numbers == list(range(1, sum(slices) + 1))
    sizes = [len(table.slices) for table in tables]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def test_a_server_without_log_for_new_tables_is_said() -> None:
    skipping = replace(samples.SERVER, skips_log=True)
    notes = plan(streams=1, capabilities=skipping).notes
    assert "FREEZE, no WAL: every table is made in the transaction that fills it" in notes
    assert not any("FREEZE" in note for note in plan(streams=1, capabilities=replace(skipping, freezes=False)).notes)


def test_columns_that_the_table_numbers() -> None:
    others = (("o_totalprice", "decimal(15,2)"), ("o_orderdate", "date"), ("o_comment", "string"))
    numbered = samples.table(("o_orderkey", "int64!#="), *others)
    assert [column.source for column in plan(numbered).columns] == ["o_orderkey", *(name for name, _ in others)]
    left = plan(numbered, options=LoadOptions(keep_identity=False))
    assert [column.source for column in left.columns] == ["o_totalprice", "o_orderdate", "o_comment"]
    assert left.notes[:2] == (
        "`o_orderkey` of the source is not loaded, because of `keep_identity: false`",
        "`o_orderkey` is numbered by the table",
    )


def test_options_that_the_target_does_not_have_are_named() -> None:
    notes = plan(options=LoadOptions(lock=True, analyze=True), capabilities=samples.STORING).notes
    assert notes == ("`lock` has no effect in sample", "`analyze` has no effect in sample")


def test_a_partition_clause_that_is_not_used_is_named() -> None:
    assert "load is single: the partition clause is not used" in plan(partition=BY_KEY).notes
    notes = plan(load="staged", partition=BY_KEY, capabilities=samples.STORING).notes
    assert notes == ("sample has no partitions: load is single",)


def test_later_tasks_see_the_partitions_of_an_earlier_one() -> None:
    first = plan(load="staged", partition=BY_KEY)
    after = table_after(first, None)
    assert after is not None
    assert after.partitioning == CatalogPartitioning(
        "range",
        ("o_orderkey",),
        (CatalogPartition("orders_1", RangeRule("1", "10")), CatalogPartition("orders_2", RangeRule("10", "20"))),
    )
    with pytest.raises(HeadraceError, match="overlaps a partition"):
        plan(after, load="staged", partition=BY_KEY, target="append")
    replaced = table_after(plan(DIVIDED, load="staged", partition=BY_KEY), DIVIDED)
    assert replaced is not None
    assert replaced.partitioning == after.partitioning


def test_later_tasks_see_the_view_of_an_earlier_one() -> None:
    after = table_after(plan(load="view"), None)
    assert after is not None
    assert (after.kind, after.view_tables) == ("view", ("orders_1", "orders_2"))
    appended = plan(after, load="view", target="append")
    assert [table.table for table in appended.staging] == ["orders_3", "orders_4"]
    more = table_after(appended, after)
    assert more is not None
    assert more.view_tables == ("orders_1", "orders_2", "orders_3", "orders_4")
