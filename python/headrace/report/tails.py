"""The long tail: streams that work on when the others have ended."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Final

from headrace.report.run_files import RunFiles

_LEAST_SECONDS: Final = 2.0
_LEAST_SHARE: Final = 0.1


@dataclass(frozen=True)
class Tail:
    """One stream that ended late in a data flow, in seconds of the axis. `file`: what it was at in the end."""

    task: str
    stream: int
    others_ended: float
    ended: float
    file: str | None
    limit: str | None

    @property
    def behind_seconds(self) -> float:
        """How long it worked behind the others."""
        return self.ended - self.others_ended


def tails_of(run: RunFiles) -> list[Tail]:
    """All of them, the longest first. The rule is that of the verdict: a tenth of the flow, and 2 seconds."""
    found = []
    slow = {(verdict.task, item.number): item for verdict in run.measures.verdicts for item in verdict.slow}
    for (attempt, task), flow in run.measures.flows.items():
        ends = {number: end for number, own in flow.streams.items() if (end := own.ended_at()) is not None}
        if len(ends) < 2:
            continue
        middle = median(ends.values())
        least = max(_LEAST_SECONDS, _LEAST_SHARE * (flow.end - flow.begin))
        offset = run.timeline.offset(attempt)
        for number, end in ends.items():
            if end - middle >= least:
                told = slow.get((task, number))
                last = flow.streams[number].spans[-1]
                found.append(
                    Tail(
                        task=task,
                        stream=number,
                        others_ended=offset + middle,
                        ended=offset + end,
                        file=run.file_of(task, last.file) or (told.file if told else None),
                        limit=told.limit if told else None,
                    )
                )
    return sorted(found, key=lambda tail: -tail.behind_seconds)
