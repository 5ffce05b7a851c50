"""Tasks that are no data flows: in the progress display, and in the accounts of a run."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from headrace.cli.accounts import render_summary
from headrace.cli.progress import LiveProgress, PlainProgress
from headrace.cli.progress_state import MAXIMUM_TABLES, RunProgress
from headrace.cli.progress_tasks import MAXIMUM_LINES
from headrace.cli.task_accounts import SHOWN_TASKS, render_failures, render_tasks
from tests.cli.sample_run import ORDERS_FINISHED, ORDERS_STARTED, RUN_STARTED, Clock, summary
from tests.snapshots import assert_snapshot


def started(task: str, kind: str = "sql") -> dict[str, Any]:
    return {"event": "task_started", "task": task, "kind": kind}


def ended(task: str, kind: str = "sql", status: str = "success", seconds: float = 0.01) -> dict[str, Any]:
    error = {"what": "the statement failed"} if status == "failed" and kind != "foreach" else None
    return {
        "event": "task_finished",
        "task": task,
        "kind": kind,
        "status": status,
        "seconds": seconds,
        "error": error,
    }


def skipped(task: str, kind: str = "sql") -> dict[str, Any]:
    return {"event": "task_skipped", "task": task, "kind": kind, "reason": "`when` is false"}


def test_plain_lines_tell_of_the_top_of_failures_and_of_what_took_long() -> None:
    stream = io.StringIO()
    with PlainProgress(stream, Clock()) as progress:
        for event in [
            {**RUN_STARTED, "tasks": []},
            started("prepare"),
            ended("prepare"),
            started("each", "foreach"),
            started("each[a].quick"),
            ended("each[a].quick"),
            started("each[a].long", "process"),
            ended("each[a].long", "process", seconds=12.5),
            started("each[b].quick"),
            ended("each[b].quick", status="failed"),
            skipped("each[b].long", "process"),
            ended("each", "foreach", "failed"),
            skipped("behind"),
            {"event": "task_skipped", "task": "load", "kind": "data_flow", "reason": "`when` is false"},
            ended("late", "data_flow", "failed"),
        ]:
            progress.listen(event)
    assert_snapshot("progress_tasks_plain", stream.getvalue())


def test_a_loop_of_thousands_is_no_log_of_thousands() -> None:
    stream = io.StringIO()
    with PlainProgress(stream, Clock()) as progress:
        for number in range(5000):
            progress.listen(started(f"each[{number}].task"))
            progress.listen(ended(f"each[{number}].task", status="failed"))
    assert len(stream.getvalue().splitlines()) == MAXIMUM_LINES
    assert stream.getvalue().splitlines()[-1] == "more tasks end: the summary counts them"


def test_live_lines_are_those_of_tasks_that_take_their_time() -> None:
    clock = Clock()
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    progress = LiveProgress(console, clock)
    progress.listen({**RUN_STARTED, "tasks": RUN_STARTED["tasks"][:1]})
    progress.listen(started("each", "foreach"))
    for number in range(1200):
        progress.listen(started(f"each[file {number}].copy", "file"))
        if number < 1199:
            progress.listen(ended(f"each[file {number}].copy", "file"))
    for number in range(7):
        progress.listen(started(f"program_{number}", "process"))
    clock.now += 0.5
    progress.listen(started("quick"))
    clock.now += 0.6
    with console.capture() as captured:
        console.print(progress.render())
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    assert max(map(len, text.splitlines())) <= 80
    assert_snapshot("progress_tasks_live", text)
    progress.listen(ORDERS_STARTED)
    clock.now += 1
    progress.listen(ORDERS_FINISHED)
    with console.capture() as captured:
        console.print(progress.render())
    assert "orders" in captured.get() and "each (foreach)" in captured.get()


def test_tables_of_a_loop_are_folded() -> None:
    state = RunProgress()
    for number in range(3 * MAXIMUM_TABLES):
        name = f"each[{number}].load"
        state.apply({**ORDERS_STARTED, "task": name}, float(number))
        state.apply({**ORDERS_FINISHED, "task": name}, float(number) + 0.5)
    assert len(state.tables) == MAXIMUM_TABLES and state.folded_count == 2 * MAXIMUM_TABLES
    rows = state.folded.rows_read + sum(table.rows_read for table in state.tables.values())
    assert rows == 3 * MAXIMUM_TABLES * ORDERS_FINISHED["rows_read"]
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    progress = LiveProgress(console, Clock())
    progress._state = state
    with console.capture() as captured:
        console.print(progress.render())
    assert len(captured.get().splitlines()) < 24 and "584 more" in captured.get()


def total(task: str, kind: str = "sql", **counts: Any) -> dict[str, Any]:
    """A member of `tasks` of a summary."""
    statuses = dict.fromkeys(("success", "failed", "skipped", "passed", "cancelled", "before"), 0)
    return {"task": task, "kind": kind, **statuses, "seconds": 1.5, "reason": None, "error": None, **counts}


ERROR = {"what": "the program has failed", "found": "exit code 2\nlast lines: no space"}
TASKS = [
    total("prepare", success=1),
    total("each", "foreach", success=1),
    total("each.load", "data_flow", success=12, failed=1, error={"what": "a file is missing", "found": None}),
    total("each.copy", "file", success=10, failed=1, skipped=1, error={"what": "no such file", "found": "x.csv"}),
    total("report", "process", before=1),
    total("off", "process", passed=1),
    total("broken", "sequence", failed=1, error=ERROR),
    total("broken.run", "process", failed=1, error=ERROR),
]


def test_the_accounts_of_other_tasks() -> None:
    document = {**summary(), "tasks": TASKS, "tasks_failed": 3}
    text = render_summary(document, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert_snapshot("summary_tasks", text)


def test_the_error_of_the_run_is_told_once() -> None:
    assert "program" not in render_failures(TASKS, ERROR, width=80)


def test_of_many_tasks_those_that_failed_are_shown() -> None:
    many = [total(f"t{number}", success=1) for number in range(500)]
    many[400] = total("t400", failed=1, error=ERROR)
    lines = render_tasks(many, width=80).splitlines()
    assert len(lines) == SHOWN_TASKS + 2
    assert any(line.startswith("t400 ") for line in lines)
    assert lines[-1] == "and 470 more tasks: summary.json in the run folder"


def test_a_run_of_data_flows_alone_has_no_such_table() -> None:
    assert render_tasks([total("load", "data_flow", success=1), total("each", "foreach", success=1)], width=80) == ""
