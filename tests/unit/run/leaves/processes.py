"""Looking at programs that a task has started."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.patience import HANG_SECONDS


def lives(process: int) -> bool:
    """Whether it runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Fails if it does not become true."""
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
