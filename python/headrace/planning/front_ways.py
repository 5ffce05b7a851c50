"""Ways whose rows are of one of several sources, and never come together with those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.model import Union
from headrace.planning.plan import DataFlowPlan
from headrace.planning.unions import apart


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
    of_files = apart(Union(together.name, (), (), apart=together.sources), way.layouts, way.source)
    return replace(way, together=of_files, source=replace(way.source, pairs=None))


def bytes_read_first(way: DataFlowPlan, ways: Sequence[DataFlowPlan]) -> int:
    """The bytes of the files that are read for a way, and for none before it. `ways`: all that are loaded in one pass.
    What comes together is told with the first of them, whoever that is.
    """
    meet = next((own for own in ways if own.front is None), None)

    def read_with(own: DataFlowPlan) -> int | None:
        return None if meet is not None and not own.is_apart else own.front

    first = next(own for own in ways if read_with(own) == read_with(way))
    own = way if meet is None or way.is_apart else meet
    return own.alone.source.bytes_total if first.task == way.task else 0
