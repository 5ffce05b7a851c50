"""The text of a plan keeps to the width it is given."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.cli.plan import render_plan
from tests.snapshots import assert_snapshot


def plan_document() -> dict[str, Any]:
    memory = {
        "flow_bytes": 162_000_000,
        "blocks": 20,
        "block_bytes": 1_048_576,
        "engine_bytes": 400_000_000,
        "headroom_bytes": 350_000_000,
    }
    slices = [{"number": number, "file": 0, "begin_byte": number, "end_byte": number * 2} for number in (1, 5_000_000)]
    loaded = {
        "task": "load_tables[orders].load",
        "connection": "warehouse",
        "schema": "main",
        "table": "orders",
        "target": "replace",
        "load": "single",
        "streams": 8,
        "bytes_total": 171_952_161,
        "files": [{"path": f"/data/orders.tbl.{number}"} for number in (1, 2)],
        "slices": slices,
        "steps": [{"kind": "create_table", "text": "CREATE TABLE orders (\n  o_orderkey BIGINT\n)"}],
        "notes": ["no partition clause: load is single", "a note " + "that goes on " * 8],
        "memory": memory,
        "rejects": {
            "limit": 100,
            "per_million": 5000,
            "per_file": {"limit": 10, "per_million": None},
            "run": {"limit": None, "per_million": 12_500},
        },
        "flow": {"source": {}},
    }
    skipped = {"task": "load_tables[region].load", "table": "region", "skipped": "no file matches region.tbl"}
    return {
        "package": "tpch",
        "streams": 8,
        "affinity": "none",
        "memory_bytes": 1_000_000_000,
        "bytes_total": 171_952_161,
        "notes": ["the database does not exist and will be created"],
        "tasks": [loaded, skipped],
    }


def test_plan_text() -> None:
    assert_snapshot("plan_text", render_plan(plan_document(), width=80))


@pytest.mark.parametrize(("affinity", "text"), [("cores", "a CPU each"), ("numa", "a NUMA node each")])
def test_streams_that_keep_to_cpus(affinity: str, text: str) -> None:
    shown = render_plan({**plan_document(), "affinity": affinity}, width=200)
    assert f"8 streams kept to {text}, memory" in shown


def divided(strategy: str, rules: list[dict[str, Any]], **members: Any) -> str:
    """The text of a plan with these partitions."""
    document = plan_document()
    parts = [
        {"table": f"orders_{number}", "rule": rule, "action": "attach", "tablespace": None}
        for number, rule in enumerate(rules, start=1)
    ]
    division = {"strategy": strategy, "column": "o_key", "way": "shared", "partitions": parts, "drops": []}
    document["tasks"] = [
        {**document["tasks"][0], "load": "staged", "partitioning": {**division, **members}, "connections": len(parts)}
    ]
    return render_plan(document, width=80)


def test_partitions() -> None:
    days = [{"minimum": f"2024-01-{day:02}", "end": f"2024-01-{day + 1:02}"} for day in range(1, 9)]
    days[0]["minimum"] = days[-1]["end"] = None  # type: ignore[assignment]
    lists: list[dict[str, Any]] = [{"values": ["FR", None]}, {"values": list("abcdefgh")}, {"default": True}]
    remainders = [{"modulus": 6, "remainder": number} for number in range(6)]
    texts = [
        divided("range", days, drops=["orders_old"]),
        divided("list", lists, way="server"),
        divided("hash", remainders),
    ]
    assert_snapshot("plan_partitions", "\n\n".join(texts))


def test_what_becomes_of_partitions_that_exist() -> None:
    rule = {"minimum": "1", "end": "2"}
    parts = [
        {"table": "orders_a", "rule": rule, "action": "insert", "tablespace": None},
        {"table": "orders_b", "rule": rule, "action": "exchange", "tablespace": None},
        {"table": "orders_c", "rule": rule, "action": "attach", "tablespace": "fast"},
    ]
    text = divided("range", [], partitions=parts)
    assert "orders_a: from 1 to before 2, exists" in text
    assert "orders_b: from 1 to before 2, loaded anew" in text
    assert "orders_c: from 1 to before 2, tablespace fast" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_width(width: int) -> None:
    assert max(len(line) for line in render_plan(plan_document(), width=width).splitlines()) <= width
