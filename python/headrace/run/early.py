"""Which data flows are planned before the run: those whose files and tables nothing can change before they start.

What a flow before makes of its table is known. What a query of a lookup reads is not: it is asked when its flow starts,
unless no flow before loads into its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.model import BoundPackage, DatabaseQuerySource, DataFlowTask, Handler, Task
from headrace.model.task_order import predecessors
from headrace.run.control.selection import Selection
from headrace.targets import target_key


@dataclass(frozen=True)
class EarlyFlows:
    """Ids of definitions. `late`: the others, and why each is planned when it starts."""

    early: frozenset[str]
    late: dict[str, str]


def early_flows(package: BoundPackage, selection: Selection) -> EarlyFlows:
    """Divides the data flows of a package, those of its child packages not among them."""
    bound = {flow.definition for flow in package.data_flows()}
    handlers = _tasks_of_handlers(package)
    flows = [task for task in package.all_tasks() if task.kind == "data_flow" and task.id not in selection.left_out]
    late: dict[str, str] = _behind_loads(package, selection)
    for task in flows:
        if task.id in handlers:
            late[task.id] = "it belongs to a handler"
        elif task.id not in bound:
            late[task.id] = "its values are not known before"
    # A late flow changes tables at a time that is not known, like any other task.
    while True:
        opaque = {
            task.id: task
            for task in package.all_tasks()
            if (task.about.is_opaque and not task.tasks and task.id not in selection.left_out and not task.is_disabled)
            or task.id in late
        }
        found = _reached(package.tasks, opaque, handlers, _first_of_handlers(package.handlers, opaque))
        more = {task.id: f"`{found[task.id]}` may run before it" for task in flows if task.id in found}
        more = {name: reason for name, reason in more.items() if name not in late}
        if not more:
            return EarlyFlows(frozenset(task.id for task in flows if task.id not in late), late)
        late |= more


def _behind_loads(package: BoundPackage, selection: Selection) -> dict[str, str]:
    """Flows with a query of a place into which a flow before them loads, in whatever turn of a loop."""
    late: dict[str, str] = {}
    loaded: dict[tuple[str, str], DataFlowTask] = {}
    for flow in package.flows:
        if flow.definition in selection.left_out:
            continue
        for lookup in flow.lookups:
            source = lookup.source
            first = loaded.get(target_key(source.connection)) if isinstance(source, DatabaseQuerySource) else None
            # The destinations of one flow get their rows at once, behind its lookups.
            if first is not None and not (flow.flow and first.flow == flow.flow):
                read = f"the query of its lookup `{lookup.name}` may read what `{first.definition}` loads"
                late[flow.definition] = read
        loaded.setdefault(target_key(flow.destination.connection), flow)
    return late


def _first_of_handlers(handlers: Mapping[str, Handler], opaque: Mapping[str, Task]) -> str | None:
    """Handlers of the package may run for any task, and before any."""
    tasks = (task for handler in handlers.values() for outer in handler.tasks for task in outer.within())
    return next((task.id for task in tasks if task.id in opaque), None)


def _tasks_of_handlers(package: BoundPackage) -> frozenset[str]:
    found: set[str] = set()

    def collect(handlers: dict[str, Handler] | object) -> None:
        for handler in handlers.values() if isinstance(handlers, dict) else ():
            for task in handler.tasks:
                found.update(inner.id for inner in task.within())

    collect(dict(package.handlers))
    for task in package.all_tasks():
        collect(dict(task.handlers))
    return frozenset(found)


def _reached(
    tasks: Sequence[Task], opaque: dict[str, Task], handlers: frozenset[str], around: str | None = None
) -> dict[str, str]:
    """Leaves by id before which something opaque may run, and what. `around`: what may run before the whole group."""
    before = predecessors(tasks)
    inside = {task.name: [inner.id for inner in task.within() if inner.id in opaque] for task in tasks}
    found: dict[str, str] = {}
    for task in tasks:
        first = around
        for other in tasks:
            # What certainly comes behind the task cannot disturb it.
            if first is None and other is not task and task.name not in before[other.name] and inside[other.name]:
                first = inside[other.name][0]
        if first is None and task.kind in ("foreach", "for"):
            # Each turn follows the one before, with all that is in it.
            first = next(iter(inside[task.name]), None)
        if first is None:
            # A handler of what is around it may run for something else before; its own only before it starts.
            own = [name for name in inside[task.name] if name in handlers] if task.tasks else _before_it(task, opaque)
            first = own[0] if own else None
        if task.tasks:
            found |= _reached(task.tasks, opaque, handlers, first)
        elif first is not None:
            found[task.id] = first
    return found


def _before_it(task: Task, opaque: dict[str, Task]) -> list[str]:
    handler = task.handlers.get("pre_execute")
    tasks = () if handler is None else handler.tasks
    return [inner.id for own in tasks for inner in own.within() if inner.id in opaque]
