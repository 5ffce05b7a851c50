"""Running packages: `plan_package` shows what would happen, `execute` does it."""

from headrace.run.events import Listener
from headrace.run.runner import execute, plan_package
from headrace.run.summary import FlowCounters, Judge, Summary

__all__ = ["FlowCounters", "Judge", "Listener", "Summary", "execute", "plan_package"]
