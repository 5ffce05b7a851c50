"""Variables are used where they are declared, as what they are, and never by two tasks whose order is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.model.problems import ProblemCollector
from headrace.model.suggest import did_you_mean, one_of
from headrace.model.task import Handler, Task, Variable
from headrace.model.task_order import orders
from headrace.model.variable_use import Write, names_read, own_writes
from headrace.model.yaml_reader import Document

Visible = Mapping[str, Variable]


class VariableChecks:
    """Checks of one package."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems
        self._visible: dict[str, Visible] = {}

    def check(self, tasks: Sequence[Task], variables: Sequence[Variable], handlers: Mapping[str, Handler]) -> None:
        """Looks at all tasks of the package."""
        visible = {variable.name: variable for variable in variables}
        self._group(tasks, visible)
        self._handlers(handlers, visible)

    def visible(self, task: Task, name: str) -> Variable | None:
        """The variable that a task means; None if there is none."""
        return self._visible[task.id].get(name)

    def _group(self, tasks: Sequence[Task], outer: Visible) -> None:
        for task in tasks:
            visible = {**outer, **{variable.name: variable for variable in task.variables}}
            self._visible[task.id] = visible
            for write in own_writes(task):
                self._check_write(task, write, visible)
            if task.kind == "foreach" and isinstance(task.own.get("rows"), str):
                self._check_write(
                    task, Write(task.own["rows"], (*task.own_path, "rows"), "rows", does="reads"), visible
                )
            self._group(task.tasks, visible)
            self._handlers(task.handlers, visible)
        self._check_races(tasks, outer)

    def _handlers(self, handlers: Mapping[str, Handler], visible: Visible) -> None:
        for handler in handlers.values():
            self._group(handler.tasks, visible)

    def _check_write(self, task: Task, write: Write, visible: Visible) -> None:
        variable = visible.get(write.name)
        if variable is None:
            self._problems.add(
                self._document,
                write.path,
                f"the task `{task.name}` {write.does} `{write.name}`, which is no variable",
                found=f"`{write.name}`",
                expected=one_of(visible) if visible else "a variable, declared under `variables`",
                hint=did_you_mean(write.name, visible) or f"Declare `{write.name}` under `variables`.",
                at_key=write.is_key,
            )
        elif write.kind is not None and variable.type != write.kind:
            self._problems.add(
                self._document,
                write.path,
                f"the variable `{write.name}` must be of type {write.kind} here",
                found=f"type {variable.type}",
                expected=f"a variable of type {write.kind}",
                hint=f"Declare another variable, `type: {write.kind}`.",
            )

    def _check_races(self, tasks: Sequence[Task], outer: Visible) -> None:
        """Of variables that were declared outside of the tasks."""
        if len(tasks) < 2:
            return
        writers: dict[str, list[Task]] = {}
        for task in tasks:
            for name in dict.fromkeys(_writes_within(task)):
                if name in outer:
                    writers.setdefault(name, []).append(task)
        if not writers:
            return
        is_ordered = orders(tasks)
        reads = {task.name: names_read(task) for task in tasks}
        for name, own in writers.items():
            names = {task.name for task in own}
            users = [task for task in tasks if task.name in names or name.lower() in reads[task.name]]
            for writer in own:
                other = next(
                    (task for task in users if task is not writer and not is_ordered(task.name, writer.name)), None
                )
                if other is not None:
                    self._race(name, writer, other, other.name in names)
                    break

    def _race(self, name: str, writer: Task, other: Task, writes_too: bool) -> None:
        does = "writes it too" if writes_too else "reads it"
        self._problems.add(
            self._document,
            other.path,
            f"the task `{writer.name}` writes the variable `{name}`, the task `{other.name}` {does}, and which of them "
            "comes first is open",
            found=f"no `after` between `{writer.name}` and `{other.name}`",
            expected="one of them after the other",
            hint=f"Write `after: {writer.name}` into `{other.name}`, or the other way round.",
            at_key=True,
        )


def _writes_within(task: Task) -> Iterable[str]:
    """Names of variables declared outside of the task that it or a task inside it writes."""
    own = {variable.name for variable in task.variables}
    names = [write.name for write in own_writes(task)]
    for inner in task.tasks:
        names += _writes_within(inner)
    for handler in task.handlers.values():
        for inner in handler.tasks:
            names += _writes_within(inner)
    return [name for name in names if name not in own]
