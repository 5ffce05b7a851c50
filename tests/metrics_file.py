"""All of a `metrics.jsonl` at once, for tests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.run.metrics import Sample, read_samples


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
