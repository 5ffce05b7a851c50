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
        "rejects_limit": 100,
        "flow": {"source": {}},
    }
    skipped = {"task": "load_tables[region].load", "table": "region", "skipped": "no file matches region.tbl"}
    return {
        "package": "tpch",
        "streams": 8,
        "memory_bytes": 1_000_000_000,
        "bytes_total": 171_952_161,
        "notes": ["the database does not exist and will be created"],
        "tasks": [loaded, skipped],
    }


def test_plan_text() -> None:
    assert_snapshot("plan_text", render_plan(plan_document(), width=80))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_width(width: int) -> None:
    assert max(len(line) for line in render_plan(plan_document(), width=width).splitlines()) <= width
