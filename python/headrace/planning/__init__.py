"""Pure planning: what a run will do, as data. Nothing here opens a file or a connection."""

from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogPartition, CatalogPartitioning, CatalogTable
from headrace.planning.memory import MemoryBudget, MemorySplit, engine_bytes
from headrace.planning.partition_key import is_partitioned, key_column
from headrace.planning.partitions import FileKeys
from headrace.planning.plan import (
    WHOLE_TABLE,
    CommittedSlice,
    DataFlowPlan,
    FinishedTask,
    KeyBounds,
    OutputColumn,
    RunPlan,
    SkippedTask,
    SourceSnapshot,
    StagingTable,
    Step,
)
from headrace.planning.planner import plan_data_flow, plan_source_pass, table_after
from headrace.planning.target_table import display_name, own_tables
from headrace.planning.wording import counted

__all__ = [
    "WHOLE_TABLE",
    "Capabilities",
    "CatalogColumn",
    "CatalogPartition",
    "CatalogPartitioning",
    "CatalogTable",
    "CommittedSlice",
    "DataFlowPlan",
    "FileKeys",
    "FinishedTask",
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
    "is_partitioned",
    "key_column",
    "own_tables",
    "plan_data_flow",
    "plan_source_pass",
    "table_after",
]
