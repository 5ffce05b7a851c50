"""Where the rows of a slice have gone behind each transform."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headrace.model import FlowRows
from headrace.planning import DataFlowPlan, TransformPlan


def left_by_each(transforms: Sequence[TransformPlan], counts: Sequence[Mapping[str, Any]]) -> dict[FlowRows, int]:
    """The rows that go on behind transforms, by each of their outputs."""
    left: dict[FlowRows, int] = {}
    for own, count in zip(transforms, counts, strict=True):
        left |= _left_by(own, count)
    return left


def _left_by(own: TransformPlan, count: Mapping[str, Any]) -> dict[FlowRows, int]:
    others = [int(rows) for rows in count.get("outputs", [])]
    main = int(count["rows"]) - int(count["filtered"]) - int(count["rejected"]) - sum(others)
    return {FlowRows(own.name, output): rows for output, rows in zip(own.outputs, [main, *others], strict=False)}


def left_out_or_elsewhere(own: TransformPlan, count: Mapping[str, Any], read: Collection[FlowRows]) -> int:
    """The rows that a transform leaves out, or that go by another output than those that are `read` on the way."""
    left = _left_by(own, count)
    return int(count["filtered"]) + sum(rows for output, rows in left.items() if output not in read)


def left_out_in_front(plan: DataFlowPlan, item: Mapping[str, Any], number: int | None = None) -> int:
    """The rows of a slice that do not meet those of other sources, and are no rejects. `number`: in front of one source
    or inner join; without it in front of all, as far as they are told with the slice.
    """
    read, counts = plan.rows_read, item.get("transforms") or []
    return sum(
        left_out_or_elsewhere(own, count, read)
        for own, count in zip(plan.transforms, counts, strict=False)
        if own.front_of is not None and number in (None, own.front_of)
    )
