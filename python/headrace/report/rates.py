"""Speeds over time, from counters of flows that ran side by side, one after the other, or in several attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from headrace.report.run_files import RunFiles
from headrace.report.task_spans import table_of
from headrace.report.tracks import Curve
from headrace.units import MEGABYTE

# Lines come once a second: finer steps show nothing.
_STEP_SECONDS: Final = 1.0
_MOST_STEPS: Final = 3_000
_LEAST_STEPS: Final = 24


@dataclass(frozen=True)
class Rates:
    """Megabytes per second of named things, at the same moments; and how many bytes each was in all."""

    moments: Sequence[float]
    by_name: Mapping[str, Sequence[float]]
    bytes: Mapping[str, float]

    def total(self) -> list[float]:
        """Of all together."""
        return [sum(values) for values in zip(*self.by_name.values(), strict=True)] or [0.0] * len(self.moments)


def edges_of(seconds: float, most: int = _MOST_STEPS) -> list[float]:
    """Equal steps over a run."""
    steps = max(_LEAST_STEPS, min(most, round(seconds / _STEP_SECONDS)))
    return [seconds * number / steps for number in range(steps + 1)]


def middles(edges: Sequence[float]) -> list[float]:
    """The middles between neighbouring edges."""
    return [(begin + end) / 2 for begin, end in pairwise(edges)]


def rates_of(curves: Mapping[str, Sequence[Curve]], edges: Sequence[float]) -> Rates:
    """The speeds of counters of bytes; curves of one name are added up."""
    by_name = {}
    for name, own in curves.items():
        grown = [curve.growth(edges) for curve in own]
        by_name[name] = [
            sum(step) / (end - begin) / MEGABYTE
            for step, begin, end in zip(zip(*grown, strict=True), edges, edges[1:], strict=False)
        ]
    totals = {name: sum(curve.total for curve in own) for name, own in curves.items()}
    return Rates(middles(edges), by_name, totals)


def table_curves(run: RunFiles) -> dict[str, list[Curve]]:
    """Bytes of text read for each table: measured, or, where that is missing, as events told them."""
    found: dict[str, list[Curve]] = {}
    for (attempt, task), flow in run.measures.flows.items():
        start = begin_of(run, attempt, task)
        curve = flow.curve("bytes_read", start).moved(run.timeline.offset(attempt))
        found.setdefault(run.table_of(task), []).append(curve)
    for events in run.events.attempts:
        for task, track in events.progress.items():
            if (events.number, task) not in run.measures.flows:
                span = events.tasks.get(task)
                name = table_of(span) if span else task
                start = begin_of(run, events.number, task)
                curve = track.curve(0, start).moved(run.timeline.offset(events.number))
                found.setdefault(name, []).append(curve)
    return found


def begin_of(run: RunFiles, attempt: int, task: str) -> float:
    """When a data flow began to read, seconds of its attempt: what events say, if its first line allows that."""
    flow = run.measures.flows.get((attempt, task))
    events = next((events for events in run.events.attempts if events.number == attempt), None)
    span = events.tasks.get(task) if events else None
    if flow is None:
        return span.begin if span else 0.0
    first = flow.begin
    # What was read before the first line was read since a moment that no line tells: about one step before.
    earliest = max(0.0, first - (flow.step or _STEP_SECONDS))
    return min(first, max(earliest, span.begin)) if span else earliest


def table_rates(run: RunFiles) -> Rates:
    """Megabytes of text per second of each table, the largest first."""
    curves = table_curves(run)
    order = sorted(curves, key=lambda name: -sum(curve.total for curve in curves[name]))
    return rates_of({name: curves[name] for name in order}, edges_of(run.timeline.seconds))


def stream_curves(run: RunFiles) -> dict[int, list[Curve]]:
    """Bytes of text that each stream parsed."""
    found: dict[int, list[Curve]] = {}
    for (attempt, task), flow in run.measures.flows.items():
        start = begin_of(run, attempt, task)
        for number, stream in flow.streams.items():
            found.setdefault(number, []).append(stream.curve("bytes", start).moved(run.timeline.offset(attempt)))
    return {number: found[number] for number in sorted(found)}
