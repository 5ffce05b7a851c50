"""Packages: the format, its checks, and the bound form that planning reads.

`load_package` is the way in; everything importable from here is stable for the rest of Headrace.
"""

from headrace.model.bound import (
    BoundPackage,
    BoundTask,
    DataFlowTask,
    Destination,
    FileSource,
    ForeachTask,
    GenerateSource,
    Iteration,
    Source,
)
from headrace.model.connections import (
    Connection,
    DuckdbConnection,
    FilesConnection,
    NullConnection,
    PostgresConnection,
)
from headrace.model.data_type import DataType, DataTypeError
from headrace.model.describe import describe
from headrace.model.key_kinds import HASH_KEYS, HASH_KINDS, LIST_KINDS, RANGE_KINDS
from headrace.model.layout import Layout
from headrace.model.layout_column import Column
from headrace.model.load import load_package
from headrace.model.load_options import LoadOptions
from headrace.model.memory_size import parse_memory_size
from headrace.model.partition import (
    CommitInterval,
    Every,
    HashPartition,
    ListPartition,
    PartitionClause,
    PartitionSettings,
    PeriodUnit,
    Quantiles,
    RangePartition,
    strategy_of,
)
from headrace.model.redaction import redact, redact_data
from headrace.model.reject_limits import RejectBounds, RejectLimits
from headrace.model.schema import layout_schema, package_schema

__all__ = [
    "HASH_KEYS",
    "HASH_KINDS",
    "LIST_KINDS",
    "RANGE_KINDS",
    "BoundPackage",
    "BoundTask",
    "Column",
    "CommitInterval",
    "Connection",
    "DataFlowTask",
    "DataType",
    "DataTypeError",
    "Destination",
    "DuckdbConnection",
    "Every",
    "FileSource",
    "FilesConnection",
    "ForeachTask",
    "GenerateSource",
    "HashPartition",
    "Iteration",
    "Layout",
    "ListPartition",
    "LoadOptions",
    "NullConnection",
    "PartitionClause",
    "PartitionSettings",
    "PeriodUnit",
    "PostgresConnection",
    "Quantiles",
    "RangePartition",
    "RejectBounds",
    "RejectLimits",
    "Source",
    "describe",
    "layout_schema",
    "load_package",
    "package_schema",
    "parse_memory_size",
    "redact",
    "redact_data",
    "strategy_of",
]
