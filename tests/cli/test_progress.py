"""The progress display: what each event shows, on a terminal and in a log file."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from headrace.cli.progress import LiveProgress, PlainProgress
from tests.cli.sample_run import (
    LINEITEM_FAILED,
    LINEITEM_LIMIT,
    LINEITEM_SLOW_STREAMS,
    LINEITEM_STARTED,
    NOTICE,
    ORDERS_FINISHED,
    ORDERS_STARTED,
    REGION_SKIPPED,
    RUN_FINISHED,
    RUN_STARTED,
    Clock,
    lineitem_progress,
)
from tests.snapshots import assert_snapshot

# Destinations of one data flow, and what is read for each.
WAYS = (("one", 100), ("two", 0), ("three", 0), ("four", 0))


def play(progress: PlainProgress | LiveProgress, clock: Clock, after_progress: Callable[[], None]) -> None:
    """The run of sample_run; `after_progress` is called in the middle of lineitem."""
    progress.listen(RUN_STARTED)
    progress.listen(NOTICE)
    progress.listen(ORDERS_STARTED)
    clock.now += 1.25
    progress.listen(ORDERS_FINISHED)
    progress.listen(LINEITEM_STARTED)
    for step in range(1, 71):
        clock.now += 0.1
        progress.listen(lineitem_progress(step * 50_000, step * 6_331_000, step // 35))
    after_progress()
    progress.listen(LINEITEM_FAILED)
    progress.listen(REGION_SKIPPED)
    progress.listen(RUN_FINISHED)


def test_plain_lines() -> None:
    clock, stream = Clock(), io.StringIO()
    with PlainProgress(stream, clock) as progress:
        play(progress, clock, lambda: None)
    assert_snapshot("progress_plain", stream.getvalue())


def test_plain_lines_come_every_five_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock)
    progress.listen(RUN_STARTED)
    progress.listen(LINEITEM_STARTED)
    before = len(stream.getvalue().splitlines())
    for step in range(1, 161):
        clock.now += 0.1
        progress.listen(lineitem_progress(step, step))
    assert len(stream.getvalue().splitlines()) - before == 3


def counting(counted_bytes: int) -> dict[str, object]:
    return {**lineitem_progress(0, 0), "source_bytes_read": 0, "counted_bytes": counted_bytes}


def test_rows_that_are_counted_before_they_are_loaded_are_shown() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock)
    _, _, table = live(80)
    for event in (RUN_STARTED, LINEITEM_STARTED):
        progress.listen(event)
        table.listen(event)
    for event in (counting(120_000_000), {**lineitem_progress(1_000, 90_000), "counted_bytes": 400_000_000}):
        clock.now += 6
        progress.listen(event)
        table.listen(event)
        shown = rendered(table, 80)
        assert max(len(line) for line in shown.splitlines()) <= 80
        stream.write(shown + "\n")
    assert_snapshot("progress_counting", stream.getvalue())


def test_lookups_are_shown_while_they_are_read() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock)
    _, _, table = live(80)
    name = {"task": LINEITEM_STARTED["task"], "table": "lineitem", "lookup": "keyed"}
    started = {"event": "lookup_started", **name, "rows_from": "2 files", "files": 2, "bytes_total": 54_000_000}
    read = {"event": "lookup_read", **name, "rows": 1_000_000, "seconds": 20.5, "bytes": 12_000_000}
    for event in (RUN_STARTED, LINEITEM_STARTED, started, read, lineitem_progress(100_000, 9_000_000)):
        clock.now += 6
        progress.listen(event)
        table.listen(event)
        stream.write(rendered(table, 80) + "\n")
    assert_snapshot("progress_lookup", stream.getvalue())


def live(width: int) -> tuple[Clock, Console, LiveProgress]:
    clock = Clock()
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, markup=False)
    return clock, console, LiveProgress(console, clock)


def rendered(progress: LiveProgress, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(progress.render())
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def test_live_table_in_80_columns() -> None:
    clock, _, progress = live(80)
    shown: list[str] = []
    shown.append(rendered(progress, 80))
    play(progress, clock, lambda: shown.append(rendered(progress, 80)))
    progress.stopping()
    shown.append(rendered(progress, 80))
    assert max(len(line) for text in shown for line in text.splitlines()) <= 80
    assert_snapshot("progress_live", "\n\n".join(shown))


def test_a_table_of_billions_fits_80_columns() -> None:
    clock, _, progress = live(80)
    progress.listen({**RUN_STARTED, "tasks": [{"task": "t", "table": "a_table_with_quite_a_long_name"}]})
    progress.listen({**LINEITEM_STARTED, "task": "t", "table": "", "bytes_total": 1_180_000_000_000})
    clock.now += 1_000
    progress.listen(
        {**lineitem_progress(5_999_989_709, 758_000_000_000, 1_234_567), "task": "t", "bytes_total": 1_180_000_000_000}
    )
    text = rendered(progress, 80)
    assert "5,999,989,709" in text and "1,234,567" in text and "…" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_what_limits_a_table_and_which_streams_are_late() -> None:
    clock, stream = Clock(), io.StringIO()
    lines = PlainProgress(stream, clock)
    _, _, table = live(80)
    last_word = {**LINEITEM_LIMIT, "is_final": True}
    for event in (RUN_STARTED, LINEITEM_STARTED, LINEITEM_LIMIT, LINEITEM_SLOW_STREAMS, last_word):
        clock.now += 1
        lines.listen(event)
        table.listen(event)
    shown = rendered(table, 80)
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert_snapshot("progress_limit", f"{stream.getvalue()}\n{shown}\n")


def test_live_display_leaves_the_cursor_visible() -> None:
    clock, console, progress = live(80)
    with progress:
        play(progress, clock, lambda: None)
    assert isinstance(console.file, io.StringIO)
    output = console.file.getvalue()
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")
    assert "note: waiting for the database file" in output


def test_rate_is_that_of_the_last_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock)
    progress.listen(RUN_STARTED)
    progress.listen(LINEITEM_STARTED)
    for step in range(1, 51):  # fast: 1,000,000 rows/s
        clock.now += 0.1
        progress.listen(lineitem_progress(step * 100_000, step * 10_000_000))
    for step in range(1, 51):  # slow: 10,000 rows/s
        clock.now += 0.1
        progress.listen(lineitem_progress(5_000_000 + step * 1_000, 500_000_000 + step * 100_000))
    table = progress._state.tables["load_tables[lineitem].load"]
    rates = table.rates(clock.now)
    assert rates == pytest.approx((10_000, 1_000_000), rel=0.1)


def test_what_several_destinations_get_in_one_pass_counts_once_in_the_total() -> None:
    clock, _console, progress = live(80)
    tasks = [{"task": f"load/{name}", "table": name, "bytes_total": size, "flow_of": "load"} for name, size in WAYS]
    progress.listen({**RUN_STARTED, "tasks": tasks})
    for task in tasks:
        progress.listen({**LINEITEM_STARTED, **task})
    clock.now += 10
    counts = {"rows_read": 500, "rows_rejected": 0, "bytes_read": 50, "source_bytes_read": 50, "seconds": 10.0}
    progress.listen({"event": "progress", "task": "load/one", "table": "one", **counts})
    (line,) = [line for line in rendered(progress, 80).splitlines() if line.startswith("total")]
    assert line.split()[-1] == "0:10", "as long as it has taken for the first half"
    for name, _ in WAYS:
        own = {**ORDERS_FINISHED, **counts, "task": f"load/{name}", "table": name, "flow_of": "load"}
        progress.listen({**own, "rows_read": 1000})
    (line,) = [line for line in rendered(progress, 80).splitlines() if line.startswith("total")]
    assert line.split()[2] == "1,000"


def test_of_a_flow_that_goes_on_in_one_place_the_files_are_those_of_what_is_left() -> None:
    clock, _console, progress = live(80)
    tasks = [
        {"task": f"load/{name}", "table": name, "bytes_total": size, "flow_of": "load"}
        for name, size in (("one", 0), ("two", 100))
    ]
    progress.listen({**RUN_STARTED, "tasks": tasks})
    first, second = tasks
    progress.listen({"event": "task_skipped", "task": first["task"], "kind": "data_flow", "table": first["table"]})
    progress.listen({**LINEITEM_STARTED, **second})
    clock.now += 10
    counts = {"rows_read": 500, "rows_rejected": 0, "bytes_read": 50, "source_bytes_read": 50, "seconds": 10.0}
    progress.listen({"event": "progress", "task": second["task"], "table": second["table"], **counts})
    (line,) = [line for line in rendered(progress, 80).splitlines() if line.startswith("total")]
    assert line.split()[-1] == "0:10", "as long as it has taken for the first half"
