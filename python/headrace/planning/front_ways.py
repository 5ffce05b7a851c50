"""Ways whose rows are of one of several sources, and never come together with those of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headrace.model import Union
from headrace.planning.plan import DataFlowPlan
from headrace.planning.unions import UnionPlan

# Of a slice of another source, for such a way: nothing of it is read.
_NOT_READ: Final = {"lines": 0, "skipped": 0, "rows": 0, "values_ignored": 0, "ignored": {}, "replaced": {}}


def without_meeting(ways: Sequence[DataFlowPlan]) -> Sequence[DataFlowPlan]:
    """Ways that are left of a flow: if nobody is among them whose rows come together, they do not meet any more, and of
    the sources only those are read whose rows go somewhere.
    """
    if any(way.front is None for way in ways):
        return ways
    numbers = {way.front for way in ways}
    return tuple(_unmet(way, numbers) for way in ways)


def _unmet(way: DataFlowPlan, read: Collection[int | None]) -> DataFlowPlan:
    """`read`: the numbers of the sources that are read."""
    together = way.together
    assert together is not None
    sources = together.union.sources if isinstance(together, UnionPlan) else together.join.sources
    first_files = tuple(part.first_file for part in way.source.parts)
    # All that it says is which file is of which source: it has no columns, and nobody behind it.
    of_files = UnionPlan(Union(together.name, sources, ()), way.layouts, first_files, (), (), ((),) * len(sources))
    slices = [item for item in way.source.slices if way.source_number(int(item["file"])) in read]
    numbers = {int(item["number"]) for item in slices}
    committed = {number: known for number, known in way.committed.items() if number in numbers}
    source = replace(way.source, slices=slices, pairs=None)
    return replace(way, together=of_files, source=source, committed=committed)


def of_its_source(way: DataFlowPlan, item: Mapping[str, Any]) -> dict[str, Any]:
    """What the core says of a slice, as far as it is read for the way."""
    is_own = way.front is None or way.source_number(int(item["file"])) == way.front
    return {**item, **({} if is_own else _NOT_READ)}
