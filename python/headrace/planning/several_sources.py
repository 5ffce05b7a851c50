"""What planning asks of the sources of a data flow, whether there is one or their rows come together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from headrace.model import Column, DataFlowTask, DataType, Join, Union, UnitedColumn
from headrace.planning.joins import JoinPlan, plan_join
from headrace.planning.made_columns import made_notes
from headrace.planning.memory import SlabOf
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.together import as_declared, most_slab_bytes
from headrace.planning.unions import UnionPlan, apart, lacking_types, made_notes_of_union, plan_union


def plan_together(
    task: DataFlowTask, types: Mapping[str, DataType], not_null: Collection[str], source: SourceSnapshot
) -> JoinPlan | UnionPlan | None:
    """How the rows come together, with the types and the NOT NULL of columns that the destination has; None of one
    source alone.
    """
    if task.together is None:
        return None
    if isinstance(task.together, Join):
        return plan_join(task.together, types, not_null, source)
    if task.together.are_apart:
        return apart(task.together, [as_declared(own) for own in task.together.sources], source)
    if task.front is not None:  # as for the others, whatever the destination has
        types = {own.name: own.type for own in task.together.columns if own.from_ is not None}
    return plan_union(task.together, (*task.transforms, *task.others), types, not_null, source)


def slab_of_sources(task: DataFlowTask) -> SlabOf | None:
    """Where one layout does not say how much the columns of a block take."""
    if task.together is None:
        return None
    sources = task.together.sources
    if isinstance(task.together, Union):
        return partial(most_slab_bytes, sources, lacking_types(task.together))
    # Of one block of any side come joined rows, of an inner join into the next one.
    joined = [column.type for own in (*task.together.inner, task.together) for column in own.columns]
    beside = [*([joined] * len(task.together.brought)), *([] for _ in task.together.apart)]
    return partial(most_slab_bytes, sources, beside)


def made_columns(task: DataFlowTask) -> Sequence[Column | UnitedColumn]:
    """Columns of the rows that no file has, or not every source."""
    if isinstance(task.meeting, Union):
        return [column for column in task.meeting.columns if column.from_ is not None]
    return task.source.layout.made if task.meeting is None else []


def notes_of_made(task: DataFlowTask, loaded: Collection[str], source: SourceSnapshot) -> list[str]:
    """Which of the columns `loaded` are made, and what that costs."""
    if isinstance(task.meeting, Union):
        return made_notes_of_union(task.meeting, loaded, source)
    if task.front is not None:
        source = source.part(task.front)
    return made_notes(task.source.layout.made if task.meeting is None else [], loaded, source)
