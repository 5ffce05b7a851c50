"""Partitions from the keys of files: bounds, order, and everything that is refused before row 1."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import HeadraceError, InternalError
from headrace.model import DataType, LoadOptions, RangePartition
from headrace.planning import (
    STRAYS,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DataFlowPlan,
    DefaultRule,
    FileKeys,
    KeyFacts,
    MemoryBudget,
    OutputColumn,
    RangeRule,
    is_partitioned,
    plan_data_flow,
    table_after,
)
from headrace.planning.partitions import FilePartitions
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples

BY_KEY = RangePartition("o_orderkey")
FITTING = samples.table(
    ("o_orderkey", "int64!"), ("o_totalprice", "decimal(15,2)"), ("o_orderdate", "date"), ("o_comment", "string")
)
NO_ROW = FileKeys(None, None)


def keys(*ends: tuple[object, object]) -> list[FileKeys]:
    return [FileKeys(str(first), str(last)) for first, last in ends]


def partitioned(
    *parts: tuple[str, str | None, str | None], strategy: str = "range", key: str = "o_orderkey"
) -> CatalogTable:
    partitions = tuple(CatalogPartition(name, RangeRule(minimum, end)) for name, minimum, end in parts)
    return replace(FITTING, partitioning=CatalogPartitioning(strategy, (key,), partitions))


def plan(
    file_keys: list[FileKeys] | None,
    catalog: CatalogTable | None = None,
    *,
    slices: tuple[int, ...] = (1, 1, 1),
    streams: int = 2,
    taken_names: tuple[str, ...] = (),
    **members: Any,
) -> DataFlowPlan:
    members = {"partition": BY_KEY, "load": "staged", **members}
    return plan_data_flow(
        samples.task(**members),
        samples.files(*slices),
        catalog,
        samples.SERVER,
        MemoryBudget(1_000_000_000, 0),
        streams,
        default_schema="main",
        key_facts=KeyFacts(file_keys),
        taken_names=taken_names,
    )


def bounds(planned: DataFlowPlan) -> list[tuple[str, str | None, str | None]]:
    parts = planned.partitioning.partitions if planned.partitioning else ()
    has_strays = planned.partitioning is not None and planned.partitioning.has_strays
    strays = [(STRAYS, planned.table)] if has_strays else []
    assert [(part.name, part.table) for part in parts] + strays == [
        (table.partition, table.table) for table in planned.staging
    ]
    return [(part.table, part.rule.minimum, part.rule.end) for part in parts if isinstance(part.rule, RangeRule)]


def test_one_partition_for_each_file() -> None:
    planned = plan(keys((1, 10), (11, 20), (30, 35)))
    assert bounds(planned) == [("orders_1", "1", "11"), ("orders_2", "11", "30"), ("orders_3", "30", "36")]
    assert [table.slices for table in planned.staging] == [(1,), (2,), (3,), (1, 2, 3)]
    assert planned.connections == 4
    assert (planned.load, planned.switch) == ("staged", "attach")
    assert planned.partitioning is not None
    assert (planned.partitioning.column, planned.partitioning.way) == ("o_orderkey", "home")
    assert planned.staging[0].to_dict() == {
        "partition": "1",
        "table": "orders_1",
        "slices": [1],
        "owned": True,
    }


def test_files_are_numbered_in_the_order_of_their_keys() -> None:
    planned = plan(keys((21, 30), (11, 20), (1, 10)), slices=(2, 1, 3))
    assert bounds(planned) == [("orders_1", "1", "11"), ("orders_2", "11", "21"), ("orders_3", "21", "31")]
    assert [table.slices for table in planned.staging[:-1]] == [(4, 5, 6), (3,), (1, 2)]


def test_a_file_in_falling_order() -> None:
    assert bounds(plan(keys((10, 1), (20, 11)), slices=(1, 1))) == [("orders_1", "1", "11"), ("orders_2", "11", "21")]


def test_the_target_may_call_the_key_otherwise() -> None:
    planned = plan(keys((1, 9)), slices=(1,), columns={"id": "o_orderkey"}, partition=RangePartition("id"))
    assert planned.partitioning is not None
    assert (planned.partitioning.column, planned.partitioning.source) == ("id", "o_orderkey")


@pytest.mark.parametrize(
    ("data_type", "ends", "expected"),
    [
        ("decimal(15,2)", [("-1.50", "0.00"), ("0.01", "7.00")], [("-1.50", "0.01"), ("0.01", "7.01")]),
        ("date", [("2024-01-01", "2024-02-28")], [("2024-01-01", "2024-02-29")]),
    ],
)
def test_keys_of_other_types(data_type: str, ends: list[Any], expected: list[tuple[str, str]]) -> None:
    layout = samples.layout(o_orderkey=f"{data_type}!")
    planned = plan(keys(*ends), slices=(1,) * len(ends), layout=layout)
    assert [part[1:] for part in bounds(planned)] == expected


def test_fewer_partitions_than_streams_are_shared() -> None:
    planned = plan(keys((1, 10), (11, 20)), slices=(4, 4), streams=4)
    assert [table.owned for table in planned.staging] == [False, False, False]
    assert "2 partitions, one for each file with rows; 4 streams share them" in planned.notes
    assert any(note.startswith("no FREEZE: several streams") for note in planned.notes)
    owned = [table.owned for table in plan(keys((1, 10), (11, 20)), slices=(4, 4), streams=2).staging]
    assert owned == [True, True, False]


def test_a_file_without_a_row_has_no_partition_but_its_lines_are_read() -> None:
    planned = plan([NO_ROW, *keys((1, 10)), NO_ROW], slices=(1, 2, 1))
    assert [table.slices for table in planned.staging] == [(1, 2, 3, 4)] * 2
    assert "orders.tbl.1 and 1 more file without a key: no partition" in planned.notes


def test_without_any_row_no_partition_is_made() -> None:
    planned = plan([NO_ROW], slices=(1,))
    assert planned.partitioning is not None
    assert [part.action for part in planned.partitioning.partitions] == ["discard"]
    assert "no row has a key: no partition is made" in planned.notes
    after = table_after(planned, None)
    assert after is not None and after.partitioning is not None and after.partitioning.partitions == ()


def test_appended_partitions_are_numbered_on() -> None:
    catalog = partitioned(("orders_1", "1", "11"), ("orders_9", "11", "21"), ("orders_old", None, "0"))
    planned = plan(keys((21, 30), (31, 40)), catalog, slices=(1, 1), target="append")
    assert bounds(planned) == [("orders_10", "21", "31"), ("orders_11", "31", "41")]
    assert [table.partition for table in planned.staging] == ["1", "2", STRAYS]


def test_replaced_partitions_give_their_names_free() -> None:
    catalog = partitioned(("orders_1", "1", "11"), ("orders_2", "11", "21"))
    planned = plan(
        keys((5, 30)), catalog, slices=(1,), target="replace", taken_names=("orders", "orders_1", "orders_2")
    )
    assert bounds(planned) == [("orders_1", "5", "31")]
    assert "the partitions take the place of 2 old ones in one transaction" in planned.notes


def test_a_partition_that_stays_may_lie_between_two_files() -> None:
    catalog = partitioned(("orders_1", "15", "18"), ("orders_2", "100", None))
    planned = plan(keys((1, 10), (20, 30)), catalog, slices=(1, 1), target="append")
    assert bounds(planned) == [("orders_3", "1", "15"), ("orders_4", "20", "31")]


def test_the_default_partition_is_no_obstacle() -> None:
    catalog = replace(
        FITTING,
        partitioning=CatalogPartitioning("range", ("o_orderkey",), (CatalogPartition("rest", DefaultRule()),)),
    )
    assert bounds(plan(keys((1, 10)), catalog, slices=(1,), target="append")) == [("orders_1", "1", "11")]


def test_nothing_is_behind_the_largest_key() -> None:
    planned = plan(keys((1, 10), (11, 20), (21, 2**63 - 1)))
    assert bounds(planned)[1:] == [("orders_2", "11", "21"), ("orders_3", "21", None)]
    assert "the last partition has no upper bound: 9223372036854775807 is the largest value of int64" in planned.notes


QUOTED = samples.ORDERS.model_copy(update={"qualifier": '"'})
REFUSED: dict[str, tuple[list[FileKeys], CatalogTable | None, dict[str, Any]]] = {
    "overlap_with_partition": (keys((1, 10), (11, 20), (21, 30)), partitioned(("p", "5", "7")), {"target": "append"}),
    "overlap_with_open_end": (keys((1, 10), (11, 20), (21, 30)), partitioned(("p", "25", None)), {"target": "append"}),
    "overlap_without_end": (
        keys((1, 10), (11, 20), (21, 2**63 - 1)),
        partitioned(("p", str(2**63 - 1), None)),
        {"target": "append"},
    ),
    "no_such_column": (keys((1, 2)), None, {"partition": RangePartition("o_key")}),
    "text": (keys((1, 2)), None, {"partition": RangePartition("o_comment")}),
    "qualifier": (keys((1, 2)), None, {"layout": QUOTED}),
    "plain_table": (keys((1, 2)), FITTING, {}),
    "other_strategy": (keys((1, 2)), partitioned(strategy="hash"), {}),
    "other_key": (keys((1, 2)), partitioned(key="o_orderdate"), {}),
    "other_type": (
        keys((1, 2)),
        replace(
            samples.table(("o_orderkey", "decimal(20,1)!")),
            partitioning=CatalogPartitioning("range", ("o_orderkey",), ()),
        ),
        {"columns": {"o_orderkey": "o_orderkey"}},
    ),
    "taken_name": (keys((1, 10), (11, 20), (21, 30)), None, {"taken_names": ("orders_2",)}),
    "triggers": (keys((1, 10), (11, 20), (21, 30)), replace(partitioned(), triggers=("audit",)), {}),
    "checks": (
        keys((1, 10), (11, 20), (21, 30)),
        replace(partitioned(), checks=("positive",)),
        {"options": LoadOptions(check_constraints=False)},
    ),
    "numbered_key": (
        keys((1, 10), (11, 20), (21, 30)),
        replace(
            samples.table(("o_orderkey", "int64!#")), partitioning=CatalogPartitioning("range", ("o_orderkey",), ())
        ),
        {"columns": {"o_orderkey": "o_orderkey"}, "options": LoadOptions(keep_identity=False)},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    file_keys, catalog, members = REFUSED[case]
    with pytest.raises(HeadraceError) as caught:
        plan(file_keys, catalog, **members)
    assert_snapshot(f"partition_{case}", caught.value.render())


def test_a_plan_needs_the_keys() -> None:
    with pytest.raises(InternalError):
        plan(None)


def test_which_flows_have_partitions() -> None:
    assert is_partitioned(samples.task(load="staged", partition=BY_KEY), samples.SERVER)
    assert not is_partitioned(samples.task(load="single", partition=BY_KEY), samples.SERVER)
    assert not is_partitioned(samples.task(load="staged"), samples.SERVER)
    assert not is_partitioned(samples.task(load="staged", partition=BY_KEY), samples.STORING)


KEY = OutputColumn("k", "k", DataType.parse("int64"), False)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40, unique=True), st.randoms(use_true_random=False))
def test_partitions_follow_each_other_without_a_gap(numbers: list[int], random: Any) -> None:
    """Any files that do not overlap, in any order: every key of a file is inside its partition, and in no other."""
    numbers = sorted(numbers)[: len(numbers) // 2 * 2]
    files = list(zip(numbers[::2], numbers[1::2], strict=True))
    random.shuffle(files)
    source = samples.files(*(1 for _ in files))
    partitions = FilePartitions(source, KEY, "t").plan(keys(*files), (), []).parts
    ranges = [
        (int(part.rule.minimum or 0), int(part.rule.end or 0))
        for part in partitions
        if isinstance(part.rule, RangeRule)
    ]
    assert all(earlier[1] == later[0] for earlier, later in itertools.pairwise(ranges))
    for partition, (minimum, end) in zip(partitions, ranges, strict=True):
        (number,) = partition.slices
        first, last = files[number - 1]
        assert minimum == first <= last < end
