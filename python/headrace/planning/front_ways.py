"""Ways whose rows are of one of several sources, and never come together with those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.model import Union
from headrace.planning.plan import DataFlowPlan
from headrace.planning.unions import UnionPlan, apart


def without_meeting(ways: Sequence[DataFlowPlan]) -> Sequence[DataFlowPlan]:
    """Ways that are left of a flow: if nobody is among them whose rows come together, they do not meet any more, and of
    the sources only those are read whose rows go somewhere.
    """
    if any(way.front is None for way in ways):
        return ways
    return tuple(map(_unmet, ways))


def _unmet(way: DataFlowPlan) -> DataFlowPlan:
    together = way.together
    assert together is not None
    sources = together.union.sources if isinstance(together, UnionPlan) else together.join.sources
    of_files = apart(Union(together.name, sources, ()), way.layouts, way.source)
    return replace(way, together=of_files, source=replace(way.source, pairs=None))
