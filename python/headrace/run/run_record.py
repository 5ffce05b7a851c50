"""The row of a run in the ledgers."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

from headrace import core
from headrace.model import BoundPackage
from headrace.run.folder import RunFolder
from headrace.run.redact import Redactor
from headrace.run.replay import ReplayRun
from headrace.targets import RunRecord


def record_of_run(package: BoundPackage, folder: RunFolder, redactor: Redactor, replay: ReplayRun | None) -> RunRecord:
    """That of this attempt."""
    return RunRecord(
        run_id=folder.run_id,
        package=redactor.text(package.name),
        package_hash=package.content_hash,
        headrace_version=core.version(),
        host=platform.node(),
        process_id=os.getpid(),
        started_at=datetime.now(UTC),
        of_run=None if replay is None else replay.of_run,
    )
