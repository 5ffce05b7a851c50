"""Running packages: `plan_package` shows what would happen, `execute` does it."""

from headrace.run.events import Listener
from headrace.run.folder import REJECTS, REPLAY, RESUME, VERIFY, Purpose, RunFolder
from headrace.run.inspection import Destination, inspect_destinations
from headrace.run.reject_accounts import read_claims
from headrace.run.reject_export import NUMBERS_ENDING, copy_rejects, export_rejects
from headrace.run.rejected import Choice, RejectedRun, RejectedTable, rejected_run, with_accounts
from headrace.run.replay import ReplayOptions, ReplayRun, begin_replay
from headrace.run.request import RunRequest
from headrace.run.request import load as load_request
from headrace.run.runner import execute, plan_package
from headrace.run.summary import FlowCounters, Judge, Summary
from headrace.run.verification import TableVerdict, verify

__all__ = [
    "NUMBERS_ENDING",
    "REJECTS",
    "REPLAY",
    "RESUME",
    "VERIFY",
    "Choice",
    "Destination",
    "FlowCounters",
    "Judge",
    "Listener",
    "Purpose",
    "RejectedRun",
    "RejectedTable",
    "ReplayOptions",
    "ReplayRun",
    "RunFolder",
    "RunRequest",
    "Summary",
    "TableVerdict",
    "begin_replay",
    "copy_rejects",
    "execute",
    "export_rejects",
    "inspect_destinations",
    "load_request",
    "plan_package",
    "read_claims",
    "rejected_run",
    "verify",
    "with_accounts",
]
