"""Who executes a planned data flow: for now this process."""

from headrace.executors.local import CreateFlow, FlowOutcome, LocalExecutor

__all__ = ["CreateFlow", "FlowOutcome", "LocalExecutor"]
