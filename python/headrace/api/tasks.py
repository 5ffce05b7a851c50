"""Tasks that are added in Python: one way for all kinds, which reads the table of kinds and their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, TypeAlias

from headrace.api.values import plain
from headrace.model.annotations import allowed_keys
from headrace.model.settings import SpecModel
from headrace.model.spec_tasks import HandlerSpec, OnSpec, TaskSpec
from headrace.model.suggest import did_you_mean, one_of
from headrace.model.task_kinds import EVENT_KINDS, TASK_KINDS

# What every task may have beside its kind.
COMMON_SETTINGS: Final = tuple(key for key in allowed_keys(TaskSpec) if key not in TASK_KINDS)
_OWN_TASKS: Final = "tasks"

Settings: TypeAlias = Mapping[str, Any]


class Task:
    """A task of a package that is built. It stands for its name where other tasks name it: `after=load`."""

    def __init__(self, name: str, kind: str, raw: dict[str, Any]) -> None:
        self.name = name
        self.kind = kind
        self._raw = raw

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def on(self, event: str, *, propagate: bool = True) -> Tasks:
        """What happens at an event of this task, or of one inside it: tasks are added to what is returned.

        `propagate`: whether the handlers of what is around the task run too.
        """
        return handler(self._raw, event, propagate=propagate)


class Tasks:
    """Something that holds tasks: a package, a container, a handler. Usable in a `with` statement, for its looks.

    Settings are given by name, those of the kind and those of every task alike, nested ones as mappings and lists, as
    in YAML; `${name}` means the same. Names that are words of Python get `_` behind them: `in_`, `as_`, `while_`.
    """

    def __init__(self, tasks: dict[str, Any]) -> None:
        self._tasks = tasks

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is left to do: tasks are added at once."""

    def task(self, name: str, kind: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Adds a task of any kind but the containers. `settings`: those of its kind, as an alternative to names.

        Raises TypeError for a setting that there is not, ValueError for a name that is taken.
        """
        return Task(name, kind, self._added(name, kind, settings, more))

    def container(self, name: str, kind: str, settings: Settings | None = None, /, **more: Any) -> Container:
        """Adds a task that holds others: they are added to what is returned."""
        raw = self._added(name, kind, settings, more)
        return Container(name, kind, raw, raw[kind].setdefault(_OWN_TASKS, {}))

    def data_flow(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Loads rows into a table."""
        return self.task(name, "data_flow", settings, **more)

    def sql(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Executes statements in a database; results go into variables."""
        return self.task(name, "sql", settings, **more)

    def process(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Runs a program."""
        return self.task(name, "process", settings, **more)

    def file(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Copies, moves, deletes, makes or archives files."""
        return self.task(name, "file", settings, **more)

    def python(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Calls a Python function in a process of its own."""
        return self.task(name, "python", settings, **more)

    def package(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Runs another package inside this run."""
        return self.task(name, "package", settings, **more)

    def set(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Sets variables. A name that every task has as a setting, such as `when`, goes into `settings`."""
        return self.task(name, "set", settings, **more)

    def build(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Fills a table with the rows of a query of the same database."""
        return self.task(name, "build", settings, **more)

    def switch(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Exchanges a partition of a table for another table."""
        return self.task(name, "switch", settings, **more)

    def generate(self, name: str, settings: Settings | None = None, /, **more: Any) -> Task:
        """Writes TPC-H test data as text files."""
        return self.task(name, "generate", settings, **more)

    def sequence(self, name: str, settings: Settings | None = None, /, **more: Any) -> Container:
        """Holds tasks that belong together."""
        return self.container(name, "sequence", settings, **more)

    def foreach(self, name: str, settings: Settings | None = None, /, **more: Any) -> Container:
        """Repeats tasks for each value of a list, file, row or range."""
        return self.container(name, "foreach", settings, **more)

    def for_(self, name: str, settings: Settings | None = None, /, **more: Any) -> Container:
        """Repeats tasks as long as a condition holds."""
        return self.container(name, "for", settings, **more)

    def _added(self, name: str, kind: str, settings: Settings | None, more: dict[str, Any]) -> dict[str, Any]:
        if kind not in TASK_KINDS:
            raise TypeError(f"there is no task of kind `{kind}`; expected {one_of(TASK_KINDS)}")
        if name in self._tasks:
            raise ValueError(f"there is a task `{name}` already")
        spec = TASK_KINDS[kind].spec
        own = dict(settings or {})
        common: dict[str, Any] = {}
        for key, value in more.items():
            if key in COMMON_SETTINGS:
                common[key] = _after(value) if key == "after" else plain(value, f"{name}.{key}")
            else:
                own[key if spec is None else written_name(spec, key)] = value
        if spec is not None:
            check_keys(spec, own, f"a task of kind {kind}", COMMON_SETTINGS)
        raw = {**common, kind: plain(own, f"{name}.{kind}")}
        self._tasks[str.__str__(name)] = raw
        return raw


class Container(Task, Tasks):
    """A task that holds others."""

    def __init__(self, name: str, kind: str, raw: dict[str, Any], tasks: dict[str, Any]) -> None:
        Task.__init__(self, name, kind, raw)
        Tasks.__init__(self, tasks)


def handler(raw: dict[str, Any], event: str, *, propagate: bool) -> Tasks:
    """The tasks of a handler, made if it is not there. Raises TypeError for an event that there is not."""
    if event not in EVENT_KINDS:
        raise TypeError(f"there is no event `{event}`; expected {one_of(allowed_keys(OnSpec))}")
    own = raw.setdefault("on", {}).setdefault(event, {})
    if propagate != HandlerSpec.model_fields["propagate"].default:
        own["propagate"] = propagate
    return Tasks(own.setdefault(_OWN_TASKS, {}))


def written_name(spec: type[SpecModel], key: str) -> str:
    """The key as packages write it: `in` for `in_`."""
    keys = allowed_keys(spec)
    return key[:-1] if key not in keys and key.endswith("_") and key[:-1] in keys else key


def check_keys(spec: type[SpecModel], given: Iterable[str], what: str, others: Iterable[str] = ()) -> None:
    """Raises TypeError for keys that the model has not: Python's own answer to a wrong name, with its line."""
    keys = [*allowed_keys(spec), *others]
    for key in given:
        if key not in keys:
            raise TypeError(f"{what} has no setting `{key}`. {did_you_mean(key, keys) or f'Expected {one_of(keys)}.'}")


def _after(value: Any) -> object:
    """Names in place of tasks, in each of the forms that `after` has."""
    if isinstance(value, Task):
        return value.name
    if isinstance(value, Mapping):
        return {_name(key): plain(item, "after") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_name(item) for item in value]
    return plain(value, "after")


def _name(task: object) -> str:
    if isinstance(task, Task):
        return task.name
    if isinstance(task, str):
        return task
    raise TypeError(f"after: expected a task or its name, not {type(task).__name__}")
