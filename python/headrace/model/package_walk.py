"""The walk over all tasks of a package before it runs: everything is bound as far as values are known.

So every mistake that can be found without running is found, and data flows of which everything is known come out bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.model.annotations import Slot
from headrace.model.bound import DataFlowTask, SharedFlow
from headrace.model.expressions import ExpressionError, ExpressionEvaluator
from headrace.model.loop_values import LoopValueError, check_range, check_values, turn_label
from headrace.model.problems import ProblemCollector
from headrace.model.resolver import has_types
from headrace.model.rows import Rows
from headrace.model.scope import Scope, is_unknown, sql_type_of, variable_sql_type
from headrace.model.scripts import ScriptFiles
from headrace.model.settings import SpecModel
from headrace.model.spec_tasks import ForeachSpec
from headrace.model.task import Handler, Task, Variable
from headrace.model.task_binder import Binding, Bound
from headrace.model.task_connections import connection_uses
from headrace.model.task_kinds import HANDLER_SYSTEM_NAMES
from headrace.model.task_order import in_order
from headrace.model.task_rules import TaskRules
from headrace.model.validation import UNRESOLVED, place_name
from headrace.model.variable_checks import VariableChecks
from headrace.model.yaml_reader import Document, DocumentPath

Child = Callable[[Task, Scope], None]


class PackageWalk:
    """One walk. `child` looks at the package of a task of kind `package`."""

    def __init__(
        self,
        document: Document,
        problems: ProblemCollector,
        binding: Binding,
        evaluator: ExpressionEvaluator,
        scripts: ScriptFiles,
        child: Child,
    ) -> None:
        self._document = document
        self._problems = problems
        self._binding = binding
        self._evaluator = evaluator
        self._scripts = scripts
        self._child = child
        self._variables = VariableChecks(document, problems)
        self._rules = TaskRules(document, problems, binding.names)
        self.flows: list[DataFlowTask] = []
        # Names of the connections that tasks other than data flows use, in the order of the document.
        self.used: dict[str, None] = {}
        # What other tasks do, as far as it is known; of a loop over a known list, in its first turn.
        self.settings: dict[str, SpecModel] = {}

    def package(
        self,
        tasks: Sequence[Task],
        variables: Sequence[Variable],
        handlers: Mapping[str, Handler],
        scope: Scope,
    ) -> None:
        """All tasks of a package."""
        self._variables.check(tasks, variables, handlers)
        for group in (tasks, *(handler.tasks for handler in handlers.values())):
            for task in group:
                self._rules.check(task.within())
        inner = self._declared(variables, scope)
        self._handlers(handlers, inner)
        self._tasks(tasks, inner, "", when=True)

    def _tasks(self, tasks: Sequence[Task], scope: Scope, prefix: str, *, when: bool | None) -> None:
        """`when`: whether what is around is switched on; None if that is not known, and in handlers."""
        for task in in_order(tasks):
            for constraint in task.constraints:
                path: DocumentPath = (*task.path, "after", constraint.name, "when")
                self._binding.condition(constraint.when, path, scope)
            own = self._binding.condition(task.raw.get("when", True), (*task.path, "when"), scope)
            inner = self._declared(task.variables, scope)
            self._handlers(task.handlers, inner)
            is_on: bool | None = None
            if when is not None and isinstance(own, bool):
                is_on = when and own and not task.is_disabled
            self._inside(task, inner, f"{prefix}{task.name}", is_on)

    def _inside(self, task: Task, scope: Scope, instance: str, when: bool | None) -> None:
        match task.kind:
            case "set":
                self._assigned(task, task.own, task.own_path, scope)
            case "sequence":
                self._tasks(task.tasks, scope, f"{instance}.", when=when)
            case "for":
                self._for(task, scope)
            case "foreach":
                self._foreach(task, scope, instance, when)
            case "package":
                self._bound(task, scope, instance, when=True)
                self._child(task, scope)
            case _:
                if task.kind in ("sql", "build"):
                    self._scripts.check(task.own, task.own_path, scope)
                bound = self._bound(task, scope, instance, when=when is not False)
                self._rules.check_member(task, bound)
                if isinstance(bound, DataFlowTask | SharedFlow) and when is not None:
                    self.flows += [bound] if isinstance(bound, DataFlowTask) else bound.ways

    def _bound(self, task: Task, scope: Scope, instance: str, *, when: bool) -> Bound | None:
        bound = self._binding.task(task, scope, instance, when=when)
        if isinstance(bound, SpecModel):
            self.settings.setdefault(task.id, bound)
            self.used |= dict.fromkeys(use.name for use in connection_uses(bound))
        return bound

    def _for(self, task: Task, scope: Scope) -> None:
        for key in ("initial", "step"):
            self._assigned(task, task.own.get(key) or {}, (*task.own_path, key), scope)
        self._binding.condition(task.own["while"], (*task.own_path, "while"), scope)
        self._tasks(task.tasks, scope, f"{task.id}[].", when=None)

    def _foreach(self, task: Task, scope: Scope, instance: str, when: bool | None) -> None:
        types = dict(task.turn_types)
        values: list[object] | None = None
        path = (*task.own_path, "in")
        if task.own.get("in") is not None:
            value = self._binding.resolver.resolve(task.own["in"], Slot(ForeachSpec).child("in", task.own), path, scope)
            values = self._known_values(value, path)
            if values is None:
                types[task.own["item"]] = self._item_type(task.own["in"], scope)
        else:
            if task.own.get("query") is not None:
                self._scripts.check(task.own["query"], (*task.own_path, "query"), scope)
            self._bound(replace(task, raw=_without_tasks(task)), scope, instance, when=True)
            if task.own.get("range") is not None:
                types[task.own["item"]] = self._range_type(task, scope)
        if values is None:
            self._tasks(
                task.tasks, scope.with_names(dict.fromkeys(types, UNRESOLVED), types), f"{instance}[].", when=None
            )
            return
        for value in values:
            turn = scope.with_item(task.own["item"], value)
            self._tasks(task.tasks, turn, f"{instance}[{turn_label(value)}].", when=when)

    def _known_values(self, value: object, path: DocumentPath) -> list[object] | None:
        """None if they are not known or not usable."""
        if is_unknown(value):
            return None
        try:
            return check_values(value)
        except LoopValueError as error:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} {error.what}",
                found=error.found,
                expected="a list of different texts, numbers or dates",
            )
            return None

    def _item_type(self, written: object, scope: Scope) -> str | None:
        """DuckDB type of the items of a list whose values are not known."""
        list_type: str | None = None
        if isinstance(written, Mapping) and isinstance(written.get("expr"), str):
            sql = written["expr"]
            try:
                list_type = self._evaluator.type_of(sql, scope) if has_types(sql, scope) else None
            except ExpressionError:
                return None
        elif isinstance(written, str):
            list_type = scope.sql_types.get(written.strip("${}"))
        elif isinstance(written, list):
            known = {sql_type_of(value) for value in written if not isinstance(value, str)}
            return known.pop() if len(known) == 1 else None
        return list_type[:-2] if list_type is not None and list_type.endswith("[]") else None

    def _range_type(self, task: Task, scope: Scope) -> str | None:
        slot = Slot(ForeachSpec).child("range", task.own)
        path = (*task.own_path, "range")
        own = {"step": 1, **task.own["range"]}
        first, last, step = (
            self._binding.resolver.resolve(own[key], slot.child(key, own), (*path, key), scope)
            for key in ("from", "to", "step")
        )
        if not any(map(is_unknown, (first, last, step))):
            try:
                check_range(first, last, step)
            except LoopValueError as error:
                self._problems.add(
                    self._document,
                    path,
                    f"{place_name(path)} {error.what}",
                    found=error.found,
                    expected="two whole numbers or two days, and a step that is not 0",
                )
        if is_unknown(first):
            return None
        return "BIGINT" if isinstance(first, int) else "DATE"

    def _assigned(self, task: Task, expressions: Mapping[str, Any], path: DocumentPath, scope: Scope) -> None:
        for name, expression in expressions.items():
            variable = self._variables.visible(task, name)
            if variable is not None:
                self._binding.assigned(variable, expression, (*path, name), scope)

    def _declared(self, variables: Sequence[Variable], scope: Scope) -> Scope:
        """The scope with variables, whose values are never known before the run."""
        for variable in variables:
            self._binding.initial(variable, scope)
        # Rows are no part of texts and expressions, whatever there will be in them.
        values = {item.name: Rows((), ()) if item.type == "rows" else UNRESOLVED for item in variables}
        return scope.with_names(values, {item.name: variable_sql_type(item.type, item.items) for item in variables})

    def _handlers(self, handlers: Mapping[str, Handler], scope: Scope) -> None:
        inner = scope.with_system(dict.fromkeys(HANDLER_SYSTEM_NAMES, UNRESOLVED))
        for event, handler in handlers.items():
            self._tasks(handler.tasks, inner, f"on_{event}.", when=None)


def _without_tasks(task: Task) -> dict[str, Any]:
    """A loop is bound without what is in it."""
    nothing: dict[str, Any] = {"nothing": {"set": {}}}
    return {**task.raw, task.kind: {**task.own, "tasks": nothing}}
