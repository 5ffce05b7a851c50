"""Ways whose rows are of one of several sources, and never come together with those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.model import Union
from headrace.planning.plan import DataFlowPlan
from headrace.planning.source_snapshot import SourceSnapshot
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


def source_of_pass(ways: Sequence[DataFlowPlan]) -> SourceSnapshot:
    """What is read in one pass for ways: files and slices to count, of several sources what goes somewhere."""
    first = ways[0].told
    has_apart = first.together is not None and first.together.has_apart
    if not has_apart and any(way.front is None for way in ways):
        return first.source
    slices = {int(item["number"]): item for way in ways for item in way.source.slices}
    read = {int(item["file"]) for item in slices.values()}
    files = [file for number, file in enumerate(first.source.files) if number in read]
    return replace(first.source, files=files, slices=list(slices.values()))
