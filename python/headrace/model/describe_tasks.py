"""Tasks as JSON-ready data: what is written in the package, with defaults, in the order in which tasks run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from headrace.model.bound import BoundPackage
from headrace.model.child_packages import ChildPackage
from headrace.model.task import Handler, Task
from headrace.model.task_order import in_order

# What a resumed run may repeat, of a task whose statements commit one by one.
_REPEATED: Final = "at least once"


def describe_control(package: BoundPackage, prefix: str = "") -> dict[str, object]:
    """The control flow of a package. `prefix` stands before ids: those of a child package begin with its task."""
    return {
        "max_concurrent": package.max_concurrent,
        "maximum_errors": package.maximum_errors,
        "variables": [variable.name for variable in package.variables],
        "on": _handlers(package.handlers, package.children, prefix),
        "tasks": _tasks(package.tasks, package.children, prefix),
    }


def _tasks(tasks: Sequence[Task], children: Mapping[str, ChildPackage], prefix: str) -> list[dict[str, object]]:
    return [_task(task, children, prefix) for task in in_order(tasks)]


def _task(task: Task, children: Mapping[str, ChildPackage], prefix: str) -> dict[str, object]:
    data: dict[str, object] = {
        "task": f"{prefix}{task.id}",
        "kind": task.kind,
        "description": task.description,
        "when": task.raw.get("when", True),
        "disabled": task.is_disabled,
        "after": [
            {"task": item.name, "on": item.on, "when": item.when, "match": item.match, "or_skipped": item.or_skipped}
            for item in task.constraints
        ],
        "join": task.join,
        "repeat": _repeat(task),
        "needs_trust": task.needs_trust,
        "variables": [variable.name for variable in task.variables],
        "timeout_seconds": task.timeout_seconds,
        "retries": task.retry.times,
        "maximum_errors": task.maximum_errors,
        "on": _handlers(task.handlers, children, prefix),
    }
    if task.kind != "data_flow":
        data["settings"] = plain({key: value for key, value in task.own.items() if key != "tasks"})
    if task.tasks:
        data["tasks"] = _tasks(task.tasks, children, prefix)
    child = children.get(task.id)
    if child is not None:
        data["package"] = {
            "package": child.known.name,
            "path": str(child.path),
            **describe_control(child.known, f"{prefix}{task.id}."),
        }
    return data


def _repeat(task: Task) -> str:
    return _REPEATED if task.kind == "sql" and task.own.get("transaction") is False else task.about.repeat


def _handlers(handlers: Mapping[str, Handler], children: Mapping[str, ChildPackage], prefix: str) -> dict[str, object]:
    return {
        event: {"propagate": handler.propagate, "tasks": _tasks(handler.tasks, children, prefix)}
        for event, handler in handlers.items()
    }


def plain(value: object) -> Any:
    """A value as JSON holds it; decimals and dates as text, so that nothing is rounded."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value
