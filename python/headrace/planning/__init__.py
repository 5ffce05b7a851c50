"""Pure planning: what a run will do, as data. Nothing here opens a file or a connection."""

from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogTable
from headrace.planning.memory import MemoryBudget, MemorySplit, engine_bytes
from headrace.planning.plan import DataFlowPlan, OutputColumn, RunPlan, SkippedTask, SourceSnapshot, Step
from headrace.planning.planner import display_name, plan_data_flow, table_after
from headrace.planning.wording import counted

__all__ = [
    "Capabilities",
    "CatalogColumn",
    "CatalogTable",
    "DataFlowPlan",
    "MemoryBudget",
    "MemorySplit",
    "OutputColumn",
    "RunPlan",
    "SkippedTask",
    "SourceSnapshot",
    "Step",
    "counted",
    "display_name",
    "engine_bytes",
    "plan_data_flow",
    "table_after",
]
