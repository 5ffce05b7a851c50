"""One attempt of a run."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.run.replay import ReplayRun
from headrace.run.request import RunRequest


@dataclass(frozen=True)
class Attempt:
    """Whether a run starts or goes on, when it began, and what is kept or given up for that; see `execute`."""

    request: RunRequest | None
    is_resumed: bool
    abandon: bool
    began_us: int | None
    replay: ReplayRun | None
