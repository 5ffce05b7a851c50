"""Destinations: one folder each, with the same slots."""

from headrace.targets.base import (
    ClosedBehind,
    Flow,
    Inspection,
    LoadedPartition,
    LoadTimes,
    LostRun,
    OpenOptions,
    RunRecord,
    SettingAdvice,
    Settle,
    TableAggregates,
    Target,
    TaskProgress,
)
from headrace.targets.registry import (
    capabilities_of,
    files_of,
    open_engine,
    open_null_target,
    open_target,
    refuse_two_ways,
    target_key,
)
from headrace.targets.row_search import Constraint, RowSearch, SearchedColumn

__all__ = [
    "ClosedBehind",
    "Constraint",
    "Flow",
    "Inspection",
    "LoadTimes",
    "LoadedPartition",
    "LostRun",
    "OpenOptions",
    "RowSearch",
    "RunRecord",
    "SearchedColumn",
    "SettingAdvice",
    "Settle",
    "TableAggregates",
    "Target",
    "TaskProgress",
    "capabilities_of",
    "files_of",
    "open_engine",
    "open_null_target",
    "open_target",
    "refuse_two_ways",
    "target_key",
]
