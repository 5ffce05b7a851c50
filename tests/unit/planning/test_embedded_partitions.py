"""Partitions where one merged stream brings all rows: `merged` into a table for each, and `whole` in one table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace import core
from headrace.errors import HeadraceError
from headrace.model import Every, HashPartition, ListPartition, PartitionSettings, Quantiles, RangePartition
from headrace.planning import (
    CatalogTable,
    DataFlowPlan,
    DefaultRule,
    FileKeys,
    KeyFacts,
    KeyScan,
    ListRule,
    Partitioning,
    RangeRule,
)
from tests.snapshots import assert_snapshot
from tests.unit.planning import divided, samples
from tests.unit.planning.divided import BY_DATE, HASHED, LISTED, LISTS, MONTHLY, MONTHS, SCAN, TABLE, WINDOW

DEFAULT = PartitionSettings("default")
JANUARY = KeyFacts(scan=KeyScan(1, 0, ("2024-01-01",)))
CHARS = ListPartition("o_country", (("eu", ("FR", "DE")), ("rest", (None,))))


def view(table: CatalogTable) -> CatalogTable:
    """The same as a view that a load has made: each partition is a table that it shows."""
    assert table.partitioning is not None
    return replace(table, kind="view", view_tables=tuple(part.name for part in table.partitioning.partitions))


def plan(clause: Any, catalog: CatalogTable | None = None, **members: Any) -> DataFlowPlan:
    return divided.plan(clause, catalog, **{"capabilities": samples.EMBEDDED, "load": "view", **members})


MERGED: dict[str, tuple[Any, CatalogTable | None, dict[str, Any]]] = {
    "bounds": (BY_DATE, None, {"target": "create"}),
    "months_replace": (MONTHS, view(MONTHLY), {"facts": SCAN}),
    "months_append": (MONTHS, view(MONTHLY), {"facts": SCAN, "target": "append"}),
    "one_month": (MONTHS, view(MONTHLY), {"facts": JANUARY, "target": "append"}),
    "window": (WINDOW, view(MONTHLY), {"facts": SCAN, "target": "append"}),
    "reload": (MONTHS, view(MONTHLY), {"partitions": ("orders_2024_01", "orders_2023_10")}),
    "reload_one": (LISTS, view(LISTED), {"partitions": ("orders_lost",)}),
    "lists_append": (replace(LISTS, settings=DEFAULT), view(LISTED), {"target": "append"}),
    "lists_of_char": (CHARS, None, {}),
    "hash": (HashPartition("o_orderkey", 3), None, {}),
    "hash_append": (HashPartition("o_orderkey"), view(HASHED), {"target": "append"}),
    "parts": (RangePartition("o_orderkey", Quantiles(4)), None, {"facts": SCAN}),
    "files": (
        RangePartition("o_orderkey"),
        None,
        {"facts": KeyFacts([FileKeys("1", "9"), FileKeys("5", "19")])},
    ),
    "more_than_writers": (
        RangePartition("o_orderkey", Every("1", None, "0", "4")),
        None,
        {"capabilities": replace(samples.EMBEDDED, shared_writers=3)},
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_a_table_for_each_partition(case: str) -> None:
    clause, catalog, members = MERGED[case]
    planned = plan(clause, catalog, **members)
    assert_snapshot(f"merged_{case}", divided.text(planned))
    division = planned.partitioning
    assert division is not None
    assert (division.way, division.has_tables, division.has_strays) == ("merged", True, False)
    assert (planned.switch, planned.staging) == ("view", ())
    assert Partitioning.from_dict(json.loads(json.dumps(division.to_dict()))) == division
    core.Flow(planned.flow_spec("/run/rejects", {"kind": "null"}))


WIDER = samples.table(("o_orderdate", "date"), ("o_extra", "string"))
REFUSED: dict[str, tuple[Any, CatalogTable | None, dict[str, Any]]] = {
    "hash_of_an_unknown_key": (
        HashPartition("o_orderkey", 2),
        None,
        {"capabilities": replace(samples.EMBEDDED, hash_keys={})},
    ),
    "lists_that_the_core_does_not_know": (
        CHARS,
        None,
        {"capabilities": replace(samples.EMBEDDED, core_routes=samples.SERVER.core_routes)},
    ),
    "no_row": (MONTHS, None, {"facts": KeyFacts(scan=KeyScan(0, 0))}),
    "all_null": (MONTHS, None, {"facts": KeyFacts(scan=KeyScan(5, 5))}),
    "table": (MONTHS, TABLE, {"facts": SCAN}),
    "view_of_somebody": (MONTHS, replace(TABLE, kind="view"), {"facts": SCAN}),
    "other_strategy": (LISTS, view(MONTHLY), {"target": "append"}),
    "no_clause": (None, None, {}),
    "column_that_is_not_filled": (
        MONTHS,
        view(divided.existing("range", "o_orderdate", WIDER, orders_1=RangeRule(None, "2024-01-01"))),
        {"facts": SCAN, "target": "append", "columns": {"o_orderdate": "o_orderdate"}},
    ),
    "one_table_loaded_anew": (MONTHS, TABLE, {"load": "staged", "partitions": ("orders_2024_01",)}),
    "view_as_one_table": (MONTHS, view(MONTHLY), {"load": "staged"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    clause, catalog, members = REFUSED[case]
    with pytest.raises(HeadraceError) as caught:
        plan(clause, catalog, **members)
    assert_snapshot(f"merged_refused_{case}", caught.value.render())


FROM_2024 = RangePartition("o_orderdate", Every("1", "month", "2024-01-01"))
NULLABLE = samples.layout(o_orderkey="int64!", o_orderdate="date", o_status="varchar(5)")
WHOLE: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "bounds": (BY_DATE, {}, None),
    "bounds_without_null": (BY_DATE, {"layout": NULLABLE}, RangeRule(None, None)),
    "months": (RangePartition("o_orderdate", Every("1", "month")), {}, None),
    "months_from": (FROM_2024, {}, RangeRule("2024-01-01", None)),
    "months_between": (
        RangePartition("o_orderdate", Every("1", "month", "2023-12-01", "2024-03-01")),
        {"layout": NULLABLE},
        RangeRule("2023-12-01", "2024-03-01"),
    ),
    "outside_into_default": (replace(FROM_2024, settings=DEFAULT), {"layout": NULLABLE}, None),
    "files": (RangePartition("o_orderkey"), {}, None),
    "parts": (RangePartition("o_orderkey", Quantiles(4)), {}, None),
    "lists": (LISTS, {}, ListRule(("O", None, "F", "P"))),
    "lists_and_default": (replace(LISTS, settings=DEFAULT), {}, None),
    "hash": (HashPartition("o_orderkey", 3), {}, None),
}


@pytest.mark.parametrize("case", WHOLE)
def test_one_table_keeps_the_declaration(case: str) -> None:
    """No scan of keys is needed for it, and none is asked for."""
    clause, members, rule = WHOLE[case]
    planned = plan(clause, **{"load": "staged", **members})
    assert_snapshot(f"whole_{case}", divided.text(planned))
    assert (planned.load, planned.switch, planned.staging) == ("single", "none", ())
    if rule is None:
        assert planned.partitioning is None
        return
    division = planned.partitioning
    assert division is not None
    [part] = division.partitions
    assert (part.rule, part.table, part.name) == (rule, "orders", "")
    assert (division.way, division.has_tables, division.drops) == ("whole", False, ())
    assert Partitioning.from_dict(json.loads(json.dumps(division.to_dict()))) == division
    core.Flow(planned.flow_spec("/run/rejects", {"kind": "null"}))


def test_one_table_without_a_rule() -> None:
    """`single` says that nothing is divided, and nothing is checked."""
    planned = plan(LISTS, load="single")
    assert planned.partitioning is None
    assert not any("outside" in note for note in planned.notes)


def test_a_default_partition_comes_last() -> None:
    planned = plan(replace(BY_DATE, settings=DEFAULT))
    assert planned.partitioning is not None
    rules = [part.rule for part in planned.partitioning.partitions]
    assert [isinstance(rule, DefaultRule) for rule in rules] == [False, False, False, True]
    assert planned.flow_spec("/run/rejects", {})["routing"]["default"] == 3
