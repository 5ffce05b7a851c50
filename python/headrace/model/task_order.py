"""Which tasks of a container are certain to run one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.model.task import Task


def predecessors(tasks: Sequence[Task]) -> dict[str, frozenset[str]]:
    """By name, the tasks that have always ended before the task starts. Of several alternatives (`join: any`) none is
    certain.
    """
    direct = {
        task.name: [item.name for item in task.constraints] if task.join == "all" or len(task.constraints) == 1 else []
        for task in tasks
    }
    known: dict[str, frozenset[str]] = {}
    for start in direct:
        stack = [start]
        while stack:
            name = stack[-1]
            open_names = [other for other in direct.get(name, []) if other not in known and other not in stack]
            if name in known or not open_names:
                stack.pop()
                if name not in known:
                    before = [other for other in direct.get(name, []) if other in known]
                    known[name] = frozenset(before).union(*(known[other] for other in before))
            else:
                stack.append(open_names[0])
    return known


def orders(tasks: Sequence[Task]) -> Callable[[str, str], bool]:
    """Whether of two tasks, by name, one always ends before the other starts, or only one of them ever starts."""
    before = predecessors(tasks)
    own = {task.name: _demands(task) for task in tasks}
    demands = {name: own[name].union(*(own[other] for other in before[name])) for name in own}

    def is_ordered(one: str, other: str) -> bool:
        if one in before[other] or other in before[one]:
            return True
        return any((name, _OPPOSITE[outcome]) in demands[other] for name, outcome in demands[one])

    return is_ordered


_OPPOSITE = {"success": "failure", "failure": "success"}


def _demands(task: Task) -> frozenset[tuple[str, str]]:
    """How other tasks must have ended for this one to start."""
    if task.join == "any" and len(task.constraints) > 1:
        return frozenset()
    return frozenset(
        (item.name, item.on)
        for item in task.constraints
        if item.on in _OPPOSITE and item.match == "both" and not item.or_skipped
    )


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Each task behind all that it follows; otherwise in the order of the document."""
    by_name = {task.name: task for task in tasks}
    ordered: dict[str, Task] = {}

    def add(start: Task) -> None:
        stack = [start]
        while stack:
            task = stack[-1]
            missing = [
                by_name[item.name]
                for item in task.constraints
                if item.name in by_name and item.name not in ordered and by_name[item.name] not in stack
            ]
            if missing:
                stack.append(missing[0])
            else:
                stack.pop()
                ordered.setdefault(task.name, task)

    for task in tasks:
        add(task)
    return list(ordered.values())
