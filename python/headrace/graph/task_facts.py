"""The short lines below the name of a task: what it does, from what is written for it, and when and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headrace import units
from headrace.graph.words import condition, division, over, written

Document = Mapping[str, Any]
_FILE_OPERATIONS: Final = {
    "copy": "copies",
    "move": "moves",
    "delete": "deletes",
    "create": "makes the folder",
    "archive": "archives",
}


def task_facts(task: Document) -> tuple[str, ...]:
    """Those of a task, from its description."""
    return tuple(_facts(task))


def _facts(task: Document) -> Iterator[str]:
    settings = task.get("settings") or {}
    does = _DOES.get(task["kind"])
    if does is not None:
        yield from does(settings)
    if task["join"] == "any" and len(task["after"]) > 1:
        yield "when one of the lines above holds"
    if task["when"] is not True:
        yield f"when {condition(task['when'])}"
    if task["retries"]:
        yield f"tried again up to {units.plural(task['retries'], 'time')}"
    if task["timeout_seconds"] is not None:
        yield f"at most {task['timeout_seconds']:g} s"
    if task["maximum_errors"]:
        yield f"{units.plural(task['maximum_errors'], 'task')} in it may fail"


def _sql(settings: Document) -> Iterator[str]:
    yield written(settings["file"]) if settings.get("file") else " ".join(written(settings.get("text")).split())
    yield f"on {written(settings['connection'])}"


def _process(settings: Document) -> Iterator[str]:
    yield written(settings["command"]).replace(", ", " ")


def _file(settings: Document) -> Iterator[str]:
    for operation, verb in _FILE_OPERATIONS.items():
        if operation in settings:
            to = f" to {written(settings['to'])}" if "to" in settings else ""
            yield f"{verb} {written(settings[operation])}{to}"


def _python(settings: Document) -> Iterator[str]:
    yield f"calls {written(settings['function'])}"


def _package(settings: Document) -> Iterator[str]:
    yield written(settings["file"])


def _set(settings: Document) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{name} = {written(value)}"


def _build(settings: Document) -> Iterator[str]:
    yield f"{written(settings['target'])} {written(settings['table'])}"
    yield written(settings["file"]) if settings.get("file") else " ".join(written(settings.get("select")).split())
    yield from division(settings.get("partition"))
    yield f"on {written(settings['connection'])}"


def _switch(settings: Document) -> Iterator[str]:
    yield f"partition {written(settings['partition'])} of {written(settings['table'])}"
    if settings.get("in") is not None:
        yield f"in: {written(settings['in'])}"
    if settings.get("out") is not None:
        yield f"out: {written(settings['out'])}"
    yield f"on {written(settings['connection'])}"


def _generate(settings: Document) -> Iterator[str]:
    tables = settings.get("tpch")
    yield f"TPC-H {written(tables) if tables else 'tables'}, scale {written(settings.get('scale', 1))}"


def _sequence(settings: Document) -> Iterator[str]:
    if settings.get("transaction"):
        yield f"one transaction of {written(settings['transaction'])}"


def _foreach(settings: Document) -> Iterator[str]:
    yield over(settings)


def _for(settings: Document) -> Iterator[str]:
    yield f"while {condition(settings['while'])}"


_DOES: Final[Mapping[str, Callable[[Document], Iterator[str]]]] = {
    "sql": _sql,
    "process": _process,
    "file": _file,
    "python": _python,
    "package": _package,
    "set": _set,
    "build": _build,
    "switch": _switch,
    "generate": _generate,
    "sequence": _sequence,
    "foreach": _foreach,
    "for": _for,
}
