"""From a package to its graph: a pure function of what `check` knows. No file and no database is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from headrace.graph.flows import flow_parts
from headrace.graph.parts import Box, Graph, Line, Shape
from headrace.graph.task_facts import task_facts
from headrace.graph.words import constraint_condition
from headrace.model import BoundPackage, DataFlowTask, Task
from headrace.model.describe_tasks import describe_control, plain
from headrace.model.redaction import redact

Document = Mapping[str, Any]
_SHAPES: Final[dict[str, Shape]] = {
    "sequence": "container",
    "package": "container",
    "foreach": "loop",
    "for": "loop",
    "data_flow": "flow",
}


def graph_of(package: BoundPackage, left_out: Collection[str] = ()) -> Graph:
    """The graph of a package, without its secrets. `left_out`: ids of tasks that do not run."""
    builder = _Builder(package, left_out)
    control = describe_control(package)
    boxes, lines = builder.group(control, "")
    root = Box("", "package", package.name, "package", about=package.description or "", boxes=boxes, lines=lines)
    # All texts of the picture pass here, before anything is cut.
    return Graph(root.with_texts(lambda text: redact(text, package.secrets)))


class _Builder:
    """Makes the boxes of one package."""

    def __init__(self, package: BoundPackage, left_out: Collection[str] = (), prefix: str = "") -> None:
        self._package = package
        self._left_out = left_out
        self._prefix = prefix
        self._tasks = {f"{prefix}{task.id}": task for task in package.all_tasks()}
        self._flows: dict[str, list[DataFlowTask]] = {}
        for flow in package.data_flows():
            self._flows.setdefault(f"{prefix}{flow.definition}", []).append(flow)

    def group(self, control: Document, owner: str) -> tuple[tuple[Box, ...], tuple[Line, ...]]:
        """The tasks of a container with the handlers of these tasks, and those of a package; then what is between
        them.
        """
        tasks: Sequence[Document] = control.get("tasks", ())
        names = {str(task["task"]).removeprefix(f"{owner}."): str(task["task"]) for task in tasks}
        boxes: list[Box] = []
        lines: list[Line] = []
        for task in tasks:
            identity = str(task["task"])
            boxes.append(self._task(task))
            lines += [
                Line(names[item["task"]], identity, item["on"], constraint_condition(item)) for item in task["after"]
            ]
            handlers = self._handlers(task["on"], identity)
            boxes += handlers
            lines += [Line(identity, handler.id, "event") for handler in handlers]
        if "variables" in control and "kind" not in control:
            boxes += self._handlers(control["on"], owner)
        return tuple(boxes), tuple(lines)

    def _handlers(self, handlers: Mapping[str, Document], owner: str) -> list[Box]:
        made = []
        for event, handler in handlers.items():
            identity = f"{owner}.on_{event}" if owner else f"on_{event}"
            boxes, lines = self.group(handler, identity)
            facts = () if handler["propagate"] else ("goes no further",)
            made.append(Box(identity, "handler", f"on {event}", "handler", facts, boxes=boxes, lines=lines))
        return made

    def _task(self, task: Document) -> Box:
        identity = str(task["task"])
        own = self._tasks[identity]
        mark = "DISABLED" if task["disabled"] else "LEFT OUT" if own.id in self._left_out else ""
        facts = task_facts(self._with_values(task))
        boxes: tuple[Box, ...] = ()
        lines: tuple[Line, ...] = ()
        if task["kind"] == "data_flow":
            boxes, lines = flow_parts(identity, plain(own.own), self._flows.get(identity, ()))
        elif "package" in task:
            child = self._package.children[own.id].known
            boxes, lines = _Builder(child, prefix=f"{identity}.").group(task["package"], identity)
        elif "tasks" in task:
            boxes, lines = self.group(task, identity)
        shape: Shape = _SHAPES.get(task["kind"], "task") if boxes else "task"
        word = str(task["kind"]).replace("_", " ")
        return Box(identity, shape, own.name, word, facts, _prose(own), mark, boxes, lines)

    def _with_values(self, task: Document) -> Document:
        """The values of a loop over a parameter, in place of its name: they are known."""
        settings: Document = task.get("settings") or {}
        values = settings.get("in")
        if not (isinstance(values, str) and values.startswith("${") and values.endswith("}")):
            return task
        known = self._package.parameters.get(values[2:-1])
        return {**task, "settings": {**settings, "in": plain(known)}} if isinstance(known, list) else task


def _prose(task: Task) -> str:
    return " ".join((task.description or "").split())
