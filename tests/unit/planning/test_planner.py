"""Plans of data flows: what is decided, what is said, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import HeadraceError, TargetError, TypeMismatchError
from headrace.model import DataFlowTask, DataType
from headrace.planning import (
    Capabilities,
    CatalogTable,
    DataFlowPlan,
    MemoryBudget,
    Partition,
    Partitioning,
    RangeRule,
    plan_data_flow,
    plan_source_pass,
    table_after,
)
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples

FITTING = samples.table(
    ("o_orderkey", "int64!"), ("o_totalprice", "decimal(15,2)"), ("o_orderdate", "date"), ("o_comment", "string")
)


SINK = {"kind": "arrow", "columns": ["o_orderkey"]}


def plan(
    task: DataFlowTask,
    catalog: CatalogTable | None = None,
    capabilities: Capabilities = samples.STORING,
    streams: int = 4,
    slices: int = 4,
) -> DataFlowPlan:
    return plan_data_flow(
        task,
        samples.source(slices),
        catalog,
        capabilities,
        MemoryBudget(1_000_000_000, 2),
        streams,
        default_schema="main",
    )


def steps(planned: DataFlowPlan) -> list[str]:
    return [step.kind for step in planned.steps]


@pytest.mark.parametrize(
    ("target", "catalog", "first"),
    [
        ("create", None, ["create_table", "insert"]),
        ("append", None, ["create_table", "insert"]),
        ("replace", None, ["create_table", "insert"]),
        ("append", FITTING, ["insert", "check_accounts"]),
        ("replace", FITTING, ["delete_rows", "insert"]),
    ],
)
def test_steps(target: Any, catalog: CatalogTable | None, first: list[str]) -> None:
    kinds = steps(plan(samples.task(target=target), catalog))
    assert kinds[:2] == first
    assert kinds[-3:] == ["check_accounts", "commit_slices", "commit"]


def test_plan_is_json_ready_and_complete() -> None:
    document = plan(samples.task(load="staged")).to_dict()
    assert_snapshot("plan", json.dumps(document, indent=1))


def test_staged_without_partition_is_single_and_says_so() -> None:
    planned = plan(samples.task(load="staged"))
    assert planned.load == "single"
    assert "no partition clause: load is single" in planned.notes


def test_an_index_is_named_with_its_price() -> None:
    (note,) = plan(samples.task(), replace(FITTING, indexes=("PRIMARY KEY(o_orderkey)",))).notes
    assert note.startswith("warehouse.orders has PRIMARY KEY(o_orderkey): an index needs memory")


def test_single_has_no_note() -> None:
    assert plan(samples.task()).notes == ()


def test_streams_without_a_slice_are_not_started() -> None:
    planned = plan(samples.task(), streams=8, slices=3)
    assert planned.streams == 3
    assert planned.notes == ("3 of 8 streams work, because there are 3 slices",)
    assert planned.flow_spec("/run/rejects", SINK)["streams"] == 3


def test_one_slice_has_one_commit_row() -> None:
    assert [step.text for step in plan(samples.task(), slices=1).steps if step.kind == "commit_slices"] == [
        "write 1 commit row to the ledger"
    ]


def test_an_empty_source_still_has_one_stream() -> None:
    assert plan(samples.task(), streams=8, slices=0).streams == 1


def test_flow_spec_has_the_sink_of_the_target() -> None:
    spec = plan(samples.task()).flow_spec("/run/rejects", SINK)
    assert spec["sink"] == SINK
    assert spec["rejects"] == {
        "limit": 0,
        "per_million": None,
        "folder": "/run/rejects",
        "file_stem": "orders",
        "keep": "files",
    }


def test_a_target_that_discards_has_no_transaction() -> None:
    planned = plan(samples.task(load="view"), capabilities=samples.DISCARDING)
    assert steps(planned) == ["insert", "check_accounts"]
    assert planned.sink_kind == "null"
    assert planned.schema is None


def test_not_null_column_of_the_table_makes_null_a_reject() -> None:
    catalog = samples.table(
        ("o_orderkey", "int64"), ("o_totalprice", "decimal(15,2)!"), ("o_orderdate", "date"), ("o_comment", "string")
    )
    planned = plan(samples.task(), catalog)
    nullable = {column["name"]: column["nullable"] for column in planned.layout["columns"]}
    assert nullable == {"o_orderkey": False, "o_totalprice": False, "o_orderdate": True, "o_comment": True}
    assert planned.notes == ("a NULL in `o_totalprice` is a reject, because `o_totalprice` is NOT NULL",)


def test_target_columns_without_source() -> None:
    catalog = samples.table(
        *((column.name, str(column.type)) for column in FITTING.columns),
        ("loaded_at", "date!="),
        ("remark", "string"),
        ("year", "int32*"),
    )
    assert plan(samples.task(), catalog).notes == (
        "`loaded_at` gets its default, because the source has no such column",
        "`remark` stays NULL, because the source has no such column",
    )


def test_chosen_columns_say_what_is_left_out() -> None:
    planned = plan(samples.task(columns={"o_orderkey": "o_orderkey"}))
    assert planned.notes == ("not loaded, because `columns` does not list them: o_totalprice, o_orderdate, o_comment",)


def test_names_match_without_case_where_the_target_says_so() -> None:
    catalog = samples.table(*((column.name.upper(), str(column.type)) for column in FITTING.columns))
    planned = plan(samples.task(), catalog)
    assert [column.target for column in planned.columns] == [column.name for column in catalog.columns]
    with pytest.raises(TypeMismatchError):
        plan(samples.task(), catalog, samples.CASE_SENSITIVE)


def test_later_tasks_see_the_table_that_an_earlier_one_creates() -> None:
    first = plan(samples.task(target="create"))
    created = table_after(first, None)
    assert created is not None
    assert steps(plan(samples.task(target="append"), created))[0] == "insert"
    with pytest.raises(TargetError, match="exists already"):
        plan(samples.task(target="create"), created)


WIDE = samples.layout(a="int64", b="decimal(15,4)", c="varchar(10)", d="date", e="int64")
REFUSED: dict[str, tuple[DataFlowTask, CatalogTable | None]] = {
    "create_existing": (samples.task(target="create"), FITTING),
    "view_not_offered": (samples.task(load="view"), FITTING),
    "replace_of_a_referenced_table": (
        samples.task(target="replace"),
        replace(FITTING, referenced_by=("lineitem", "returns")),
    ),
    "into_a_view": (samples.task(), samples.table(("o_orderkey", "int64"), kind="view")),
    "every_difference": (
        samples.task(layout=WIDE),
        samples.table(
            ("a", "int32"), ("b", "decimal(15,2)"), ("cc", "string"), ("d", "date*"), ("e", "STRUCT"), ("f", "date!")
        ),
    ),
    "no_such_type": (samples.task(layout=samples.layout(a="uuid")), None),
    "unknown_source_column": (samples.task(columns={"id": "o_orderkeys"}), None),
    "two_into_one": (
        samples.task(columns={"o_orderkey": "o_orderkey", "O_ORDERKEY": "o_totalprice"}),
        samples.table(("o_orderkey", "int64")),
    ),
    "same_name": (samples.task(columns={"id": "o_orderkey", "ID": "o_comment"}), None),
    "other_schema": (samples.task(target="create", schema="mart"), FITTING),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refused(case: str) -> None:
    task, catalog = REFUSED[case]
    with pytest.raises(HeadraceError) as caught:
        plan(task, catalog)
    assert_snapshot(f"refused_{case}", caught.value.render())


def test_a_source_pass_rejects_what_no_partition_took() -> None:
    table = samples.table(("o_orderkey", "int64!"), ("o_totalprice", "decimal(15,2)"), ("o_orderdate", "date"))
    catalog = replace(table, columns=(*table.columns, *samples.table(("o_comment", "string")).columns))
    rule = RangeRule("1", None)
    part = Partition("1", "orders_1", rule)
    division = Partitioning("range", "o_orderkey", "o_orderkey", DataType.parse("int64"), "home", (part,))
    planned = plan_source_pass(
        samples.task(),
        samples.source(),
        catalog,
        samples.SERVER,
        MemoryBudget(1_000_000_000, 0),
        2,
        partitioning=division,
    )
    assert planned.flow_spec("/rejects", {"kind": "null"})["routing"] == {
        "column": "o_orderkey",
        "method": {"range": [{"minimum": "1", "end": None}]},
        "default": None,
    }
