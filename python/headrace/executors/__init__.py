"""Who executes a planned data flow: for now this process."""

from headrace.executors.ignored import Ignored, ignored_by_column, kept_ignored
from headrace.executors.local import Cancel, CreateFlow, FlowOutcome, Loader, LocalExecutor

__all__ = [
    "Cancel",
    "CreateFlow",
    "FlowOutcome",
    "Ignored",
    "Loader",
    "LocalExecutor",
    "ignored_by_column",
    "kept_ignored",
]
