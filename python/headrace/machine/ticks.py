"""Equal steps of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Event
from typing import Final

# Who wakes up a hundredth of a period too early is at the moment that it has waited for, and not to come twice.
_TOLERANCE: Final = 0.01


class Ticks:
    """Moments that lie `period_seconds` apart on the monotonic clock, whatever the work between them takes.

    Moments that have passed by the time somebody waits, because the process was stopped or the work took longer, are
    left out: nothing is made up for.
    """

    def __init__(self, period_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period_seconds = period_seconds
        self._clock = clock
        self._began = clock()

    def seconds_left(self) -> float:
        """Until the next moment: more than 0, at most a period."""
        passed = max(0.0, self._clock() - self._began)
        number = math.floor(passed / self._period_seconds + _TOLERANCE) + 1
        return min(number * self._period_seconds - passed, self._period_seconds)

    def wait(self, stop: Event) -> bool:
        """Waits for the next moment; False as soon as `stop` is set."""
        return not stop.wait(self.seconds_left())
