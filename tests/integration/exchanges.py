"""What tests of `switch` tasks share, whatever the destination."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.planning import PartitionRule, RangeRule
from headrace.targets import ExchangedTable, PartitionExchange

MARCH = RangeRule("2024-03-01", "2024-04-01")


class Notes:
    """Of a task, in memory."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, Any]] = []

    def remember(self, note: Mapping[str, Any]) -> None:
        self.kept.append(json.loads(json.dumps(note)))

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        return self.kept


def exchange(
    comes: str | None = "comes",
    goes: str | None = None,
    partition: str = "orders_1",
    rule: PartitionRule | None = None,
    table: str = "orders",
    task: str = "month[1].switch",
) -> PartitionExchange:
    """What a task asks for. Tables are written as in a package."""
    return PartitionExchange(task, _named(table), partition, _named(comes) if comes else None, goes, rule)


def _named(name: str) -> ExchangedTable:
    schema, _, table = name.rpartition(".")
    return ExchangedTable(schema or None, table)
