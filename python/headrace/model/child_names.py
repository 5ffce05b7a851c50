"""What a task says to another package has a name there: parameters, connections, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.problems import ProblemCollector
from headrace.model.suggest import did_you_mean, one_of, show_name
from headrace.model.task import Task
from headrace.model.yaml_reader import Document


def check_child_names(task: Task, child: Document, document: Document, problems: ProblemCollector) -> bool:
    """Whether all names exist; problems, with their places in `document`, for those that do not."""
    sound = True
    root = child.value if isinstance(child.value, Mapping) else {}
    for key, group, kind in (
        ("parameters", "parameters", "parameter"),
        ("connections", "connections", "connection"),
        ("results", "variables", "variable"),
    ):
        declared = _mapping(root.get(group))
        for own, value in _mapping(task.own.get(key)).items():
            # `ours: theirs` there, `theirs: ours` in the others.
            name = value if key == "results" else own
            if name in declared:
                continue
            sound = False
            problems.add(
                document,
                (*task.own_path, key, own),
                f"the package {child.file} has no {kind} `{show_name(str(name))}`",
                found=f"`{show_name(str(name))}`",
                expected=one_of(declared),
                hint=did_you_mean(str(name), declared) or f"See `{group}` there.",
                at_key=key != "results",
            )
    return sound


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
