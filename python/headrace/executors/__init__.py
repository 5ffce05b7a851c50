"""Who executes a planned data flow: for now this process."""

from headrace.executors.gathered import Gathering
from headrace.executors.gathered_accounts import (
    added_gathered,
    check_gathered,
    gathered_counts,
    gathered_outcomes,
    gathered_without_rows,
    is_source_known,
    keep_gathered,
    keep_gathered_in_front,
    kept_gathered,
    not_known,
    resumed_outcomes,
)
from headrace.executors.ignored import Ignored, ignored_by_column, kept_ignored
from headrace.executors.joined import added_joins, join_accounts, join_of_flow, kept_joined, without_rows
from headrace.executors.local import Cancel, CreateFlow, FlowOutcome, Loader, LocalExecutor, SharedLoader
from headrace.executors.lookups import BuiltLookups, RowsOf, build_lookups
from headrace.executors.sql_instances import sql_instances
from headrace.executors.transformed import added_accounts, kept_transformed, transform_counts
from headrace.executors.united import added_unions, kept_united, union_accounts, union_without_rows

__all__ = [
    "BuiltLookups",
    "Cancel",
    "CreateFlow",
    "FlowOutcome",
    "Gathering",
    "Ignored",
    "Loader",
    "LocalExecutor",
    "RowsOf",
    "SharedLoader",
    "added_accounts",
    "added_gathered",
    "added_joins",
    "added_unions",
    "build_lookups",
    "check_gathered",
    "gathered_counts",
    "gathered_outcomes",
    "gathered_without_rows",
    "ignored_by_column",
    "is_source_known",
    "join_accounts",
    "join_of_flow",
    "keep_gathered",
    "keep_gathered_in_front",
    "kept_gathered",
    "kept_ignored",
    "kept_joined",
    "kept_transformed",
    "kept_united",
    "not_known",
    "resumed_outcomes",
    "sql_instances",
    "transform_counts",
    "union_accounts",
    "union_without_rows",
    "without_rows",
]
