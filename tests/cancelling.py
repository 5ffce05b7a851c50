"""When a run under test is cancelled."""

from __future__ import annotations

import threading
from pathlib import Path


class CancelledOnceStarted(threading.Event):
    """Set as soon as a run has looked at its files, and not before: ahead of the first row, however fast it comes."""

    def __init__(self, runs_dir: Path) -> None:
        super().__init__()
        self._runs_dir = runs_dir

    def is_set(self) -> bool:
        return any('"run_started"' in path.read_text() for path in self._runs_dir.glob("*/events.jsonl"))
