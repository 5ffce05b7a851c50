"""Pure planning: what a run will do, as data. Nothing here opens a file or a connection."""

from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogPartition, CatalogPartitioning, CatalogTable
from headrace.planning.memory import MemoryBudget, MemorySplit, engine_bytes
from headrace.planning.plan import (
    WHOLE_TABLE,
    DataFlowPlan,
    KeyBounds,
    OutputColumn,
    RunPlan,
    SkippedTask,
    SourceSnapshot,
    StagingTable,
    Step,
)
from headrace.planning.planner import display_name, plan_data_flow, table_after
from headrace.planning.wording import counted

__all__ = [
    "WHOLE_TABLE",
    "Capabilities",
    "CatalogColumn",
    "CatalogPartition",
    "CatalogPartitioning",
    "CatalogTable",
    "DataFlowPlan",
    "KeyBounds",
    "MemoryBudget",
    "MemorySplit",
    "OutputColumn",
    "RunPlan",
    "SkippedTask",
    "SourceSnapshot",
    "StagingTable",
    "Step",
    "counted",
    "display_name",
    "engine_bytes",
    "plan_data_flow",
    "table_after",
]
