"""The tasks of a package as they are defined: a tree. What a task does is bound when its values are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.model.task_kinds import TASK_KINDS, TaskKind
from headrace.model.yaml_reader import DocumentPath


@dataclass(frozen=True, slots=True)
class Constraint:
    """When a task may follow the task `name` beside it. `when` is SQL or a literal."""

    name: str
    on: Literal["success", "failure", "completion"] = "success"
    when: bool | str = True
    match: Literal["both", "either"] = "both"
    or_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. Its value at the beginning is `value`, references left in, or that of `expr`."""

    name: str
    type: str
    items: str
    path: DocumentPath
    value: object = None
    expr: str | None = None
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a task is tried again, and how long to wait before each try."""

    times: int = 0
    wait_seconds: float = 1.0
    factor: float = 2.0
    maximum_wait_seconds: float = 60.0

    def wait(self, number: int) -> float:
        """Seconds before the try behind the `number`th failure, from 1."""
        return float(min(self.wait_seconds * self.factor ** (number - 1), self.maximum_wait_seconds))


@dataclass(frozen=True, slots=True)
class Handler:
    """What happens at an event."""

    event: str
    tasks: tuple[Task, ...]
    propagate: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `id` is its names from the package down: `load_tables.load`; `raw` its mapping as it is written, at
    `path` of the document. `tasks`: those inside a container; of a child package the container has none of its own.

    `turn_types`: of a loop, the DuckDB types of the names that each turn has; None where the values will show it.
    """

    id: str
    name: str
    kind: str
    path: DocumentPath
    raw: Mapping[str, Any]
    constraints: tuple[Constraint, ...] = ()
    join: Literal["all", "any"] = "all"
    is_disabled: bool = False
    variables: tuple[Variable, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    retry: Retry = Retry()
    timeout_seconds: float | None = None
    maximum_errors: int = 0
    description: str | None = None
    tasks: tuple[Task, ...] = ()
    turn_types: Mapping[str, str | None] = field(default_factory=dict)
    transaction: str | None = None

    @property
    def about(self) -> TaskKind:
        """What is true of all tasks of its kind."""
        return TASK_KINDS[self.kind]

    @property
    def needs_trust(self) -> bool:
        """Whether it runs only if the user trusts the package."""
        setting = self.about.trusted_setting
        return self.about.needs_trust or (setting is not None and self.own.get(setting) is True)

    @property
    def does_work(self) -> bool:
        """Whether it can fail by itself: it only holds tasks otherwise, each of which ends on its own."""
        return not self.about.is_container or self.transaction is not None

    @property
    def own(self) -> Any:
        """What is written for its kind."""
        return self.raw[self.kind]

    @property
    def own_path(self) -> DocumentPath:
        """Where that stands."""
        return (*self.path, self.kind)

    def within(self) -> Iterator[Task]:
        """The task and all tasks inside it, those of handlers behind them."""
        yield self
        for task in self.tasks:
            yield from task.within()
        for handler in self.handlers.values():
            for task in handler.tasks:
                yield from task.within()
