"""Partitions that are loaded anew while all others of their table stay."""

from __future__ import annotations

from headrace.errors import TargetError
from headrace.model import DataType, HashPartition
from headrace.model.key_values import key_type
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_ranges import in_type
from headrace.planning.list_parts import values_of
from headrace.planning.partitioning import ListRule, PartitionRule, RangeRule
from headrace.planning.parts import Part, range_of, staying
from headrace.planning.target_table import TargetTable


def reloaded_parts(table: TargetTable, data_type: DataType) -> list[Part]:
    """One for each partition that the destination names, in the order of the table's partitions.

    `data_type` is that of the source's keys. Raises TargetError for a name that is no partition, and for partitions
    that cannot be loaded alone.
    """
    destination, name_key = table.destination, table.capabilities.name_key
    if table.catalog is None:
        raise TargetError(
            f"table {table.name} does not exist: it has no partitions to load anew",
            found=", ".join(destination.partitions),
            hint="Load all of it first, without `partitions`.",
        )
    if isinstance(destination.partition, HashPartition):
        raise TargetError(
            f"partitions by hash of table {table.name} cannot be loaded one by one",
            found=", ".join(destination.partitions),
            expected="partitions by range or list: no rows of a source are those of one remainder",
            hint="Leave `partitions` out.",
        )
    present = staying(table)
    known = {name_key(part.name) for part in present}
    missing = [name for name in destination.partitions if name_key(name) not in known]
    if missing:
        raise TargetError(
            f"table {table.name} has no partition `{missing[0]}`",
            found=", ".join(missing),
            expected=f"one of: {', '.join(part.name for part in present) or 'none, the table has no partitions'}",
            hint=f"Correct `partitions` of destination `{destination.name}`.",
        )
    wanted = {name_key(name) for name in destination.partitions}
    return [
        Part(_rule(table, part, data_type), action="exchange", existing=part.name)
        for part in present
        if name_key(part.name) in wanted
    ]


def _rule(table: TargetTable, part: CatalogPartition, data_type: DataType) -> PartitionRule:
    """What the partition takes of the source's keys."""
    if isinstance(part.rule, ListRule):
        values = values_of(part.rule, data_type)
        if values:
            return ListRule(values)
    elif isinstance(part.rule, RangeRule):
        kind = key_type(data_type)
        assert kind is not None  # key_column refuses others
        keys = in_type(range_of(part, kind, table.name), kind)
        if keys is not None:
            return keys.rule(kind)
    else:
        raise TargetError(
            f"the default partition {part.name} of table {table.name} cannot be loaded alone",
            expected="partitions with keys of their own",
            hint=f"Leave `{part.name}` out of `partitions`.",
        )
    raise TargetError(
        f"no row of the source belongs into partition {part.name} of table {table.name}",
        found=f"keys of type {data_type}",
        hint=f"Leave `{part.name}` out of `partitions`, or correct the type of the column in the layout.",
    )
