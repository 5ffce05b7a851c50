"""The judgement of a data flow over its life: live the last seconds, at its end all of it.

Lines of many streams are large. So what is kept of a long load is bounded: the last seconds, some samples of all of it,
and for each limit where it lasted longest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.diagnose.rule import judge, judge_streams
from headrace.diagnose.tail import SlowStream, Tail
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import SERVER_COUNTERS, Line, Sample, Window, window

_WINDOW_SECONDS: Final = 5.0
# A verdict that only flickers is not shown.
_STEADY_SECONDS: Final = 2.0
# Part of all seconds from which a limit counts against what comes out of the sums.
_MOST_SECONDS: Final = 0.6

# As `Verdict.what`.
What = tuple[str, str | None]


@dataclass
class _Stretch:
    """Time in which one limit was the limit without a break."""

    first: Sample
    last: Sample

    @property
    def seconds(self) -> float:
        return self.last.t - self.first.t


class History:
    """The samples of one data flow and what follows from them. `files`: names of its files, in the order of the plan.
    Not for several threads.
    """

    def __init__(self, files: Sequence[str] = ()) -> None:
        self._recent: deque[Sample] = deque()
        self._first: Sample | None = None
        self._tail = Tail(files)
        # Connections.
        self._learned: set[object] = set()
        self._seconds: dict[What, float] = {}
        self._longest: dict[What, _Stretch] = {}
        self._stretch: tuple[What, _Stretch] | None = None
        self._shown: Verdict | None = None
        self._candidate: tuple[What, float] | None = None

    @property
    def seconds(self) -> float:
        """Time from the first sample to the last one."""
        return 0.0 if self._first is None else self._recent[-1].t - self._first.t

    def span(self, *, whole: bool) -> tuple[float, float]:
        """From when to when a verdict is: the shown one, or that about all of it. `t` of the first and last sample."""
        first = self._first if whole else self._recent[0] if self._recent else None
        return (0.0, 0.0) if first is None else (first.t, self._recent[-1].t)

    def add(self, flow: Line, machine: Line | None, destinations: Sequence[Line]) -> Verdict | None:
        """Takes what was measured at one moment; the verdict about the last seconds, steady enough to be shown."""
        sample = Sample(flow, machine, destinations)
        self._first = self._first or sample
        for line in destinations:
            self._learn(line)
        self._tail.add(sample)
        self._recent.append(sample)
        while len(self._recent) > 2 and sample.t - self._recent[1].t >= _WINDOW_SECONDS:
            self._recent.popleft()
        if len(self._recent) > 1:
            now = judge(window(self._recent[0], sample))
            self._count(now, self._recent[-2], sample)
            if now is not None:
                self._show(now, sample.t)
        return self._shown

    def streams(self) -> list[dict[str, Any]]:
        """What limits each stream alone, in the last seconds."""
        return _alone(window(self._recent[0], self._recent[-1])) if len(self._recent) > 1 else []

    def slow(self) -> list[SlowStream]:
        """The long tail as it is now."""
        return self._tail.slow()

    def whole(self) -> Verdict | None:
        """The verdict about all of it; that of the limit with the most seconds, if it had most of them and another one
        comes out of the sums: many streams that were done soon outweigh a few that worked on.
        """
        if self._first is None or len(self._recent) < 2:
            return None
        all_of_it = judge(window(self._first, self._recent[-1]))
        most = max(self._seconds, key=lambda what: self._seconds[what], default=None)
        if all_of_it is None or most is None or all_of_it.what == most:
            return all_of_it
        share = self._seconds[most] / sum(self._seconds.values())
        if share <= _MOST_SECONDS:
            return all_of_it
        stretch = self._longest[most]
        found = judge(window(stretch.first, stretch.last))
        is_same = found is not None and found.what == most
        return found.behind(f"{share:.0%} of the time this was so") if found is not None and is_same else all_of_it

    def to_dict(self) -> dict[str, Any] | None:
        """The `verdict` of the end of the data flow, as docs/spec/metrics.md has it; None without one."""
        verdict = self.whole()
        if verdict is None or self._first is None:
            return None
        seconds_by_limit: dict[str, float] = {}
        for (name, _), seconds in self._seconds.items():
            seconds_by_limit[name] = seconds_by_limit.get(name, 0.0) + seconds
        return {
            **verdict.to_dict(),
            "seconds_by_limit": {name: round(seconds, 3) for name, seconds in seconds_by_limit.items()},
            "streams": _alone(window(self._first, self._recent[-1])),
            "slow": [stream.to_dict() for stream in self.slow()],
        }

    def _learn(self, destination: Line) -> None:
        """Counters of a server since its start are known from the first look on: before it they were no less."""
        connection = destination.get("connection")
        known = {name: value for name in SERVER_COUNTERS if (value := destination.get(name)) is not None}
        if connection in self._learned or not known or self._first is None:
            return
        self._learned.add(connection)

        def completed(sample: Sample) -> Sample:
            return replace(sample, destinations=[*map(with_known, sample.destinations)])

        def with_known(line: Line) -> Line:
            if line.get("connection") != connection:
                return line
            return {**line, **known, **{name: value for name, value in line.items() if value is not None}}

        self._first = completed(self._first)
        self._recent = deque(map(completed, self._recent))

    def _count(self, now: Verdict | None, before: Sample, sample: Sample) -> None:
        """Each second has one vote, however many streams are left: else many short ones outvote a long tail."""
        limit = None if now is None else now.what
        if self._stretch is None or self._stretch[0] != limit:
            self._stretch = None if limit is None else (limit, _Stretch(before, sample))
        else:
            self._stretch[1].last = sample
        if limit is None or self._stretch is None:
            return
        self._seconds[limit] = self._seconds.get(limit, 0.0) + sample.t - before.t
        longest, stretch = self._longest.get(limit), self._stretch[1]
        if longest is None or stretch.seconds > longest.seconds:
            self._longest[limit] = stretch

    def _show(self, verdict: Verdict, now: float) -> None:
        if self._shown is not None and verdict.what == self._shown.what:
            self._shown, self._candidate = verdict, None
        elif self._candidate is None or self._candidate[0] != verdict.what:
            self._candidate = (verdict.what, now)
        # The first one needs to be found twice: at the beginning not all who work have been seen yet.
        elif self._shown is None or now - self._candidate[1] >= _STEADY_SECONDS:
            self._shown, self._candidate = verdict, None


def _alone(window: Window) -> list[dict[str, Any]]:
    streams = sorted(judge_streams(window).items())
    return [{"number": number, "limit": own.limit, "sentence": own.sentence} for number, own in streams]
