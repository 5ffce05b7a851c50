"""Reads `metrics.jsonl`, whatever has become of it."""

from __future__ import annotations

import json
import math
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
