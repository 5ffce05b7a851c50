"""The control flow of a package as an indented list: what runs behind what, under which conditions, how often.

Made from the description of the tasks alone (`model.describe`, or the plan), which holds no secrets.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from headrace import units
from headrace.errors import on_one_line
from headrace.graph.words import condition, constraint_condition, over

Document = Mapping[str, Any]
# Of the tasks of one container, and of all, more are counted instead of listed.
SHOWN_TOGETHER: Final = 30
SHOWN_TASKS: Final = 200
_LAST_SHOWN: Final = 3
_INDENT: Final = "  "
_LONGEST_INDENT: Final = 24
_LONGEST_TEXT: Final = 160


def render_control(flow: Document, *, width: int) -> list[str]:
    """The lines of a control flow: its tasks in the order of execution, then its handlers."""
    lines: list[str] = []
    for number, entry in enumerate(_group(flow, 1)):
        if number == SHOWN_TASKS:
            lines.append(f"{_INDENT}... more: --json has all of them")
            break
        lines += _entry(*entry, width=width)
    return lines


def control_heading(flow: Document, *, width: int) -> str:
    """What stands above the list."""
    text = (
        f"tasks in the order in which they run; up to {flow['max_concurrent']} side by side, data flows one after "
        "the other:"
    )
    return "\n".join(_wrapped(text, "", "", width))


def says_nothing_more(flow: Document, planned: Collection[str]) -> bool:
    """Whether there is nothing to tell but data flows, all of them known (`planned`): no order, no conditions."""
    return not flow["on"] and all(
        task["kind"] == "data_flow"
        and task["task"] in planned
        and not (task["after"] or task["on"] or task["retries"] or task["disabled"] or task["timeout_seconds"])
        for task in flow["tasks"]
    )


def count_tasks(flow: Document) -> int:
    """How many tasks a control flow has, those of handlers and child packages included."""
    return sum(1 for _ in every_task(flow))


def every_task(flow: Document) -> Iterator[Document]:
    """The tasks of a control flow, outer ones first."""
    for task in flow.get("tasks", ()):
        yield task
        yield from every_task(task)
        yield from every_task(task.get("package", {}))
    for handler in flow.get("on", {}).values():
        yield from every_task(handler)


def trust_lines(flow: Document, *, width: int) -> list[str]:
    """Which tasks run code that the package brings along; nothing if none does."""
    names = [f"{on_one_line(task['task'])} ({task['kind']})" for task in every_task(flow) if task["needs_trust"]]
    if not names:
        return []
    more = len(names) - SHOWN_TOGETHER
    shown = ", ".join(names[:SHOWN_TOGETHER]) + (f" and {units.plural(more, 'more task')}" if more > 0 else "")
    return _wrapped(f"needs trust to run (--trust): {shown}", "", "  ", width)


# An entry: how deep it stands, its first line, and lines below that.
_Entry = tuple[int, str, list[str]]


def _group(group: Document, depth: int) -> Iterator[_Entry]:
    tasks: Sequence[Document] = group.get("tasks", ())
    left_out = len(tasks) - SHOWN_TOGETHER
    for number, task in enumerate(tasks):
        if left_out > 0 and number == SHOWN_TOGETHER - _LAST_SHOWN:
            yield depth, f"... {units.count(left_out)} more", []
        if left_out > 0 and SHOWN_TOGETHER - _LAST_SHOWN <= number < len(tasks) - _LAST_SHOWN:
            continue
        yield depth, _head(task), [on_one_line(line) for line in task.get("does", ())]
        yield from _group(task, depth + 1)
        if "package" in task:
            yield from _group(task["package"], depth + 1)
    for event, handler in group.get("on", {}).items():
        alone = "" if handler["propagate"] else ", which goes no further"
        yield depth, f"on {event}{alone}:", []
        yield from _group(handler, depth + 1)


def _entry(depth: int, head: str, below: Sequence[str], *, width: int) -> list[str]:
    indent = (_INDENT * depth)[:_LONGEST_INDENT]
    lines = _wrapped(head, indent, indent + 2 * _INDENT, width)
    for line in below:
        lines += _wrapped(line, indent + 2 * _INDENT, indent + 3 * _INDENT, width)
    return lines


def _head(task: Document) -> str:
    facts = "; ".join(on_one_line(_cut(fact)) for fact in _facts(task))
    return f"{on_one_line(task['task'])} ({task['kind']})" + (f": {facts}" if facts else "")


def _facts(task: Document) -> Iterator[str]:
    settings = task.get("settings") or {}
    if task["disabled"]:
        yield "DISABLED"
    if task.get("left_out"):
        yield "LEFT OUT"
    if task["after"]:
        word = " or " if task["join"] == "any" else " and "
        yield "after " + word.join(_constraint(item) for item in task["after"])
    if task["when"] is not True:
        yield f"when {condition(task['when'])}"
    yield from _what(task, settings)
    if task["repeat"] != "by what is inside":
        yield task["repeat"]
    if task["needs_trust"]:
        yield "needs trust"
    if task["retries"]:
        yield f"tried again up to {units.plural(task['retries'], 'time')}"
    if task["timeout_seconds"] is not None:
        yield f"at most {task['timeout_seconds']:g} s"
    if task["maximum_errors"]:
        yield f"{units.plural(task['maximum_errors'], 'task')} in it may fail"
    if task.get("late"):
        yield f"planned when it starts: {task['late']}"


def _what(task: Document, settings: Document) -> Iterator[str]:
    """What a container goes over, or is."""
    match task["kind"]:
        case "foreach":
            yield over(settings)
        case "for":
            yield f"while {condition(settings['while'])}"
        case "sequence" if settings.get("transaction"):
            yield f"one transaction of {settings['transaction']}"
        case "package":
            yield str(settings["file"])
        case "set":
            yield ", ".join(f"{name} = {value}" for name, value in settings.items())


def _constraint(item: Document) -> str:
    parts = [str(item["task"]), "" if item["on"] == "success" else f"on {item['on']}", constraint_condition(item)]
    return " ".join(part for part in parts if part)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _wrapped(text: str, first: str, following: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]
