"""Random moments at which something that runs is killed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

from tests.integration.starts import REAL_STARTS_VARIABLE

# Until the interpreter has started and has imported everything, which a forked process has already.
START_SECONDS = 0.3 if os.environ.get(REAL_STARTS_VARIABLE) else 0.0
# Of a run that takes a minute, the last one is in its first hundredth of a second.
_EARLIER = 13


class Moments:
    """`count` moments, spread over `whole` after `first`: seconds, lines of a journal, or another measure.

    A run may be faster than the one that was measured, so that every kill comes too late. Earlier moments follow until
    one was in time, which the test reports with `in_time`:

        moments = Moments(seconds, KILLS)
        for number, moment in enumerate(moments):
            ...
            moments.in_time(running.ended.exit_code == -signal.SIGKILL)
    """

    def __init__(self, whole: float, count: int, first: float = 0) -> None:
        self._whole = whole
        self._count = count
        self._first = first
        self._was_in_time = False

    def __iter__(self) -> Iterator[float]:
        for number in range(self._count):
            yield self._first + self._whole * (number + random.random()) / self._count
        part = self._whole
        for _ in range(_EARLIER):
            if self._was_in_time:
                return
            part /= 2
            yield self._first + part
        assert self._was_in_time, "no moment was before the end of the run"

    def in_time(self, was_in_time: bool) -> None:
        """Whether the run was met before its end."""
        self._was_in_time |= was_in_time
