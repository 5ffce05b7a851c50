"""Declarations of partitions, tables that have some, and what a plan makes of both, as text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from headrace.model import (
    Every,
    ListPartition,
    PartitionSettings,
    RangePartition,
)
from headrace.planning import (
    Capabilities,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DataFlowPlan,
    HashRule,
    KeyFacts,
    KeyScan,
    ListRule,
    MemoryBudget,
    PartitionRule,
    RangeRule,
    SourceSnapshot,
    plan_data_flow,
)
from tests.unit.planning import samples

ORDERS = samples.layout(
    o_orderkey="int64!", o_totalprice="decimal(15,2)!", o_orderdate="date!", o_country="char(2)", o_status="varchar(5)"
)
TABLE = samples.table(
    ("o_orderkey", "int64!"),
    ("o_totalprice", "decimal(15,2)!"),
    ("o_orderdate", "date!"),
    ("o_country", "char(2)"),
    ("o_status", "varchar(5)"),
)


def existing(strategy: str, key: str, table: CatalogTable = TABLE, /, **rules: PartitionRule | None) -> CatalogTable:
    partitions = tuple(CatalogPartition(name, rule) for name, rule in rules.items())
    return replace(table, partitioning=CatalogPartitioning(strategy, (key,), partitions))


def plan(
    clause: Any,
    catalog: CatalogTable | None = None,
    *,
    source: SourceSnapshot | None = None,
    streams: int = 2,
    facts: KeyFacts | None = None,
    capabilities: Capabilities = samples.SERVER,
    **members: Any,
) -> DataFlowPlan:
    taken = members.pop("taken_names", ())
    return plan_data_flow(
        samples.task(**{"partition": clause, "load": "staged", "layout": ORDERS, **members}),
        source or samples.files(2, 2),
        catalog,
        capabilities,
        MemoryBudget(1_000_000_000, 0),
        streams,
        default_schema="main",
        key_facts=facts or KeyFacts(cpus=4),
        taken_names=taken,
    )


def shown(rule: PartitionRule) -> str:
    if isinstance(rule, RangeRule):
        return f"[{rule.minimum or 'MINVALUE'}, {rule.end or 'MAXVALUE'})"
    return str(rule.to_dict())


def text(planned: DataFlowPlan) -> str:
    """What the plan decides and says."""
    division = planned.partitioning
    if division is None:
        return "\n".join([f"{planned.load}, {planned.switch}", *planned.notes])
    parts = [
        f"{part.name} {part.table} {shown(part.rule)} {part.action} {part.tablespace or ''}".rstrip()
        for part in division.partitions
    ]
    assert all(part.replaces == (part.table if part.action == "exchange" else None) for part in division.partitions)
    staging = [
        f"{table.partition} {table.table} {table.slices} {'owned' if table.owned else 'made before'}"
        for table in planned.staging
    ]
    spec = planned.flow_spec("/run/rejects", {})
    core = [json.dumps({name: spec.get(name) for name in ("routing",)})]
    core += [json.dumps({"epochs": spec["source"]["epochs"]})] if "epochs" in spec["source"] else []
    steps = [f"{step.kind}: {step.text}" for step in planned.steps]
    head = f"{division.strategy} ({division.column}), {division.way}, {planned.connections} connections"
    drops = [f"drops {', '.join(division.drops)}"] if division.drops else []
    return "\n".join([head, *parts, *drops, "", *staging, "", *core, "", *planned.notes, "", *steps])


SCAN = KeyFacts(scan=KeyScan(100, 0, ("2023-12-01", "2024-01-01", "2024-03-01"), ("10", "20", "30")))
BY_DATE = RangePartition("o_orderdate", ("2024-01-01", "2024-02-01"))
MONTHS = RangePartition("o_orderdate", Every("1", "month"))
WINDOW = RangePartition("o_orderdate", Every("1", "month"), settings=PartitionSettings(keep=3))
LISTS = ListPartition("o_status", (("open", ("O", None)), ("done", ("F", "P"))))
MONTHLY = existing(
    "range",
    "o_orderdate",
    orders_2023_10=RangeRule("2023-10-01", "2023-11-01"),
    orders_2023_11=RangeRule("2023-11-01", "2023-12-01"),
    orders_2024_01=RangeRule("2024-01-01", "2024-02-01"),
)
LISTED = existing(
    "list", "o_status", orders_open=ListRule((None, "O")), orders_lost=ListRule(("L", "longer than five"))
)
HASHED = existing("hash", "o_orderkey", orders_1=HashRule(3, 2), orders_2=HashRule(3, 0))
