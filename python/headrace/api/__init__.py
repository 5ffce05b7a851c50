"""Headrace from Python: the same packages, and the same power, as on the command line.

What is exported here is stable, and found as `headrace.NAME` too.
"""

from headrace.api.package import Package, load
from headrace.api.results import Plan, RunResult, TableResult, TaskResult
from headrace.api.running import resume, run
from headrace.errors import HeadraceError, PackageError

__all__ = [
    "HeadraceError",
    "Package",
    "PackageError",
    "Plan",
    "RunResult",
    "TableResult",
    "TaskResult",
    "load",
    "resume",
    "run",
]
