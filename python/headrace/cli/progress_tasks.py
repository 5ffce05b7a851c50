"""Tasks that are no data flows, as progress shows them: those that take their time, and those that fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace import units
from headrace.errors import on_one_line

# Tasks that take less are not shown while they run.
SHOWN_AFTER_SECONDS: Final = 1.0
SHOWN_RUNNING: Final = 5
# Lines about ended tasks: of a loop there may be thousands.
MAXIMUM_LINES: Final = 100
_LOOPS: Final = frozenset({"foreach", "for"})


@dataclass
class RunningTask:
    """A task that has begun. `turns`: of a loop, those that were seen, and the name of the last one."""

    kind: str
    started: float
    turns: int = 0
    turn: str = ""


class OtherTasks:
    """Folded from the events of the run. Only tasks that run are held: a loop may have any number of turns."""

    def __init__(self) -> None:
        self._running: dict[str, RunningTask] = {}
        self._lines = 0

    def apply(self, event: Mapping[str, Any], now: float) -> None:
        """Takes over what an event says of any task."""
        task = str(event.get("task") or "")
        if event["event"] == "task_started":
            self._count_turn(task)
            if is_other(event):
                self._running[task] = RunningTask(str(event["kind"]), now)
        elif event["event"] == "task_finished":
            self._running.pop(task, None)

    def running(self, now: float) -> Iterator[str]:
        """A line for each task that has run long enough to be shown, the last of many counted."""
        shown = [(name, task) for name, task in self._running.items() if now - task.started >= SHOWN_AFTER_SECONDS]
        # What is inside a container says more than the container, but for the turns of a loop.
        shown = [(name, task) for name, task in shown if task.kind not in ("sequence", "package")]
        for name, task in shown[:SHOWN_RUNNING]:
            turns = f", turn {units.count(task.turns)} ({on_one_line(task.turn)})" if task.turns else ""
            yield f"{on_one_line(name)} ({task.kind}): {units.clock(now - task.started)}{turns}"
        if len(shown) > SHOWN_RUNNING:
            yield f"and {units.plural(len(shown) - SHOWN_RUNNING, 'more task')}"

    def ended_line(self, event: Mapping[str, Any]) -> str | None:
        """The line for a log, if the end of the task deserves one: it failed, it stands at the top, or it took long."""
        name = str(event["task"])
        is_top = "." not in name and "[" not in name
        if event["event"] == "task_skipped":
            text = f"{name}: skipped, {event['reason']}" if is_top else None
        elif event["status"] == "failed":
            error = event.get("error")
            text = f"{name}: failed" + (f": {error['what']}" if error else "") if error or is_top else None
        elif is_top or float(event["seconds"]) >= SHOWN_AFTER_SECONDS:
            word = "done" if event["status"] == "success" else event["status"]
            text = f"{name}: {word} in {units.duration(float(event['seconds']))}"
        else:
            text = None
        if text is None or self._lines >= MAXIMUM_LINES:
            return None
        self._lines += 1
        return text if self._lines < MAXIMUM_LINES else "more tasks end: the summary counts them"

    def _count_turn(self, name: str) -> None:
        for loop, task in self._running.items():
            if task.kind in _LOOPS and name.startswith(f"{loop}["):
                turn = name[len(loop) + 1 :].split("].", 1)[0]
                if turn != task.turn:
                    task.turn, task.turns = turn, task.turns + 1


def is_other(event: Mapping[str, Any]) -> bool:
    """Whether an event of a task is about one that is no data flow."""
    return str(event.get("kind", "data_flow")) != "data_flow"
