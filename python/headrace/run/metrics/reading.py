"""Reads `metrics.jsonl`, whatever has become of it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """One line. `t`: seconds since its attempt began, of a verdict the end of its window; `members`: all of the line,
    also those that nobody knows.
    """

    kind: str
    attempt: int
    t: float
    members: Mapping[str, Any] = field(repr=False)

    @property
    def task(self) -> str | None:
        """The data flow that it is about."""
        task = self.members.get("task")
        return task if isinstance(task, str) else None


@dataclass(frozen=True)
class Metrics:
    """The lines of a file, as they stand there. `damaged`: lines that are cut off or no line of this file at all;
    `out_of_order`: lines with an earlier time than one before them of the same kind, task and attempt.
    """

    by_kind: Mapping[str, list[Sample]]
    damaged: int = 0
    out_of_order: int = 0

    @property
    def flows(self) -> list[Sample]:
        """Of all data flows."""
        return self.of("flow")

    @property
    def machine(self) -> list[Sample]:
        """Of the process and its machine."""
        return self.of("machine")

    @property
    def destinations(self) -> list[Sample]:
        """Of all destinations."""
        return self.of("destination")

    @property
    def verdicts(self) -> list[Sample]:
        """What was found to limit the data flows."""
        return self.of("verdict")

    @property
    def attempts(self) -> list[int]:
        """Numbers of the attempts that have measured something."""
        return sorted({sample.attempt for samples in self.by_kind.values() for sample in samples})

    def of(self, kind: str, attempt: int | None = None, task: str | None = None) -> list[Sample]:
        """Those of a kind, and of one attempt or task, in the order of the file."""
        return [
            sample
            for sample in self.by_kind.get(kind, [])
            if (attempt is None or sample.attempt == attempt) and (task is None or sample.task == task)
        ]


def read_metrics(path: Path) -> Metrics:
    """All of a file. Raises OSError if it cannot be read; its contents are nobody's fault."""
    by_kind: defaultdict[str, list[Sample]] = defaultdict(list)
    latest: dict[tuple[str, str | None, int], float] = {}
    damaged = out_of_order = 0
    for sample in read_samples(path):
        if sample is None:
            damaged += 1
            continue
        series = (sample.kind, sample.task, sample.attempt)
        out_of_order += sample.t < latest.get(series, -math.inf)
        latest[series] = max(sample.t, latest.get(series, -math.inf))
        by_kind[sample.kind].append(sample)
    return Metrics(dict(by_kind), damaged, out_of_order)


def read_samples(path: Path) -> Iterator[Sample | None]:
    """Line by line; None for one that is damaged. Empty lines stand behind what was cut off, and are none."""
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield _sample(line)


def _sample(line: bytes) -> Sample | None:
    try:
        members = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    kind: Any = members.get("kind")
    attempt: Any = members.get("attempt", 1)
    t: Any = members.get("t", members.get("to"))
    if not (isinstance(kind, str) and isinstance(attempt, int) and isinstance(t, int | float)):
        return None
    try:
        seconds = float(t)
    except OverflowError:
        return None
    return Sample(kind, attempt, seconds, members) if math.isfinite(seconds) else None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
