"""What is told of the end of a task: an event, and the totals."""

from __future__ import annotations

from headrace.model import Task
from headrace.run.control.group import End
from headrace.run.control.totals import TaskTotals
from headrace.run.control.work import Events


class Reports:
    """Of one run."""

    def __init__(self, events: Events, totals: TaskTotals) -> None:
        self._events = events
        self._totals = totals

    def left_out(self, task: Task, shown: str, end: End) -> End:
        """A task does not run."""
        self._totals.ended(task, end, 0.0)
        self._events.emit("task_skipped", task=shown, kind=task.kind, reason=end.reason)
        return end

    def never_started(self, task: Task, shown: str, end: End) -> None:
        """The others have decided that a task will not run."""
        if end.status == "skipped":
            self.left_out(task, shown, end)
        elif end.status == "failed":
            self.ended(task, shown, end, 0.0)
        else:
            self._totals.ended(task, end, 0.0)

    def ended(self, task: Task, shown: str, end: End, seconds: float) -> None:
        """A task has ended that has run."""
        self._totals.ended(task, end, seconds)
        if task.kind == "data_flow" and end.status == "success":
            return  # the flow has told it, with its rows
        # That of a container is told by the task inside it that has failed, unless it is its own.
        is_own = task.does_work or end.is_own_error
        error = self._totals.shown_error(end.error) if end.error is not None and is_own else None
        self._events.emit(
            "task_finished", task=shown, kind=task.kind, status=end.status, seconds=round(seconds, 6), error=error
        )
