"""One axis for all attempts of a run: one behind the other, without the time between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headrace.report.task_spans import AttemptEvents

# Never 0, so that a place on the axis can be computed.
_LEAST_SECONDS: Final = 0.01


@dataclass(frozen=True)
class Attempt:
    """One attempt: where it begins on the axis, and how long it took."""

    number: int
    offset: float
    seconds: float
    started_at: datetime | None = None


class Timeline:
    """Places moments of attempts on the axis, in seconds from its begin."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = tuple(attempts) or (Attempt(1, 0.0, _LEAST_SECONDS),)
        self._offsets: Mapping[int, float] = {attempt.number: attempt.offset for attempt in self.attempts}

    @property
    def seconds(self) -> float:
        """The length of the axis."""
        last = self.attempts[-1]
        return max(_LEAST_SECONDS, last.offset + last.seconds)

    def offset(self, attempt: int) -> float:
        """Where an attempt begins."""
        return self._offsets.get(attempt, 0.0)

    def place(self, attempt: int, seconds: float) -> float:
        """A moment of an attempt."""
        return self.offset(attempt) + seconds

    def share(self, seconds: float) -> float:
        """A place on the axis, from 0 to 1."""
        return min(1.0, max(0.0, seconds / self.seconds))


def timeline_of(events: Iterable[AttemptEvents], measured: Mapping[int, float]) -> Timeline:
    """The axis for what events and metrics tell. `measured`: the last moment of each attempt in metrics.jsonl."""
    told = {attempt.number: attempt for attempt in events}
    attempts: list[Attempt] = []
    for number in sorted({*told, *measured}):
        known = told.get(number)
        seconds = max(measured.get(number, 0.0), known.seconds if known else 0.0)
        offset = attempts[-1].offset + attempts[-1].seconds if attempts else 0.0
        attempts.append(Attempt(number, offset, seconds, known.started_at if known else None))
    return Timeline(attempts)
