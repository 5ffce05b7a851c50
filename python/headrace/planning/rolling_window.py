"""Which old ranges go when new ones come: the newest ones stay."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.model.key_values import KeyType
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_ranges import KeyRange, parse_range
from headrace.planning.partitioning import RangeRule
from headrace.planning.parts import Part, range_of
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted


def dropped(
    table: TargetTable, parts: Sequence[Part], kept: Sequence[CatalogPartition], kind: KeyType, keep: int
) -> tuple[str, ...]:
    """Names of the partitions that go, oldest first, so that `keep` ranges are left behind the switch.

    Raises TargetError if that were more than come, a partition that comes, or one into which rows of the load go.
    """
    ranges: list[tuple[KeyRange, str | None]] = [
        (range_of(part, kind, table.name), part.name) for part in kept if isinstance(part.rule, RangeRule)
    ]
    new = [
        parse_range(part.rule, kind) for part in parts if part.action == "attach" and isinstance(part.rule, RangeRule)
    ]
    ranges += [(keys, None) for keys in new]
    ranges.sort(key=lambda item: item[0].sort_key())
    going = [name for _, name in ranges[: max(0, len(ranges) - keep)]]
    names = tuple(name for name in going if name is not None)
    wanted = f"`keep: {keep}`, with {counted(len(ranges), 'range')} behind the load"
    if len(names) < len(going):
        raise TargetError(
            f"a new partition of table {table.name} would be dropped at once",
            found=wanted,
            expected="new ranges that are not older than those that stay",
            hint="Set a larger `keep`, or leave old rows out.",
        )
    if len(names) > len(new):
        raise TargetError(
            f"more partitions of table {table.name} would go than come",
            found=f"{wanted}: {', '.join(names)} would go, {len(new)} come",
            expected="never more than the load adds",
            hint=f"Set `keep: {len(ranges) - len(new)}`, or drop old partitions by hand.",
        )
    filled = [part.existing for part in parts if part.existing in names]
    if filled:
        raise TargetError(
            f"rows would go into a partition of table {table.name} that is dropped",
            found=f"{wanted}: {', '.join(name for name in filled if name)}",
            hint="Set a larger `keep`, or leave old rows out.",
        )
    return names
