"""What became of the tasks of a package, added up by their definition: a loop is as long as one turn of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import HeadraceError
from headrace.model import Task
from headrace.run.control.group import End


@dataclass
class _Total:
    kind: str
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str | None = None
    error: dict[str, object] | None = None
    details: dict[str, Any] = field(default_factory=dict)


class TaskTotals:
    """Filled by the control thread. `redact` takes secrets out of errors."""

    def __init__(self, redact: Callable[[HeadraceError], HeadraceError]) -> None:
        self._redact = redact
        self._totals: dict[str, _Total] = {}

    def ended(self, task: Task, end: End, seconds: float) -> None:
        """A task has ended in this attempt of the run."""
        total = self._total(task)
        total.counts[end.status] = total.counts.get(end.status, 0) + 1
        total.seconds += seconds
        total.reason = end.reason or total.reason
        if end.error is not None and total.error is None and end.status == "failed":
            total.error = self.shown_error(end.error)

    def before(self, task: Task) -> None:
        """A task had ended in an earlier attempt."""
        total = self._total(task)
        total.counts["before"] = total.counts.get("before", 0) + 1

    def details(self, task: Task, details: Mapping[str, Any]) -> None:
        """What a task says of its last success."""
        self._total(task).details.update(details)

    @property
    def any_done(self) -> bool:
        """Whether a task has ended well, in this attempt of the run or before."""
        return any(total.counts.get(status) for total in self._totals.values() for status in ("success", "before"))

    def shown_error(self, error: HeadraceError) -> dict[str, object]:
        """The error as data, without secrets."""
        return self._redact(error).to_dict()

    def to_list(self) -> list[dict[str, Any]]:
        """JSON-ready, in the order in which they first ended. `before`: ended in an earlier attempt of the run."""
        return [
            {
                "task": name,
                "kind": total.kind,
                **{status: total.counts.get(status, 0) for status in _STATUSES},
                "seconds": round(total.seconds, 6),
                "reason": total.reason,
                "error": total.error,
                **({"details": total.details} if total.details else {}),
            }
            for name, total in self._totals.items()
        ]

    def _total(self, task: Task) -> _Total:
        return self._totals.setdefault(task.id, _Total(task.kind))


_STATUSES = ("success", "failed", "skipped", "passed", "cancelled", "before")
