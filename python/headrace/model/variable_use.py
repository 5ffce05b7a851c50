"""Which variables a task writes, and which names it reads, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.model.annotations import Slot
from headrace.model.references import Reference, ReferenceSyntaxError, parse_text
from headrace.model.resolver import words_of
from headrace.model.settings import SettingKind
from headrace.model.spec_tasks import TaskSpec
from headrace.model.task import Task
from headrace.model.yaml_reader import DocumentPath

_BOUND_NAME: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
# Of results with a type of their own; what a query or a function gives shows its type when it is there.
_OUTPUT_TYPES: Final = {("sql", "rows"): "rows", ("sql", "affected"): "integer", ("process", "output"): "string"}


@dataclass(frozen=True, slots=True)
class Write:
    """A variable that a task writes. `kind`: the type that it must have, None if any."""

    name: str
    path: DocumentPath
    kind: str | None = None
    is_key: bool = False
    does: str = "writes"


def own_writes(task: Task) -> Iterator[Write]:
    """Of the task itself, not of those inside it."""
    own, path = task.own, task.own_path
    match task.kind:
        case "set":
            yield from _keys(own, path)
        case "for":
            for key in ("initial", "step"):
                yield from _keys(own.get(key), (*path, key))
        case "package":
            yield from _keys(own.get("results"), (*path, "results"))
        case "sql" | "process" | "python":
            for key in ("row", "result"):
                if isinstance(own.get(key), Mapping):
                    yield from _keys(own[key], (*path, key))
            for key in ("rows", "affected", "output", "result"):
                if isinstance(own.get(key), str):
                    yield Write(own[key], (*path, key), _OUTPUT_TYPES.get((task.kind, key)))


def _keys(mapping: Mapping[str, Any] | None, path: DocumentPath) -> Iterator[Write]:
    for name in mapping or {}:
        yield Write(name, (*path, name), is_key=True)


def names_read(task: Task) -> frozenset[str]:
    """In small letters, of the task and all inside it; in expressions every word counts."""
    names = set(_names(task.raw, Slot(TaskSpec)))
    for inner in task.within():
        if inner.kind == "foreach" and isinstance(inner.own.get("rows"), str):
            names.add(inner.own["rows"].lower())
    return frozenset(names)


def _names(value: object, slot: Slot) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, child in value.items():
            is_expression = key == "expr" and slot.kind is SettingKind.SETTING and len(value) == 1
            inner = Slot(str, kind=SettingKind.EXPRESSION) if is_expression else slot.child(key, value)
            yield from _names(child, inner)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _names(child, slot.child(index, value))
    elif isinstance(value, str):
        yield from _names_of_text(value, slot.kind)


def _names_of_text(text: str, kind: SettingKind) -> Iterator[str]:
    if kind is SettingKind.EXPRESSION:
        yield from words_of(text)
    elif kind is SettingKind.SQL:
        yield from (name.lower() for name in _BOUND_NAME.findall(text))
    elif kind in (SettingKind.VALUE, SettingKind.SETTING):
        try:
            parts = parse_text(text)
        except ReferenceSyntaxError:
            return
        yield from (part.name.lower() for part in parts if isinstance(part, Reference) and part.kind == "variable")
