"""Who executes a planned data flow: for now this process."""

from headrace.executors.ignored import Ignored, ignored_by_column, kept_ignored
from headrace.executors.local import CreateFlow, FlowOutcome, LocalExecutor

__all__ = ["CreateFlow", "FlowOutcome", "Ignored", "LocalExecutor", "ignored_by_column", "kept_ignored"]
