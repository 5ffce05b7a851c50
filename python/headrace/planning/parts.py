"""A partition on its way into a plan: what it takes, and which partition of the table it concerns."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import TargetError
from headrace.model.key_values import KeyType
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_ranges import KeyRange, parse_range
from headrace.planning.partitioning import DefaultRule, PartitionAction, PartitionRule, RangeRule
from headrace.planning.target_table import TargetTable


@dataclass(frozen=True)
class Part:
    """`suffix`: of the name of a new partition; None: it is numbered. `existing`: the partition that takes the rows, or
    that gives its place. `slices`: numbers of those at home in it.
    """

    rule: PartitionRule
    suffix: str | None = None
    action: PartitionAction = "attach"
    existing: str | None = None
    slices: tuple[int, ...] = ()


def staying(table: TargetTable) -> tuple[CatalogPartition, ...]:
    """The partitions of the existing table beside which new ones are put; none if all are replaced.

    Raises TargetError for one whose rule has no counterpart here.
    """
    partitioning = table.catalog.partitioning if table.catalog else None
    if partitioning is None or not (table.destination.target == "append" or table.destination.partitions):
        return ()
    for partition in partitioning.partitions:
        if partition.rule is None:
            raise TargetError(
                f"the rows of partition {partition.name} of table {table.name} are not known",
                found="bounds that cannot be read",
                expected="bounds of one column, as keys",
                hint="Detach the partition, or set `load: single`.",
            )
    return partitioning.partitions


def default_of(partitions: tuple[CatalogPartition, ...]) -> str | None:
    """The name of the default partition among them."""
    return next((part.name for part in partitions if isinstance(part.rule, DefaultRule)), None)


def range_of(partition: CatalogPartition, kind: KeyType, table_name: str) -> KeyRange:
    """The keys of an existing range partition. Raises TargetError for bounds that do not compare with keys."""
    assert isinstance(partition.rule, RangeRule)
    try:
        return parse_range(partition.rule, kind)
    except (ValueError, ArithmeticError):
        raise TargetError(
            f"the bounds of partition {partition.name} of table {table_name} are no keys",
            found=f"from {partition.rule.minimum or 'MINVALUE'} to before {partition.rule.end or 'MAXVALUE'}",
            hint="Detach the partition, or set `load: single`.",
        ) from None
