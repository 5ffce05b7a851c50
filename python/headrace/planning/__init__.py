"""Pure planning: what a run will do, as data. Nothing here opens a file or a connection."""

from headrace.planning.build_partitions import hints_for_builds, own_partitions
from headrace.planning.builds import Build, QueryColumn, plan_build
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogPartition, CatalogPartitioning, CatalogTable
from headrace.planning.gathered import GatheredSqlPlan, GatherPlan
from headrace.planning.joins import JoinPlan
from headrace.planning.key_questions import FileKeys, KeyFacts, KeyQuestion, KeyScan, key_question
from headrace.planning.long_names import refuse_cut_name
from headrace.planning.lookup_reading import lookup_engine_bytes
from headrace.planning.lookups import LookupPlan, alike
from headrace.planning.memory import MemoryBudget, MemorySplit, engine_bytes, memory_for_lookups
from headrace.planning.outside_keys import Unlisted, with_outside_keys
from headrace.planning.partition_key import bounds_of_files, is_enforced, is_partitioned, key_column
from headrace.planning.partitioning import (
    ALL_PARTITIONS,
    STRAYS,
    CommitSize,
    DefaultRule,
    HashRule,
    ListRule,
    Partition,
    Partitioning,
    PartitionRule,
    RangeRule,
    rule_from_dict,
)
from headrace.planning.plan import (
    WHOLE_TABLE,
    DataFlowPlan,
    FinishedTask,
    OutputColumn,
    RunPlan,
    SkippedTask,
    Step,
)
from headrace.planning.planner import plan_data_flow, table_after
from headrace.planning.reject_table import (
    REJECT_COLUMNS,
    REJECT_KEY,
    REJECT_KINDS,
    RejectTable,
    check_reject_table,
    plan_reject_table,
    refuse_loaded,
)
from headrace.planning.replay import ReplayPlan
from headrace.planning.reunions import ReunionPlan
from headrace.planning.rows_before import CommittedSlice, RowsBefore
from headrace.planning.run_facts import RunFacts
from headrace.planning.shared_plan import NO_REJECTS, SharedPlan, branches_of, shared_plan
from headrace.planning.source_pass import plan_source_pass, source_alone
from headrace.planning.source_snapshot import SourcePart, SourceSnapshot
from headrace.planning.splits import SplitPlan
from headrace.planning.sql_transforms import SqlPlan
from headrace.planning.staging_table import StagingTable
from headrace.planning.tablespaces import check_tablespaces
from headrace.planning.target_table import display_name, own_tables
from headrace.planning.transforms import TransformPlan
from headrace.planning.unions import UnionPlan
from headrace.planning.wording import counted

__all__ = [
    "ALL_PARTITIONS",
    "NO_REJECTS",
    "REJECT_COLUMNS",
    "REJECT_KEY",
    "REJECT_KINDS",
    "STRAYS",
    "WHOLE_TABLE",
    "Build",
    "Capabilities",
    "CatalogColumn",
    "CatalogPartition",
    "CatalogPartitioning",
    "CatalogTable",
    "CommitSize",
    "CommittedSlice",
    "DataFlowPlan",
    "DefaultRule",
    "FileKeys",
    "FinishedTask",
    "GatherPlan",
    "GatheredSqlPlan",
    "HashRule",
    "JoinPlan",
    "KeyFacts",
    "KeyQuestion",
    "KeyScan",
    "ListRule",
    "LookupPlan",
    "MemoryBudget",
    "MemorySplit",
    "OutputColumn",
    "Partition",
    "PartitionRule",
    "Partitioning",
    "QueryColumn",
    "RangeRule",
    "RejectTable",
    "ReplayPlan",
    "ReunionPlan",
    "RowsBefore",
    "RunFacts",
    "RunPlan",
    "SharedPlan",
    "SkippedTask",
    "SourcePart",
    "SourceSnapshot",
    "SplitPlan",
    "SqlPlan",
    "StagingTable",
    "Step",
    "TransformPlan",
    "UnionPlan",
    "Unlisted",
    "alike",
    "bounds_of_files",
    "branches_of",
    "check_reject_table",
    "check_tablespaces",
    "counted",
    "display_name",
    "engine_bytes",
    "hints_for_builds",
    "is_enforced",
    "is_partitioned",
    "key_column",
    "key_question",
    "lookup_engine_bytes",
    "memory_for_lookups",
    "own_partitions",
    "own_tables",
    "plan_build",
    "plan_data_flow",
    "plan_reject_table",
    "plan_source_pass",
    "refuse_cut_name",
    "refuse_loaded",
    "rule_from_dict",
    "shared_plan",
    "source_alone",
    "table_after",
    "with_outside_keys",
]
