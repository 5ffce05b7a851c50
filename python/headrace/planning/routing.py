"""Partitions as the core reads them: the `routing` member of a flow spec."""

from __future__ import annotations

from typing import Any

from headrace.planning.partitioning import DefaultRule, HashRule, ListRule, Partitioning, RangeRule


def routing_spec(partitioning: Partitioning) -> dict[str, Any] | None:
    """None if the target finds the partition of each row. A place is the index of a partition; the default is last."""
    if partitioning.way == "server":
        return None
    rules = [partition.rule for partition in partitioning.partitions]
    default = next((place for place, rule in enumerate(rules) if isinstance(rule, DefaultRule)), None)
    method: dict[str, Any]
    if partitioning.strategy == "range":
        method = {"range": [rule.to_dict() for rule in rules if isinstance(rule, RangeRule)]}
    elif partitioning.strategy == "list":
        method = {"list": [list(rule.values) for rule in rules if isinstance(rule, ListRule)]}
    else:
        modulus = next(rule.modulus for rule in rules if isinstance(rule, HashRule))
        method = {"hash": {"modulus": modulus, "key": partitioning.hash_key}}
    return {"column": partitioning.source, "method": method, "default": default}
