"""What became of the tasks that are no data flows, as text; and of all tasks that failed without failing the run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace import units
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import on_one_line

Document = Mapping[str, Any]
# Of more tasks those that did not end well are shown, and the first of the others; summary.json has all.
SHOWN_TASKS: Final = 30
SHOWN_FAILURES: Final = 10
CONTAINERS: Final = frozenset({"sequence", "foreach", "for", "package"})
_COLUMNS: Final = (
    TextColumn("task", words=True),
    TextColumn("kind", words=True),
    TextColumn("done"),
    TextColumn("failed"),
    TextColumn("skipped"),
    TextColumn("seconds", drop_when_narrow=1),
)


def render_tasks(tasks: Sequence[Document], *, width: int) -> str:
    """One line per task; containers only if they did not end well. Empty if there is nothing to tell."""
    told = [task for task in tasks if task["kind"] != "data_flow"]
    told = [task for task in told if task["kind"] not in CONTAINERS or not _is_well(task)]
    if not told:
        return ""
    shown = told
    if len(told) > SHOWN_TASKS:
        first = sorted(range(len(told)), key=lambda number: (_is_well(told[number]), number))[:SHOWN_TASKS]
        shown = [told[number] for number in sorted(first)]
    table = render_table(_COLUMNS, [_cells(task) for task in shown], width=width)
    more = len(told) - len(shown)
    return f"{table}\nand {units.plural(more, 'more task')}: summary.json in the run folder" if more else table


def render_failures(tasks: Sequence[Document], error: Document | None, *, width: int) -> str:
    """The errors of tasks, without that of the run, which is told anyway."""
    what = None if error is None else error["what"]
    failed = [task for task in tasks if task["error"] is not None and task["kind"] not in CONTAINERS]
    failed = [task for task in failed if task["error"]["what"] != what]
    lines: list[str] = []
    for task in failed[:SHOWN_FAILURES]:
        lines += _wrapped(f"{on_one_line(task['task'])} failed: {on_one_line(task['error']['what'])}", "", width)
        for line in str(task["error"]["found"] or "").splitlines()[:3]:
            lines += _wrapped(f"found: {line}", "  ", width)
    if len(failed) > SHOWN_FAILURES:
        lines.append(f"and {units.plural(len(failed) - SHOWN_FAILURES, 'more task')} failed: summary.json has them")
    return "\n".join(lines)


def closing_line(summary: Document) -> str | None:
    """What a run that ended well all the same leaves to do."""
    failed = summary.get("tasks_failed", 0)
    if not failed or summary["status"] != "success":
        return None
    what = "it" if failed == 1 else "them"
    return f"{units.plural(failed, 'task')} failed; `headrace resume {summary['run_id']}` tries {what} again"


def _is_well(task: Document) -> bool:
    return not (task["failed"] or task["skipped"] or task["cancelled"])


def _cells(task: Document) -> list[str]:
    return [
        on_one_line(task["task"]),
        task["kind"],
        units.count(task["success"] + task["before"]),
        units.count(task["failed"]),
        units.count(task["skipped"] + task["passed"] + task["cancelled"]),
        f"{task['seconds']:.2f}",
    ]


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
