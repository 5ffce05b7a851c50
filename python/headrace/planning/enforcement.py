"""A declaration that one table keeps: without tables of their own, partitions still say which rows are outside."""

from __future__ import annotations

import itertools

from headrace.model import Every, HashPartition, ListPartition, RangePartition, strategy_of
from headrace.planning.partitioning import ListRule, Partition, Partitioning, PartitionRule, RangeRule
from headrace.planning.plan import WHOLE_TABLE, OutputColumn
from headrace.planning.target_table import TargetTable

_ANY_KEY = RangeRule(None, None)


def enforced(table: TargetTable, key: OutputColumn, notes: list[str]) -> Partitioning | None:
    """The rule of all declared partitions together, as one partition that is the whole table; None if no row is
    outside of them.
    """
    clause = table.destination.partition
    assert clause is not None
    rule = None if clause.settings.outside == "default" else _rule(table)
    if rule is None or (rule == _ANY_KEY and not key.nullable):
        notes.append("no row is outside of the declared partitions: there is nothing to check")
        return None
    if rule == _ANY_KEY:
        notes.append(f"a NULL in `{key.source}` is a reject, as with partitions")
    else:
        notes.append(f"rows whose `{key.source}` is outside of the declared partitions are rejects")
    part = Partition(WHOLE_TABLE, table.destination.table, rule)
    return Partitioning(strategy_of(clause), key.target, key.source, key.type, "whole", (part,))


def _rule(table: TargetTable) -> PartitionRule | None:
    clause = table.destination.partition
    if isinstance(clause, HashPartition):
        return None
    if isinstance(clause, ListPartition):
        return ListRule(tuple(itertools.chain.from_iterable(values for _, values in clause.values)))
    if isinstance(clause, RangePartition) and isinstance(clause.bounds, Every):
        return RangeRule(clause.bounds.first, clause.bounds.end)
    return _ANY_KEY  # the outer ranges are open, or follow from keys of the files: a hint where a row goes, not a rule
