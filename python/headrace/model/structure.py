"""Check a package before anything is bound: shape, names of keys, syntax and names of references.

Values that are references are left open here; they are checked again when their values are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.annotations import Slot, allowed_keys
from headrace.model.names import RESERVED_VARIABLES
from headrace.model.problems import ProblemCollector
from headrace.model.resolver import Resolver, StaticLeaves
from headrace.model.scope import Scope
from headrace.model.spec import PackageSpec
from headrace.model.spec_tasks import TaskSpec
from headrace.model.suggest import nearest, show_value
from headrace.model.task_kinds import TASK_KINDS
from headrace.model.validation import place_name, validate
from headrace.model.visible import run_system, static_system, unknown_names
from headrace.model.yaml_reader import Document, DocumentPath


def check_structure(document: Document, problems: ProblemCollector) -> Mapping[str, Any]:
    """The package as a mapping, references left in. Notes every problem that shows without binding."""
    root = document.value
    if not isinstance(root, Mapping):
        problems.add(document, (), "the file is not a package", found=show_value(root), expected="a YAML mapping")
        return {}
    resolver = Resolver(document, problems, StaticLeaves(document, problems))
    declared = root.get("parameters")
    parameters = Scope(system={**static_system(), **run_system()})
    parameters = unknown_names(parameters, declared)
    names = unknown_names(parameters, root.get("variables"))
    scopes = {"parameters": Scope(system=static_system()), "variables": parameters, "on": names, "tasks": names}
    package = Slot(PackageSpec)
    masked = {
        key: resolver.resolve(value, package.child(key, root), (key,), scopes.get(str(key), parameters))
        for key, value in root.items()
    }
    validate(PackageSpec, masked, document, (), problems)
    _check_names(root, document, problems)
    return root


def _check_names(root: Mapping[str, Any], document: Document, problems: ProblemCollector) -> None:
    taken = {str(name).lower(): "a parameter" for name in _mapping(root.get("parameters"))}
    checker = _Names(document, problems)
    taken = checker.declared(root.get("variables"), ("variables",), taken)
    checker.handlers(root.get("on"), ("on",), taken)
    checker.tasks(root.get("tasks"), ("tasks",), taken)


class _Names:
    """Every task does one thing, and no name hides another one. `taken`: names in small letters, and what they are."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def tasks(self, tasks: object, path: DocumentPath, taken: Mapping[str, str]) -> None:
        seen: dict[str, str] = {}
        for name, task in _mapping(tasks).items():
            if not isinstance(task, Mapping):
                continue
            task_path = (*path, name)
            first = seen.setdefault(str(name).lower(), str(name))
            if first != name:
                self._problems.add(
                    self._document,
                    task_path,
                    f"the tasks `{first}` and `{name}` differ only in case",
                    found=f"`{name}`",
                    hint="Rename one of the two: the ledger does not tell them apart.",
                    at_key=True,
                )
            self._check_kind(task, task_path)
            inner = self.declared(task.get("variables"), (*task_path, "variables"), taken)
            self.handlers(task.get("on"), (*task_path, "on"), inner)
            self._inside(task, task_path, inner)

    def handlers(self, on: object, path: DocumentPath, taken: Mapping[str, str]) -> None:
        for event, handler in _mapping(on).items():
            self.tasks(_mapping(handler).get("tasks"), (*path, event, "tasks"), taken)

    def declared(self, variables: object, path: DocumentPath, taken: Mapping[str, str]) -> dict[str, str]:
        """`taken` and the variables; problems for those that it has already."""
        known = dict(taken)
        for name, variable in _mapping(variables).items():
            own = _mapping(variable)
            # No model sees both: expressions are left open here.
            if own.get("value") is not None and own.get("expr") is not None:
                self._problems.add(
                    self._document,
                    (*path, name, "expr"),
                    f"the variable `{name}` has `value` and `expr`",
                    expected="one of the two",
                    at_key=True,
                )
            self._check_free(str(name), (*path, name), known, "variable", at_key=True)
            known[str(name).lower()] = "a variable"
        return known

    def _check_kind(self, task: Mapping[str, Any], path: DocumentPath) -> None:
        kinds = [kind for kind in TASK_KINDS if task.get(kind) is not None]
        # A misspelt kind is reported as an unknown key already.
        misspelt = any(key not in allowed_keys(TaskSpec) and nearest(key, TASK_KINDS) for key in task)
        if len(kinds) != 1 and not misspelt:
            self._problems.add(
                self._document,
                path,
                f"the task {place_name(path)} must do exactly one thing",
                found=" and ".join(kinds) or "none of them",
                expected=f"one of {', '.join(TASK_KINDS)}",
                hint="Make several tasks of it." if kinds else "Add what it does, such as `data_flow`.",
                at_key=True,
            )

    def _inside(self, task: Mapping[str, Any], path: DocumentPath, taken: Mapping[str, str]) -> None:
        for kind in ("sequence", "foreach", "for"):
            own = task.get(kind)
            if not isinstance(own, Mapping):
                continue
            inner = dict(taken)
            if kind == "foreach" and isinstance(own.get("item"), str):
                self._check_free(own["item"], (*path, kind, "item"), inner, "item")
                inner[own["item"].lower()] = "the item of a foreach"
            for name in _mapping(own.get("as")) if kind == "foreach" else ():
                self._check_free(str(name), (*path, kind, "as", name), inner, "column", at_key=True)
                inner[str(name).lower()] = "a column of a foreach"
            self.tasks(own.get("tasks"), (*path, kind, "tasks"), inner)

    def _check_free(
        self, name: str, path: DocumentPath, taken: Mapping[str, str], kind: str, *, at_key: bool = False
    ) -> None:
        if name.lower() in taken and name.lower() not in RESERVED_VARIABLES:
            self._problems.add(
                self._document,
                path,
                f"the {kind} `{name}` has the name of {taken[name.lower()]} that is visible there",
                found=f"`{name}`",
                expected="a name that is not used yet",
                hint=f"Rename the {kind}.",
                at_key=at_key,
            )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
