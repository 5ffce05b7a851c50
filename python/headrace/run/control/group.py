"""The tasks of one container: who may start, who never will. A pure state machine; whoever uses it runs the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.errors import HeadraceError
from headrace.model import Constraint, Task

# passed: switched off, and those behind it go on as if it had succeeded.
Status = Literal["success", "failed", "skipped", "passed", "cancelled"]


@dataclass(frozen=True, slots=True)
class End:
    """How a task has ended. `reason`: why it was skipped or passed. `is_new`: in this attempt of the run, not before.

    `failures`: tasks that have failed, itself or inside it; a container may end well all the same.
    `is_own_error`: of a container, whether the error is its own, not that of a task inside it.
    """

    status: Status
    error: HeadraceError | None = None
    reason: str | None = None
    is_new: bool = True
    failures: int = 0
    is_own_error: bool = False


# Whether the expression of a constraint of a task gives true. May raise HeadraceError.
Ask = Callable[[Task, Constraint], bool]


class Group:
    """Starts with all tasks waiting. `ready` and `decided` are to be emptied by the user after every call.

    Once more than `maximum_errors` tasks have failed only those start that follow a failed one by `failure` or
    `completion`, and those behind them.
    """

    def __init__(self, tasks: Sequence[Task], maximum_errors: int, ask: Ask) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._maximum_errors = maximum_errors
        self._ask = ask
        self._behind: dict[str, list[Task]] = {}
        self._known: dict[str, dict[str, bool]] = {}
        self._waiting = dict(self._tasks)
        self._recovering: set[str] = set()
        self._failing: set[str] = set()
        self.ends: dict[str, End] = {}
        self.ready: deque[Task] = deque()
        self.decided: deque[tuple[Task, End]] = deque()
        self.errors = 0
        self.failures = 0
        self.first_error: HeadraceError | None = None
        for task in tasks:
            self._known[task.name] = {}
            for constraint in task.constraints:
                self._behind.setdefault(constraint.name, []).append(task)
            if not task.constraints:
                self._start(task)

    @property
    def has_waiting(self) -> bool:
        """Whether there are tasks that wait for others."""
        return bool(self._waiting)

    @property
    def is_stopped(self) -> bool:
        """Whether too many tasks have failed."""
        return self.errors + len(self._failing) > self._maximum_errors

    def was_cut_short(self, *, is_late: bool) -> bool:
        """Whether a group that was asked to stop has left something undone. Work that had come to its end before it saw
        that it should stop is done: what it has committed must not be called cancelled, and a failure keeps its error,
        unless it failed because the group `is_late`.
        """
        undone = ("cancelled", "failed") if is_late else ("cancelled",)
        return len(self.ends) < len(self._tasks) or any(end.status in undone for end in self.ends.values())

    def failing(self, task: Task) -> None:
        """Takes note that a task has failed, whose handlers are still to run: it will not end otherwise."""
        self._failing.add(task.name)

    def end(self, task: Task, end: End) -> None:
        """Takes note that a task that was ready has ended."""
        self._failing.discard(task.name)
        work = deque([(task, end)])
        while work:
            ended, how = work.popleft()
            self.ends[ended.name] = how
            self.failures += how.failures
            if how.status == "failed":
                self.errors += 1
                self.first_error = self.first_error or how.error
            for behind in self._behind.get(ended.name, ()):
                if behind.name in self._waiting:
                    self._learn(behind, ended, how, work)

    def give_up(self, status: Status, reason: str) -> None:
        """Nothing that still waits will start."""
        for task in list(self._waiting.values()):
            self._decide(task, End(status, reason=reason))

    def _learn(self, task: Task, before: Task, how: End, work: deque[tuple[Task, End]]) -> None:
        known = self._known[task.name]
        for constraint in task.constraints:
            if constraint.name == before.name:
                try:
                    known[before.name] = self._is_met(task, constraint, how)
                except HeadraceError as error:
                    work.append(self._decide(task, End("failed", error, failures=1)))
                    return
        if task.join == "any":
            is_due, is_lost = any(known.values()), len(known) == len(task.constraints) and not any(known.values())
        else:
            is_due, is_lost = len(known) == len(task.constraints) and all(known.values()), not all(known.values())
        if is_due:
            if self._follows_failure(task):
                self._recovering.add(task.name)
            self._start(task)
        elif is_lost:
            work.append(self._decide(task, End("skipped", reason=self._why(task, known))))

    def _is_met(self, task: Task, constraint: Constraint, how: End) -> bool:
        if how.status == "cancelled":
            return False
        if how.status == "skipped":
            if not constraint.or_skipped:
                return False
            has_ended_so = True
        elif how.status == "passed":
            has_ended_so = constraint.on != "failure"
        else:
            has_ended_so = constraint.on in ("completion", "success" if how.status == "success" else "failure")
        if constraint.match == "either":
            return has_ended_so or self._ask(task, constraint)
        return has_ended_so and self._ask(task, constraint)

    def _follows_failure(self, task: Task) -> bool:
        for constraint in task.constraints:
            how = self.ends.get(constraint.name)
            if how is None or not self._known[task.name].get(constraint.name):
                continue
            if how.status == "failed" or constraint.name in self._recovering:
                return True
        return False

    def _start(self, task: Task) -> None:
        del self._waiting[task.name]
        self.ready.append(task)

    def _decide(self, task: Task, end: End) -> tuple[Task, End]:
        del self._waiting[task.name]
        self.ends[task.name] = end
        self.decided.append((task, end))
        return task, end

    def _why(self, task: Task, known: dict[str, bool]) -> str:
        """Why a task will never start."""
        for constraint in task.constraints:
            if known.get(constraint.name) is False:
                how = self.ends[constraint.name].status
                words = {"failed": "has failed", "skipped": "was skipped", "cancelled": "was cancelled"}
                return f"`{constraint.name}` {words.get(how, 'has ended otherwise')}"
        return "what it follows has not come"

    def may_start(self, task: Task) -> bool:
        """Whether a task that is ready may still start."""
        return not self.is_stopped or task.name in self._recovering

    def stop(self, task: Task) -> None:
        """A task that is ready does not start, because others have failed."""
        failed = next(name for name in (*self.ends, *self._failing) if self._has_failed(name))
        end = End("skipped", reason=f"`{failed}` has failed")
        self.decided.append((task, end))
        self.end(task, end)

    def _has_failed(self, name: str) -> bool:
        return name in self._failing or self.ends[name].status == "failed"
