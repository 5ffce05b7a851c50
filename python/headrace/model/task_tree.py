"""From the checked mapping of a package to the tree of its tasks; finds tasks that wait for each other in a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from headrace.model.annotations import Slot
from headrace.model.problems import ProblemCollector
from headrace.model.resolver import Resolver
from headrace.model.scope import Scope, is_unknown, variable_sql_type
from headrace.model.spec_tasks import ConstraintSpec, RetrySpec, TaskSpec
from headrace.model.spec_variables import VariableSpec
from headrace.model.suggest import did_you_mean, one_of, show_name, show_value
from headrace.model.task import Constraint, Handler, Retry, Task, Variable
from headrace.model.task_kinds import EVENT_KINDS, TASK_KINDS
from headrace.model.validation import place_name, validate_slot
from headrace.model.yaml_reader import Document, DocumentPath

# Settings of every task that must be known before the run.
_EARLY = ("disabled", "retry", "timeout_seconds", "maximum_errors")


class TaskTree:
    """Makes the tasks of one package. `scope` holds what is known before the run."""

    def __init__(self, document: Document, problems: ProblemCollector, resolver: Resolver, scope: Scope) -> None:
        self._document = document
        self._problems = problems
        self._resolver = resolver
        self._scope = scope

    def tasks(self, tasks: Mapping[str, Any], path: DocumentPath, id_prefix: str = "") -> tuple[Task, ...]:
        """The tasks of a mapping that stands at `path`, in its order."""
        made = tuple(self._task(name, raw, (*path, name), f"{id_prefix}{name}") for name, raw in tasks.items())
        self._check_order(made)
        return made

    def variables(self, declared: Mapping[str, Any] | None, path: DocumentPath) -> tuple[Variable, ...]:
        """The variables of a mapping that stands at `path`."""
        return tuple(self._variable(name, raw, (*path, name)) for name, raw in (declared or {}).items())

    def handlers(self, on: Mapping[str, Any] | None, path: DocumentPath, owner: str) -> dict[str, Handler]:
        """The handlers of a mapping that stands at `path`, by event. `owner`: id of the task, "" for the package."""
        prefix = f"{owner}." if owner else ""
        return {
            event: Handler(
                event,
                self.tasks(handler["tasks"], (*path, event, "tasks"), f"{prefix}on_{event}."),
                bool(handler.get("propagate", True)),
            )
            for event in EVENT_KINDS
            if (handler := (on or {}).get(event)) is not None
        }

    def _variable(self, name: str, raw: Mapping[str, Any], path: DocumentPath) -> Variable:
        items = raw.get("items", VariableSpec.model_fields["items"].default)
        return Variable(name, raw["type"], items, path, raw.get("value"), raw.get("expr"), bool(raw.get("secret")))

    def _task(self, name: str, raw: Mapping[str, Any], path: DocumentPath, identity: str) -> Task:
        kind = next(kind for kind in TASK_KINDS if raw.get(kind) is not None)
        own = raw[kind]
        early = {key: self._early(key, raw, path) for key in _EARLY if raw.get(key) is not None}
        retry: RetrySpec | None = early.get("retry")
        seconds: Decimal | None = early.get("timeout_seconds")
        inner: tuple[Task, ...] = ()
        if kind in ("sequence", "foreach", "for"):
            inner = self.tasks(own["tasks"], (*path, kind, "tasks"), f"{identity}.")
        return Task(
            id=identity,
            name=name,
            kind=kind,
            path=path,
            raw=raw,
            constraints=_constraints(raw.get("after")),
            join=raw.get("join", "all"),
            is_disabled=bool(early.get("disabled")),
            variables=self.variables(raw.get("variables"), (*path, "variables")),
            handlers=self.handlers(raw.get("on"), (*path, "on"), identity),
            retry=Retry() if retry is None else _retry(retry),
            timeout_seconds=None if seconds is None else float(seconds),
            maximum_errors=int(early.get("maximum_errors") or 0),
            description=raw.get("description"),
            tasks=inner,
            turn_types=_turn_types(own) if kind == "foreach" else {},
            transaction=own.get("transaction") if kind == "sequence" else None,
        )

    def _early(self, key: str, raw: Mapping[str, Any], path: DocumentPath) -> Any:
        slot = Slot(TaskSpec).child(key, raw)
        value = self._resolver.resolve(raw[key], slot, (*path, key), self._scope)
        if _any_unknown(value):
            # What is not known because it is wrong itself is a problem already.
            self._problems.add(
                self._document,
                (*path, key),
                f"{place_name((*path, key))} must be known before the run",
                found=show_value(raw[key]),
                expected="a value, or `${name}` of a parameter",
                hint="Use a parameter instead of a variable.",
            )
            return None
        return validate_slot(slot, value, self._document, (*path, key), self._problems)

    def _check_order(self, tasks: Sequence[Task]) -> None:
        names = [task.name for task in tasks]
        sound = True
        for task in tasks:
            for constraint in task.constraints:
                if constraint.name == task.name or constraint.name not in names:
                    sound = False
                    self._unknown_predecessor(task, constraint.name, names)
        circle = _circle({task.name: [item.name for item in task.constraints] for task in tasks}) if sound else []
        if circle:
            first = next(task for task in tasks if task.name == circle[0])
            self._problems.add(
                self._document,
                (*first.path, "after"),
                "tasks wait for each other in a circle",
                found=" after ".join(f"`{name}`" for name in [*circle, circle[0]]),
                hint="Remove one of these `after`.",
                at_key=True,
            )

    def _unknown_predecessor(self, task: Task, name: str, names: Sequence[str]) -> None:
        others = [other for other in names if other != task.name]
        path: DocumentPath = (*task.path, "after")
        if isinstance(task.raw["after"], Mapping):
            path = (*path, name)
        what = "waits for itself" if name == task.name else f"follows `{show_name(name)}`, which is no task beside it"
        self._problems.add(
            self._document,
            path,
            f"the task `{task.name}` {what}",
            found=f"`{show_name(name)}`",
            expected=one_of(others) if others else "no `after`: there is no task beside it",
            hint=did_you_mean(name, others) or "A task follows tasks of the same container.",
            at_key=isinstance(task.raw["after"], Mapping),
        )


def _any_unknown(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_any_unknown(member) for member in value.values())
    return is_unknown(value)


def _constraints(after: object) -> tuple[Constraint, ...]:
    if after is None:
        return ()
    if isinstance(after, str):
        return (Constraint(after),)
    if isinstance(after, list):
        return tuple(Constraint(name) for name in after)
    assert isinstance(after, Mapping)
    made = []
    for name, raw in after.items():
        spec = ConstraintSpec.model_validate({"on": raw} if isinstance(raw, str) else raw)
        made.append(Constraint(name, spec.on, spec.when, spec.match, spec.or_skipped))
    return tuple(made)


def _retry(spec: RetrySpec) -> Retry:
    return Retry(spec.times, float(spec.wait_seconds), float(spec.factor), float(spec.maximum_wait_seconds))


def _turn_types(own: Mapping[str, Any]) -> dict[str, str | None]:
    """Of the names that a foreach has in each turn, as far as it says them."""
    if own.get("as") is not None:
        return {name: variable_sql_type(kind, "") for name, kind in own["as"].items()}
    return {own["item"]: "VARCHAR" if own.get("files") is not None else None}


def _circle(before: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of which each waits for the next one, and the last for the first; empty if there are none."""
    done: set[str] = set()
    for start in before:
        trail: list[str] = []
        stack = [(start, iter(before[start]))] if start not in done else []
        if stack:
            trail.append(start)
        while stack:
            _, others = stack[-1]
            other = next(others, None)
            if other is None:
                stack.pop()
                done.add(trail.pop())
            elif other in trail:
                return trail[trail.index(other) :]
            elif other not in done:
                trail.append(other)
                stack.append((other, iter(before[other])))
    return []
