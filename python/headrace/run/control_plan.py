"""The control flow of a package as a plan shows it: what each task does, and why a data flow is planned late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model import BoundPackage
from headrace.model.describe_tasks import describe_control
from headrace.run.control.selection import Selection
from headrace.run.early import EarlyFlows
from headrace.run.leaves.registry import LEAVES

_IN_A_PACKAGE = "it belongs to a package inside this one"


def planned_control(package: BoundPackage, selection: Selection, early: EarlyFlows) -> dict[str, Any]:
    """JSON-ready; secrets are still in it. Members beside those of the description: `does`, lines about a task whose
    settings are known; `late`, why a data flow is planned when it starts; `left_out`.
    """
    document = describe_control(package)
    _annotate(document, package, early.late, selection.left_out, "")
    return document


def _annotate(
    group: Mapping[str, Any],
    package: BoundPackage,
    late: Mapping[str, str] | None,
    left_out: frozenset[str],
    prefix: str,
) -> None:
    for task in group.get("tasks", ()):
        name = task["task"].removeprefix(prefix)
        settings = package.settings.get(name)
        if settings is not None and task["kind"] in LEAVES:
            task["does"] = [str(line) for line in LEAVES[task["kind"]].describe(settings)]
        if task["kind"] == "data_flow":
            task["late"] = _IN_A_PACKAGE if late is None else late.get(name)
        task["left_out"] = name in left_out
        _annotate(task, package, late, left_out, prefix)
        if "package" in task:
            child = package.children[name].known
            _annotate(task["package"], child, None, frozenset(), f"{task['task']}.")
    for handler in group.get("on", {}).values():
        _annotate(handler, package, late, left_out, prefix)
