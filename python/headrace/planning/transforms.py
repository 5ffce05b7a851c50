"""The transforms of a data flow in a plan, in the order in which rows pass them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headrace.model import DataType, Misses, SplitOutput, SqlTransform, Transform
from headrace.planning.gathered import GatheredSqlPlan
from headrace.planning.lookups import MISSES, LookupPlan, plan_lookup
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.splits import SplitPlan
from headrace.planning.sql_transforms import SqlPlan, plan_query

TransformPlan = LookupPlan | SqlPlan | SplitPlan | GatheredSqlPlan


def plan_transforms(
    transforms: Sequence[Transform],
    sources: Sequence[SourceSnapshot],
    read_as: Mapping[str, DataType],
    loaded_as: Mapping[str, DataType],
    streams: int,
    memory_bytes: int,
    table_name: str,
    not_null: Collection[str],
) -> tuple[TransformPlan, ...]:
    """`sources`: what each lookup reads; `read_as`: the types of the rows in front of the transforms; `loaded_as`:
    those as which columns behind them go into the table; `not_null`: columns that go into one that is NOT NULL.

    Raises what planning a lookup raises.
    """
    last_query = max((place for place, own in enumerate(transforms) if isinstance(own, SqlTransform)), default=-1)
    snapshots = iter(sources)
    types = dict(read_as)
    plans: list[TransformPlan] = []
    for place, own in enumerate(transforms):
        if isinstance(own, SqlTransform):
            plans.append(plan_query(own, place == last_query, loaded_as, not_null))
            types = {column.name: column.type for column in own.columns}
            continue
        if isinstance(own, SplitOutput):
            plans.append(SplitPlan(own.split, own.output))
            continue
        if isinstance(own, Misses):
            plan = plan_lookup(own.lookup, next(snapshots), types, streams, memory_bytes, table_name, ())
            plans.append(replace(plan, output=MISSES))
            continue
        loaded = not_null if place > last_query else ()
        plans.append(plan_lookup(own, next(snapshots), types, streams, memory_bytes, table_name, loaded))
        types |= {column.name: column.type for column in own.added}
    return tuple(plans)
