"""Check a package before anything is bound: shape, names of keys, syntax and names of references.

Values that are references are left open here; they are checked again when their values are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.annotations import Slot
from headrace.model.names import RESERVED_VARIABLES
from headrace.model.problems import ProblemCollector
from headrace.model.resolver import Resolver, StaticLeaves
from headrace.model.scope import Scope
from headrace.model.spec import PackageSpec
from headrace.model.suggest import nearest, show_value
from headrace.model.validation import UNRESOLVED, place_name, validate
from headrace.model.yaml_reader import Document, DocumentPath

TASK_KINDS = ("data_flow", "foreach")


def check_structure(document: Document, problems: ProblemCollector) -> Mapping[str, Any]:
    """The package as a mapping, references left in. Notes every problem that shows without binding."""
    root = document.value
    if not isinstance(root, Mapping):
        problems.add(document, (), "the file is not a package", found=show_value(root), expected="a YAML mapping")
        return {}
    resolver = Resolver(document, problems, StaticLeaves(document, problems))
    declared = root.get("parameters")
    names = Scope(dict.fromkeys(declared, UNRESOLVED) if isinstance(declared, Mapping) else {})
    package = Slot(PackageSpec)
    masked = {
        key: resolver.resolve(value, package.child(key, root), (key,), Scope() if key == "parameters" else names)
        for key, value in root.items()
    }
    validate(PackageSpec, masked, document, (), problems)
    _check_tasks(root.get("tasks"), ("tasks",), names, document, problems)
    return root


def _check_tasks(
    tasks: object, path: DocumentPath, names: Scope, document: Document, problems: ProblemCollector
) -> None:
    if not isinstance(tasks, Mapping):
        return
    for name, task in tasks.items():
        if not isinstance(task, Mapping):
            continue
        task_path = (*path, name)
        kinds = [kind for kind in TASK_KINDS if task.get(kind) is not None]
        # A misspelt kind is reported as an unknown key already.
        misspelt = any(key not in TASK_KINDS and nearest(key, TASK_KINDS) for key in task)
        if len(kinds) != 1 and not misspelt:
            problems.add(
                document,
                task_path,
                f"the task {place_name(task_path)} must do exactly one thing",
                found=" and ".join(kinds) or "neither data_flow nor foreach",
                expected="data_flow or foreach",
                hint="Make two tasks of it." if kinds else "Add a data_flow.",
                at_key=True,
            )
        foreach = task.get("foreach")
        if isinstance(foreach, Mapping):
            _check_foreach(foreach, (*task_path, "foreach"), names, document, problems)


def _check_foreach(
    foreach: Mapping[str, object], path: DocumentPath, names: Scope, document: Document, problems: ProblemCollector
) -> None:
    item = foreach.get("item")
    if isinstance(item, str):
        taken = [name for name in names.values if name.lower() == item.lower()]
        if taken and item not in RESERVED_VARIABLES:
            problems.add(
                document,
                (*path, "item"),
                f"the item `{item}` has the name of a parameter or of the item around it",
                found=f"`{item}`",
                expected="a name that is not used yet",
                hint="Rename the item.",
            )
        names = names.with_item(item, UNRESOLVED)
    _check_tasks(foreach.get("tasks"), (*path, "tasks"), names, document, problems)
