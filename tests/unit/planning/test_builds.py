"""Plans of builds: what is said of a divided table, who fills which partition, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import TargetError
from headrace.model import DataType, HashPartition, ListPartition, PartitionClause, RangePartition
from headrace.model.connections import PostgresConnection
from headrace.model.conninfo import ConnectionParameters
from headrace.planning import (
    Build,
    CatalogColumn,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DataFlowPlan,
    HashRule,
    Partition,
    Partitioning,
    QueryColumn,
    own_partitions,
    plan_build,
)
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from tests.snapshots import assert_snapshot

WAREHOUSE = PostgresConnection("warehouse", ConnectionParameters(hosts=(("localhost", 5432),), database="d", user="u"))
COLUMNS = (
    QueryColumn("id", "bigint", DataType("int64")),
    QueryColumn("name", "character varying(10)", DataType("varchar", length=10)),
    QueryColumn("several", "integer[]", None),
)
HASH = HashPartition("id", 4)


def plan(
    clause: PartitionClause | None, *, catalog: CatalogTable | None = None, parts: int = 1, by_hash: str | None = None,
    capabilities: object = POSTGRES_CAPABILITIES, target: Literal["append", "replace"] = "replace",
) -> DataFlowPlan:  # fmt: skip
    build = Build("build", WAREHOUSE, None, "sales", target, clause, by_hash)
    return plan_build(build, COLUMNS, catalog, capabilities, "public", parts, cpus=2)  # type: ignore[arg-type]


def shown(planned: DataFlowPlan) -> str:
    steps = [f"{step.kind}: {step.text}" for step in planned.steps]
    return "\n".join([f"load {planned.load}, switch {planned.switch}", *planned.notes, *steps])


def existing(strategy: str, key: str) -> CatalogTable:
    columns = tuple(CatalogColumn(item.name, item.type, item.native_type, True) for item in COLUMNS)
    parts = tuple(CatalogPartition(f"old_{number}", HashRule(3, number)) for number in range(3))
    return CatalogTable(
        "public", "sales", columns, partitioning=CatalogPartitioning(strategy, (key,), parts)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        ("build_hash_own", lambda: plan(HASH, parts=2, by_hash="id")),
        ("build_hash_of_cpus", lambda: plan(HashPartition("id"), parts=3, by_hash="id")),
        ("build_range", lambda: plan(RangePartition("id", ("10", "20")), parts=2)),
        ("build_list_existing", lambda: plan(HashPartition("id"), catalog=existing("hash", "id"))),
        ("build_hash_duckdb", lambda: plan(HASH, capabilities=DUCKDB_CAPABILITIES)),
        ("build_list_duckdb", lambda: plan(ListPartition("name", (("a", ("x",)),)), capabilities=DUCKDB_CAPABILITIES)),
    ],
)
def test_what_a_plan_says(name: str, planned: object) -> None:
    assert_snapshot(name, shown(planned()))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "planned"),
    [
        ("build_other_strategy", lambda: plan(HASH, catalog=existing("list", "id"))),
        ("build_other_key", lambda: plan(HASH, catalog=existing("hash", "name"))),
        ("build_not_divided", lambda: plan(HASH, catalog=replace(existing("hash", "id"), partitioning=None))),
        ("build_no_such_key", lambda: plan(HashPartition("nothing", 2))),
    ],
)
def test_what_is_refused(name: str, planned: object) -> None:
    with pytest.raises(TargetError) as caught:
        planned()  # type: ignore[operator]
    error = caught.value
    assert_snapshot(name, f"{error.what}\n{error.found}\n{error.expected}\n{error.hint}")


@given(st.integers(1, 20), st.integers(1, 30))
def test_every_partition_is_that_of_one_part(modulus: int, parts: int) -> None:
    rules = [HashRule(modulus, remainder) for remainder in range(modulus)]
    partitions = tuple(Partition(str(rule.remainder), f"p{rule.remainder}", rule) for rule in rules)
    planned = Partitioning("hash", "id", "key", DataType("int64"), "server", partitions)
    assert own_partitions(planned, "id", parts) is None
    assert own_partitions(None, "key", parts) is None
    found = own_partitions(planned, "key", parts)
    if not 1 < parts <= modulus:
        assert found is None
        return
    assert found is not None
    assert len(found) == parts
    assert sorted((rule for own in found for rule in own), key=lambda rule: rule.remainder) == rules
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_hints_name_what_a_build_has() -> None:
    """It has no source, and is no destination of a data flow."""
    table = existing("hash", "id")
    with pytest.raises(TargetError, match="another number of parts") as of_parts:
        plan(HASH, catalog=table, target="append")
    assert of_parts.value.hint is not None
    assert of_parts.value.hint.startswith("Correct `partition` of the build")
    empty = replace(table, columns=(*table.columns, CatalogColumn("note", DataType("string"), "text", False)))
    with pytest.raises(TargetError, match="do not fit") as of_columns:
        plan(None, catalog=empty)
    assert "the query has no such column" in str(of_columns.value.found)
    assert of_columns.value.hint == "Give `note` a default in the table, or let the query give it."
