"""Running packages: `plan_package` shows what would happen, `execute` does it."""

from headrace.run.events import Listener
from headrace.run.folder import RESUME, VERIFY, Purpose, RunFolder
from headrace.run.inspection import Destination, inspect_destinations
from headrace.run.request import RunRequest
from headrace.run.request import load as load_request
from headrace.run.runner import execute, plan_package
from headrace.run.summary import FlowCounters, Judge, Summary
from headrace.run.verification import TableVerdict, verify

__all__ = [
    "RESUME",
    "VERIFY",
    "Destination",
    "FlowCounters",
    "Judge",
    "Listener",
    "Purpose",
    "RunFolder",
    "RunRequest",
    "Summary",
    "TableVerdict",
    "execute",
    "inspect_destinations",
    "load_request",
    "plan_package",
    "verify",
]
