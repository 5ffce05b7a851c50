"""Which of the destinations counts: the one that waits least for rows."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.diagnose.destination import embedded, server_limit
from headrace.diagnose.machine import CpuShares
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import DestinationTime, Window


@dataclass(frozen=True)
class Judged:
    """A destination by itself: what its limit is, if it is the limit at all, and how busy it was, 0 to 1; None if
    nobody knows.
    """

    time: DestinationTime
    verdict: Verdict | None = None
    how_busy: float | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """The busiest has the highest. One of which nothing can be said is no limit while another one may be. A server
        that nobody could look into is as busy as its connections say.
        """
        return self.verdict is not None, _busy_from_outside(self.time) if self.how_busy is None else self.how_busy


def busiest(window: Window, cpus: CpuShares | None) -> Judged:
    """Of equals the first one."""
    return max((_judged(window, own, cpus) for own in window.destinations), key=lambda judged: judged.rank)


def _judged(window: Window, own: DestinationTime, cpus: CpuShares | None) -> Judged:
    if own.engine is not None and own.engine.busy_share is not None:
        return Judged(own, embedded(window, own, own.engine, cpus), own.engine.busy_share)
    return Judged(own, *server_limit(window, own, cpus)) if own.writers else Judged(own)


def _busy_from_outside(own: DestinationTime) -> float:
    """Of the time of its writers, that in which they waited for it; those it kept waiting longer count more, as with
    sessions that are looked at.
    """
    waiting = sum(writer.waiting for writer in own.writers)
    shares = sum(writer.waiting**2 / writer.all for writer in own.writers if writer.all > 0)
    return shares / waiting if waiting > 0 else 0.0
