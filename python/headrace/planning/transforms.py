"""The transforms of a data flow in a plan, each behind what it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.model import (
    MAIN,
    DataFlowTask,
    DataType,
    FlowRows,
    Lookup,
    Reunion,
    Split,
    SqlTransform,
    outputs_taken,
)
from headrace.planning.gathered import GatheredSqlPlan
from headrace.planning.joins import JoinPlan
from headrace.planning.lookups import LookupPlan, plan_lookup
from headrace.planning.reunions import ReunionPlan
from headrace.planning.run_facts import RunFacts
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.splits import SplitPlan
from headrace.planning.sql_transforms import SqlPlan, plan_query
from headrace.planning.unions import UnionPlan

TransformPlan = LookupPlan | SqlPlan | SplitPlan | ReunionPlan | GatheredSqlPlan


def plan_transforms(
    task: DataFlowTask,
    sources: Sequence[SourceSnapshot],
    read_as: Mapping[str, DataType],
    loaded_as: Mapping[str, DataType],
    streams: int,
    memory_bytes: int,
    table_name: str,
    not_null: Collection[str],
) -> tuple[TransformPlan, ...]:
    """`sources`: what each lookup reads; `read_as`: the types of the rows that its transforms begin with, but for those
    in front of a meeting of sources, which read what layouts say; `loaded_as`: those as which columns behind them go
    into the table; `not_null`: columns that go into one that is NOT NULL. Both are empty where rows come together
    again.

    Raises what planning a lookup raises.
    """
    last_query = max((place for place, own in enumerate(task.transforms) if isinstance(own, SqlTransform)), default=-1)
    snapshots, read = iter(sources), task.rows_read
    behind: dict[FlowRows, Mapping[str, DataType]] = {
        FlowRows(own.name): {column.name: column.type for column in own.layout.columns}
        for own in (task.sources if task.has_fronts else ())
    }
    for inner in task.join.inner if task.join is not None else ():
        behind[FlowRows(inner.name)] = {column.name: column.type for column in inner.columns}
    plans: list[TransformPlan] = []
    for place, own in enumerate(task.transforms):
        types = behind.get(own.inputs[0], read_as)
        taken = outputs_taken(own, read)
        behind |= {FlowRows(own.name, output): types for output in own.outputs}
        main = FlowRows(own.name, MAIN)
        if isinstance(own, SqlTransform):
            plans.append(plan_query(own, place == last_query, loaded_as, not_null))
            behind[main] = {column.name: column.type for column in own.columns}
        elif isinstance(own, Reunion):
            plans.append(ReunionPlan(own))
            behind[main] = {column.name: column.type for column in own.columns}
        elif isinstance(own, Split):
            plans.append(SplitPlan(own, taken))
        elif isinstance(own, Lookup):
            loaded = not_null if place > last_query and main in taken else ()
            source = next(snapshots)
            plans.append(plan_lookup(own, source, types, streams, memory_bytes, table_name, loaded, taken))
            behind[main] = {**types, **{column.name: column.type for column in own.added}}
    return tuple(plans)


def with_front(plan: TransformPlan, number: int | None) -> TransformPlan:
    """The same of a flow with other sources: `number` is that of its own one, None with one source."""
    if isinstance(plan, LookupPlan):
        return replace(plan, lookup=replace(plan.lookup, front_of=number))
    if isinstance(plan, SplitPlan):
        return replace(plan, split=replace(plan.split, front_of=number))
    if isinstance(plan, ReunionPlan):
        return replace(plan, reunion=replace(plan.reunion, front_of=number))
    return replace(plan, transform=replace(plan.transform, front_of=number)) if isinstance(plan, SqlPlan) else plan


def place_of_front(plan: TransformPlan) -> float:
    """By which transforms stand: those of sources in front of what brings their rows together, by these."""
    return float("inf") if plan.front_of is None else plan.front_of


def names_behind(first: Sequence[str], transforms: Sequence[TransformPlan], rows: FlowRows) -> list[str]:
    """Names of the columns of rows somewhere on their way; `first`: those of the rows that transforms begin with."""
    known = {plan.name: plan for plan in transforms}
    added: list[str] = []
    while (plan := known.get(rows.name)) is not None:
        if isinstance(plan, SqlPlan):
            return [*(column.name for column in plan.transform.columns), *added]
        if isinstance(plan, ReunionPlan):
            return [*(column.name for column in plan.reunion.columns), *added]
        if isinstance(plan, LookupPlan) and rows.output == MAIN:
            added = [*(column.name for column in plan.lookup.added), *added]
        rows = plan.inputs[0]
    return [*first, *added]


def core_rows(rows: FlowRows, transforms: Sequence[TransformPlan]) -> dict[str, Any]:
    """Where the core finds rows among these transforms: in front of all of them what is of none."""
    for place, plan in enumerate(transforms):
        if plan.name == rows.name:
            return {"transform": place, "output": plan.outputs.index(rows.output)}
    return {"transform": None, "output": 0}


def together_spec(
    together: JoinPlan | UnionPlan | None, transforms: Sequence[TransformPlan], run: RunFacts | None
) -> dict[str, Any]:
    """The member of a flow spec that says how rows come together, and which rows of each source do."""
    if together is None:
        return {}
    return together.core_spec(run, lambda rows: core_rows(rows, transforms))


def in_front(plan: TransformPlan, together: JoinPlan | UnionPlan | None) -> dict[str, Any]:
    """What is told of a transform in front of a join or a union: that, and the source, or inner join, whose rows pass
    it.
    """
    if plan.front_of is None or together is None:
        return {}
    return {"in_front_of": together.meeting_of(plan.front_of), "of_source": together.names[plan.front_of]}


def transform_specs(transforms: Sequence[TransformPlan]) -> list[dict[str, Any]]:
    """The member `transforms` of a flow spec; what reads the one before it does not say so, unless some of them stand
    in front of a meeting of sources.
    """
    specs, has_fronts = [], any(plan.front_of is not None for plan in transforms)
    for place, plan in enumerate(transforms):
        inputs = [core_rows(rows, transforms) for rows in plan.inputs]
        before = [{"transform": place - 1 if place else None, "output": 0}]
        is_told = has_fronts or inputs != before
        source = {} if plan.front_of is None else {"source": plan.front_of}
        specs.append({**plan.transform_spec(), **source, **({"inputs": inputs} if is_told else {})})
    return specs
