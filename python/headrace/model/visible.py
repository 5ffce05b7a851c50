"""Which names are visible inside a mapping of a package, beside those around it. Values are not known here."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.model.scope import Scope
from headrace.model.settings import SpecModel
from headrace.model.spec_tasks import ForeachSpec, OnSpec, TaskSpec
from headrace.model.task_kinds import HANDLER_SYSTEM_NAMES, RUN_SYSTEM_NAMES, STATIC_SYSTEM_NAMES
from headrace.model.validation import UNRESOLVED

# What is decided about a task, before its variables exist.
_ABOUT_A_TASK = frozenset({"when", "after", "disabled", "variables"})


def inner_scope(model: type[SpecModel], key: str, value: Mapping[str, object], scope: Scope) -> Scope:
    """The scope of `value[key]`, where `value` is a mapping that is read with `model`."""
    if model is TaskSpec and key not in _ABOUT_A_TASK:
        return unknown_names(scope, value.get("variables"))
    if model is ForeachSpec and key == "tasks":
        item = value.get("item")
        scope = scope.with_item(item, UNRESOLVED) if isinstance(item, str) else scope
        return unknown_names(scope, value.get("as"))
    if model is OnSpec:
        return scope.with_system(dict.fromkeys(HANDLER_SYSTEM_NAMES, UNRESOLVED))
    return scope


def unknown_names(scope: Scope, names: object) -> Scope:
    """The scope and the keys of a mapping, if it is one."""
    if not isinstance(names, Mapping):
        return scope
    return scope.with_names({str(name): UNRESOLVED for name in names}, {})


def static_system() -> dict[str, object]:
    """Facts about the run that defaults of parameters may use."""
    return dict.fromkeys(STATIC_SYSTEM_NAMES, UNRESOLVED)


def run_system() -> dict[str, object]:
    """Facts that are known when the run goes on."""
    return dict.fromkeys(RUN_SYSTEM_NAMES, UNRESOLVED)
