"""Running packages: `plan_package` shows what would happen, `execute` does it.

As the function `headrace.run` of the Python API the module can be called: see `headrace.CallableModule`.
"""

import sys

from headrace import CallableModule
from headrace.run.control.selection import Choice as TaskChoice
from headrace.run.control.selection import left_out
from headrace.run.events import Listener
from headrace.run.flow_records import with_late_flows
from headrace.run.folder import REJECTS, REPLAY, REPORT, RESUME, VERIFY, Purpose, RunFolder
from headrace.run.inspection import Destination, inspect_destinations
from headrace.run.judging import Judge
from headrace.run.reject_accounts import read_claims
from headrace.run.reject_export import NUMBERS_ENDING, copy_rejects, export_rejects
from headrace.run.rejected import Choice, RejectedRun, RejectedTable, rejected_run, with_accounts
from headrace.run.replay import ReplayOptions, ReplayRun, begin_replay
from headrace.run.request import RunRequest, was_trusted
from headrace.run.request import load as load_request
from headrace.run.runner import execute, plan_package
from headrace.run.summary import Summary
from headrace.run.trust import check_stored, check_trust, with_trust
from headrace.run.verification import TableVerdict, verify
from headrace.run.whole_file import written_whole

__all__ = [
    "NUMBERS_ENDING",
    "REJECTS",
    "REPLAY",
    "REPORT",
    "RESUME",
    "VERIFY",
    "Choice",
    "Destination",
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
    "TaskChoice",
    "begin_replay",
    "check_stored",
    "check_trust",
    "copy_rejects",
    "execute",
    "export_rejects",
    "inspect_destinations",
    "left_out",
    "load_request",
    "plan_package",
    "read_claims",
    "rejected_run",
    "verify",
    "was_trusted",
    "with_accounts",
    "with_late_flows",
    "with_trust",
    "written_whole",
]

sys.modules[__name__].__class__ = CallableModule
