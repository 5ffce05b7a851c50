"""Which old ranges go when new ones come: the newest ones stay. Rows of ranges that go are outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.errors import TargetError
from headrace.model.key_values import KeyType
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_ranges import KeyRange, in_type, parse_range
from headrace.planning.partitioning import RangeRule
from headrace.planning.parts import Part, range_of
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted


@dataclass(frozen=True)
class Window:
    """`parts`: those that the load fills. `drops`: names of the partitions that go, oldest first. `late`: how many
    parts are older than all that stay: they get no rows.
    """

    parts: list[Part]
    drops: tuple[str, ...]
    late: int = 0


@dataclass(frozen=True)
class _Range:
    """One range behind the load; `name`: of a partition that exists."""

    keys: KeyRange
    name: str | None = None
    part: Part | None = None


def newest(
    table: TargetTable,
    parts: Sequence[Part],
    kept: Sequence[CatalogPartition],
    kind: KeyType,
    keep: int,
    *,
    has_default: bool,
) -> Window:
    """The window that leaves `keep` ranges behind the switch. `has_default`: rows outside have a partition.

    Raises TargetError if more partitions would go than come.
    """
    going, staying = _divided(table, parts, kept, kind, keep)
    drops = tuple(item.name for item in going if item.name is not None)
    come = sum(item.part is not None for item in staying)
    if len(drops) > come:
        behind = len(drops) + len(staying)
        raise TargetError(
            f"more partitions of table {table.name} would go than come",
            found=f"`keep: {keep}`, with {counted(behind, 'range')} behind the load: {', '.join(drops)} would go, "
            f"{come} come",
            expected="never more than the load adds",
            hint=f"Set `keep: {behind - come}`, or drop old partitions by hand.",
        )
    too_old = [item.part for item in going if item.part is not None]
    late = [part for part in parts if part in too_old or (part.existing is not None and part.existing in drops)]
    filled = [part for part in parts if part not in late]
    if late and not filled and not has_default:
        filled = _newest_that_stays(staying, kind)
    return Window(_with_slices(filled, late), drops, len(late))


def nothing_goes(
    table: TargetTable,
    parts: Sequence[Part],
    kept: Sequence[CatalogPartition],
    kind: KeyType,
    keep: int,
    *,
    has_default: bool,
) -> Window:
    """The window of rows that come back: what is there stays, and new ranges that are older than all that would stay of
    `keep` are outside as ever.
    """
    going, staying = _divided(table, parts, kept, kind, keep)
    too_old = [item.part for item in going if item.part is not None]
    filled = [part for part in parts if part not in too_old]
    if too_old and not filled and not has_default:
        filled = _newest_that_stays(staying, kind)
    return Window(filled, (), len(too_old))


def _divided(
    table: TargetTable, parts: Sequence[Part], kept: Sequence[CatalogPartition], kind: KeyType, keep: int
) -> tuple[list[_Range], list[_Range]]:
    """All ranges that there would be, by their keys: the old ones, and the `keep` newest."""
    ranges = [_Range(range_of(part, kind, table.name), part.name) for part in kept if isinstance(part.rule, RangeRule)]
    ranges += [
        _Range(parse_range(part.rule, kind), part=part)
        for part in parts
        if part.action == "attach" and isinstance(part.rule, RangeRule)
    ]
    ranges.sort(key=lambda item: item.keys.sort_key())
    first = max(0, len(ranges) - keep)
    return ranges[:first], ranges[first:]


def _with_slices(parts: Sequence[Part], late: Sequence[Part]) -> list[Part]:
    """Lines of a file whose own part is too old have to be accounted for: none of its rows belongs to the first one."""
    moved = {number for part in late for number in part.slices}
    return [
        replace(part, slices=tuple(sorted(moved.union(part.slices)))) if place == 0 else part
        for place, part in enumerate(parts)
    ]


def _newest_that_stays(staying: Sequence[_Range], kind: KeyType) -> list[Part]:
    """For a load of which all rows are too old: a partition that takes none of them."""
    for item in reversed(staying):
        keys = None if item.name is None else in_type(item.keys, kind)
        if keys is not None:
            return [Part(keys.rule(kind), action="insert", existing=item.name)]
    return []
