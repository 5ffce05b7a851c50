"""Bind tasks: what they say, with the values of a moment in place of references and expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from headrace.errors import BindingError
from headrace.model.annotations import Slot
from headrace.model.bound import DataFlowTask, SharedFlow
from headrace.model.connections import Connection
from headrace.model.expressions import ExpressionError, ExpressionEvaluator
from headrace.model.flow_binder import Environment, FlowBinder
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.resolver import BindingLeaves, Resolver, has_types, uses_unknown
from headrace.model.scope import Scope, is_unknown
from headrace.model.settings import SpecModel
from headrace.model.spec_data_flow import DataFlowSpec
from headrace.model.spec_tasks import TaskSpec
from headrace.model.spec_variables import VariableSpec
from headrace.model.suggest import quote, show_value
from headrace.model.task import Task, Variable
from headrace.model.task_connections import connection_uses, name_uses
from headrace.model.validation import UNRESOLVED, place_name, validate
from headrace.model.variable_values import UnfitValueError, expected_of, fitted, takes_sql_type
from headrace.model.written_folder import leads_out, paths_of, written_folder
from headrace.model.yaml_reader import Document, DocumentPath

Bound = DataFlowTask | SharedFlow | SpecModel


@dataclass(frozen=True)
class Surroundings:
    """Where the tasks of a package stand: `folder` is that of the package file."""

    document: Document
    environ: Mapping[str, str]
    folder: Path
    names: Environment


class TaskBinder:
    """Binds while a package runs. Raises BindingError with every problem, each with its place in the package."""

    def __init__(self, surroundings: Surroundings, evaluator: ExpressionEvaluator, secrets: set[str]) -> None:
        self.surroundings = surroundings
        self._evaluator = evaluator
        self._secrets = secrets

    def close(self) -> None:
        """Gives the database of the expressions back. It is opened again when it is needed."""
        self._evaluator.close()

    def with_connections(self, connections: Mapping[str, Any]) -> TaskBinder:
        """A binder whose names stand for other connections."""
        names = replace(self.surroundings.names, connections={**self.surroundings.names.connections, **connections})
        return TaskBinder(replace(self.surroundings, names=names), self._evaluator, self._secrets)

    def task(self, task: Task, scope: Scope, instance: str) -> Bound:
        """What the task does: a data flow called `instance`, or the settings of its kind."""
        problems = self._problems()
        bound = self.binding(problems).task(task, scope, instance, when=True)
        problems.raise_if_any(BindingError)
        assert bound is not None
        return bound

    def condition(self, condition: bool | str, path: DocumentPath, scope: Scope) -> bool:
        """The value of a condition that stands at `path`."""
        if isinstance(condition, bool):
            return condition
        problems = self._problems()
        value = self.binding(problems).condition(condition, path, scope)
        problems.raise_if_any(BindingError)
        return bool(value)

    def assigned(self, variable: Variable, expression: object, path: DocumentPath, scope: Scope) -> object:
        """The value of an expression, as the variable holds it."""
        problems = self._problems()
        value = self.binding(problems).assigned(variable, expression, path, scope)
        problems.raise_if_any(BindingError)
        return value

    def initial(self, variable: Variable, scope: Scope) -> object:
        """The value of a variable at the beginning."""
        problems = self._problems()
        value = self.binding(problems).initial(variable, scope)
        problems.raise_if_any(BindingError)
        return value

    def value(self, value: object, slot: Slot, path: DocumentPath, scope: Scope) -> object:
        """A value of the package, which belongs into `slot`, without references and expressions."""
        problems = self._problems()
        resolved = self.binding(problems).resolver.resolve(value, slot, path, scope)
        problems.raise_if_any(BindingError)
        return resolved

    def binding(self, problems: ProblemCollector) -> Binding:
        """One binding that collects problems instead of raising them."""
        return Binding(self.surroundings, self._evaluator, problems)

    def _problems(self) -> ProblemCollector:
        problems = ProblemCollector(self.surroundings.document.file)
        problems.secrets = self._secrets
        return problems


class Binding:
    """Binds and notes problems. Values that are not known give UNRESOLVED, or None for a whole task, and no problem."""

    def __init__(self, surroundings: Surroundings, evaluator: ExpressionEvaluator, problems: ProblemCollector) -> None:
        self._document = surroundings.document
        self._evaluator = evaluator
        self._problems = problems
        self._flows = FlowBinder(surroundings.document, problems, surroundings.names)
        self.names = NamedThings(surroundings.document, problems, surroundings.names.connections)
        self.leaves = BindingLeaves(
            surroundings.document, problems, surroundings.environ, evaluator, surroundings.folder
        )
        self.resolver = Resolver(surroundings.document, problems, self.leaves)

    def task(self, task: Task, scope: Scope, instance: str, *, when: bool) -> Bound | None:
        """As `TaskBinder.task`; None also if a value is not known, or something is wrong."""
        if task.about.spec is None:
            return None
        slot = Slot(TaskSpec).child(task.kind, task.raw)
        resolved = self.resolver.resolve(task.own, slot, task.own_path, scope)
        spec = validate(task.about.spec, resolved, self._document, task.own_path, self._problems)
        if task.kind != "file":
            self._refuse_paths_that_lead_out(task, resolved)
        if isinstance(spec, DataFlowSpec):
            return self._flows.bind(spec, task, instance, when, scope)
        if spec is not None:
            self._check_names(spec, task.own_path)
        return spec

    def _refuse_paths_that_lead_out(self, task: Task, resolved: object) -> None:
        for place, text, path in paths_of(task.own, resolved):
            if leads_out(text, path):
                folder = written_folder(text)
                self._problems.add(
                    self._document,
                    (*task.own_path, *place),
                    "a value leads out of the folder that the package names",
                    found=quote(path),
                    expected=f"a path below {quote(folder)}"
                    if folder
                    else "a path without `..`, which is not absolute",
                    hint="Correct the value, or write the folder in front of it.",
                )

    def _check_names(self, spec: SpecModel, path: DocumentPath) -> None:
        known: dict[str, Connection | None] = {}
        for own in connection_uses(spec):
            known[own.name] = self.names.connection(own.name, (*path, *own.path), own.role, own.types)
        for use in name_uses(spec):
            fits = self.names.fits if use.is_whole else self.names.table_fits
            fits(known.get(use.connection), use.name, (*path, *use.path), use.thing)

    def condition(self, condition: bool | str, path: DocumentPath, scope: Scope) -> object:
        """True, false or UNRESOLVED."""
        if isinstance(condition, bool):
            return condition
        slot = Slot(TaskSpec).child("when", {"when": condition})
        value = self.resolver.resolve(condition, slot, path, scope)
        if isinstance(value, bool):
            return value
        found = f"{show_value(value)} from {quote(condition)}"
        if value is UNRESOLVED:
            sql_type = self._type_if_known(condition, scope)
            if sql_type in (None, "BOOLEAN", "NULL"):
                return UNRESOLVED
            found = f"{sql_type} from {quote(condition)}"
        self._problems.add(
            self._document,
            path,
            f"{place_name(path)} must give true or false",
            found=found,
            expected="an expression that gives true or false",
            hint="Make it a comparison, such as `name = 'value'`.",
        )
        return UNRESOLVED

    def assigned(self, variable: Variable, expression: object, path: DocumentPath, scope: Scope) -> object:
        """The value, as the variable holds it; UNRESOLVED if it is not known."""
        value: object = expression
        if isinstance(expression, str):
            slot = Slot(VariableSpec).child("expr", {"expr": expression})
            value = self.resolver.resolve(expression, slot, path, scope)
        elif isinstance(expression, int) and variable.type == "decimal" and not isinstance(expression, bool):
            value = Decimal(expression)
        if value is UNRESOLVED and isinstance(expression, str):
            sql_type = self._type_if_known(expression, scope)
            if sql_type is not None and not takes_sql_type(variable.type, variable.items, sql_type):
                self._unfit(variable, path, f"{sql_type} from {quote(expression)}")
        return self._fitted(variable, value, path, expression)

    def initial(self, variable: Variable, scope: Scope) -> object:
        """The value at the beginning; UNRESOLVED if it is not known."""
        if variable.expr is not None:
            return self.assigned(variable, variable.expr, (*variable.path, "expr"), scope)
        if variable.value is None:
            return None
        path: DocumentPath = (*variable.path, "value")
        slot = Slot(VariableSpec).child("value", {"value": variable.value})
        value = self.resolver.resolve(variable.value, slot, path, scope)
        return self._fitted(variable, value, path, variable.value)

    def _fitted(self, variable: Variable, value: object, path: DocumentPath, written: object) -> object:
        if is_unknown(value):
            return UNRESOLVED
        try:
            return fitted(variable.type, variable.items, value)
        except UnfitValueError:
            source = f" from {quote(written)}" if isinstance(written, str) and written != value else ""
            self._unfit(variable, path, f"{show_value(value)}{source}")
            return UNRESOLVED

    def _unfit(self, variable: Variable, path: DocumentPath, found: str) -> None:
        self._problems.add(
            self._document,
            path,
            f"the value does not fit the variable `{variable.name}` of type {variable.type}",
            found=found,
            expected=expected_of(variable.type, variable.items),
            hint=f"Convert it, such as CAST(... AS {_CASTS[variable.type]})." if variable.type in _CASTS else None,
        )

    def _type_if_known(self, sql: str, scope: Scope) -> str | None:
        """The type of an expression that waits for values; None if it does not tell, or is wrong itself."""
        if not (uses_unknown(sql, scope) and has_types(sql, scope)):
            return None
        try:
            return self._evaluator.type_of(sql, scope)
        except ExpressionError:
            return None


_CASTS = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "decimal": "DECIMAL(38,10)",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
