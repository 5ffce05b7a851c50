"""The judge of one run: a history for each data flow, and what limited all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.diagnose.history import History


class RunJudge:
    """Knows no more of flows that have ended than the seconds of each limit and the longest flow of it."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._longest: dict[str, tuple[float, dict[str, Any]]] = {}

    def flow(self, files: Sequence[str] = ()) -> History:
        """The judgement of one data flow. `files`: names of its files, in the order of the plan."""
        return History(files)

    def ended(self, flow: History) -> dict[str, Any] | None:
        """The verdict about a data flow that has ended, as docs/spec/metrics.md has it; None without one."""
        document = flow.to_dict()
        if document is not None:
            limit, seconds = str(document["limit"]), flow.seconds
            self._seconds[limit] = self._seconds.get(limit, 0.0) + seconds
            if seconds > self._longest.get(limit, (0.0, {}))[0]:
                self._longest[limit] = (seconds, document)
        return document

    def whole(self) -> dict[str, Any] | None:
        """The verdict about the run: of the limit with the most seconds, that of its longest flow. None without one."""
        if not self._longest:
            return None
        most = max(self._longest, key=lambda limit: self._seconds[limit])
        return {**self._longest[most][1], "flow_seconds_by_limit": dict(self._seconds)}
