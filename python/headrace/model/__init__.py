"""Packages: the format, its checks, and the bound form that planning reads.

`load_package` is the way in; everything importable from here is stable for the rest of Headrace.
"""

from headrace.model.bound import (
    BoundPackage,
    DataFlowTask,
    Destination,
    FirstColumn,
    GatheredSource,
    Lookup,
    RowColumn,
    SharedFlow,
    Source,
    Transform,
    columns_of,
    outputs_taken,
    rows_read,
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
from headrace.model.duckdb_instance import new_instance
from headrace.model.duckdb_types import native_type
from headrace.model.embedded_query import EmbeddedQuery, EmbeddedQueryError, embedded_database, message_of, row_stream
from headrace.model.file_source import FileSource, GenerateSource
from headrace.model.flow_rows import FIRST, MAIN, FlowRows
from headrace.model.gathered_query import GatheredQuery, gather_rows, gathered_rows, gathering_database
from headrace.model.join import SIDES, JoinedColumn, JoinKey, Side
from headrace.model.join_accounts import joins_told, leaves_told
from headrace.model.key_kinds import HASH_KEYS, HASH_KINDS, LIST_KINDS, RANGE_KINDS
from headrace.model.layout import Layout
from headrace.model.layout_column import Column
from headrace.model.load import load_package
from headrace.model.load_options import LoadOptions
from headrace.model.lookup import AddedColumn, LookupColumn, LookupKey, LookupTable, TableColumn
from headrace.model.lookup_keys import key_family
from headrace.model.lookup_query import DatabaseQuery
from headrace.model.lookup_sources import DatabaseQuerySource, DatabaseSource, QuerySource, TableSource
from headrace.model.memory_size import parse_memory_size
from headrace.model.name_limits import MAXIMUM_NAME_BYTES, cut_name
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
from headrace.model.query_tree import ROW_NUMBER
from headrace.model.redaction import holds_secret, redact, redact_data
from headrace.model.reject_limits import RejectBounds, RejectLimits
from headrace.model.reunion import Reunion
from headrace.model.row_query import RowQuery, prepared_rows, row_database
from headrace.model.row_query_error import RowQueryError
from headrace.model.rows import Rows
from headrace.model.schema import environments_schema, layout_schema, package_schema
from headrace.model.scope import Scope
from headrace.model.spec_files import STREAM_PLACEHOLDER
from headrace.model.split import Split
from headrace.model.sql_text import without_schema
from headrace.model.sql_transform import ComputedColumn, SqlTransform
from headrace.model.task import Constraint, Handler, Retry, Task, Variable
from headrace.model.task_kinds import EVENT_KINDS, TASK_KINDS
from headrace.model.together import Join, Together, Union, number_without_apart
from headrace.model.union import UnitedColumn

__all__ = [
    "EVENT_KINDS",
    "FIRST",
    "HASH_KEYS",
    "HASH_KINDS",
    "LIST_KINDS",
    "MAIN",
    "MAXIMUM_NAME_BYTES",
    "RANGE_KINDS",
    "ROW_NUMBER",
    "SIDES",
    "STREAM_PLACEHOLDER",
    "TASK_KINDS",
    "AddedColumn",
    "BoundPackage",
    "Column",
    "CommitInterval",
    "ComputedColumn",
    "Connection",
    "Constraint",
    "DataFlowTask",
    "DataType",
    "DataTypeError",
    "DatabaseQuery",
    "DatabaseQuerySource",
    "DatabaseSource",
    "Destination",
    "DuckdbConnection",
    "EmbeddedQuery",
    "EmbeddedQueryError",
    "Every",
    "FileSource",
    "FilesConnection",
    "FirstColumn",
    "FlowRows",
    "GatheredQuery",
    "GatheredSource",
    "GenerateSource",
    "Handler",
    "HashPartition",
    "Join",
    "JoinKey",
    "JoinedColumn",
    "Layout",
    "ListPartition",
    "LoadOptions",
    "Lookup",
    "LookupColumn",
    "LookupKey",
    "LookupTable",
    "NullConnection",
    "PartitionClause",
    "PartitionSettings",
    "PeriodUnit",
    "PostgresConnection",
    "Quantiles",
    "QuerySource",
    "RangePartition",
    "RejectBounds",
    "RejectLimits",
    "Retry",
    "Reunion",
    "RowColumn",
    "RowQuery",
    "RowQueryError",
    "Rows",
    "Scope",
    "SharedFlow",
    "Side",
    "Source",
    "Split",
    "SqlTransform",
    "TableColumn",
    "TableSource",
    "Task",
    "Together",
    "Transform",
    "Union",
    "UnitedColumn",
    "Variable",
    "columns_of",
    "cut_name",
    "describe",
    "embedded_database",
    "environments_schema",
    "gather_rows",
    "gathered_rows",
    "gathering_database",
    "holds_secret",
    "joins_told",
    "key_family",
    "layout_schema",
    "leaves_told",
    "load_package",
    "message_of",
    "native_type",
    "new_instance",
    "number_without_apart",
    "outputs_taken",
    "package_schema",
    "parse_memory_size",
    "prepared_rows",
    "redact",
    "redact_data",
    "row_database",
    "row_stream",
    "rows_read",
    "strategy_of",
    "without_schema",
]
