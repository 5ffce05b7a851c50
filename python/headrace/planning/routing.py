"""Partitions as the core reads them: the `routing` member of a flow spec."""

from __future__ import annotations

from typing import Any

from headrace.planning.partitioning import DefaultRule, HashRule, ListRule, Partitioning, RangeRule


def routing_spec(partitioning: Partitioning) -> dict[str, Any] | None:
    """A place is the index of a partition; the default is last. Where the target finds the partition of each row, the
    places count for nothing: the core only rejects the rows outside. None if it does not know them.
    """
    if partitioning.judge == "target":
        return None
    method: dict[str, Any]
    if partitioning.judge == "keys":
        method = {"all_but": list(partitioning.outside_keys)}
        return {"column": partitioning.source, "method": method, "default": None}
    rules = [partition.rule for partition in partitioning.partitions]
    default = next((place for place, rule in enumerate(rules) if isinstance(rule, DefaultRule)), None)
    if partitioning.strategy == "range":
        method = {"range": [rule.to_dict() for rule in rules if isinstance(rule, RangeRule)]}
    elif partitioning.strategy == "list":
        method = {"list": [list(rule.values) for rule in rules if isinstance(rule, ListRule)]}
    else:
        modulus = next(rule.modulus for rule in rules if isinstance(rule, HashRule))
        method = {"hash": {"modulus": modulus, "key": partitioning.hash_key}}
    return {"column": partitioning.source, "method": method, "default": default}
