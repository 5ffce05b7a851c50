"""The live table. It fits 80 columns: the state column shows how much of the text has been read."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace import units
from headrace.cli.progress import shown_name, shown_state
from headrace.cli.progress_state import LOADING, WAITING, RunProgress, TableProgress

_MINIMUM_NAME_CHARACTERS: Final = 8
MAXIMUM_ROWS: Final = 16
_STYLES: Final = {"success": "green", "failed": "bold red", "cancelled": "yellow", LOADING: "bold cyan"}


def live_table(state: RunProgress, now: float, last_line: str | None) -> RenderableType:
    """All tables of the run with a total, and below it `last_line`."""
    tables = state.lines()
    below = [Text(line, no_wrap=True, overflow="ellipsis") for line in state.other_lines(now)]
    below += [line for table in tables if table.state == LOADING for line in _limit_lines(table)]
    if last_line is not None:
        below.append(Text(last_line, style="bold yellow"))
    if not any(table.has_begun() for table in tables) and below:
        return Group(*below)
    if not tables:
        return Text("planning", style="dim")
    grid = Table(box=None, padding=(0, 1), pad_edge=False, show_edge=False, header_style="bold")
    grid.add_column("table", min_width=_MINIMUM_NAME_CHARACTERS)  # the only column that a narrow terminal shortens
    for heading in ("state", "rows", "rows/s", "MB/s", "rejected", "left"):
        grid.add_column(heading, justify="right", no_wrap=True)
    shown = _shown(tables)
    for table in shown:
        grid.add_row(*_cells(table, now), style="" if table.has_begun() else "dim")
    more = len(tables) - len(shown) + state.folded_count
    if more:
        grid.add_row(f"{units.count(more)} more", *[""] * 6, style="dim")
    grid.add_section()
    grid.add_row(*_total_cells([*tables, state.folded], state.started, now), style="bold")
    return Group(grid, *below) if below else grid


def _shown(tables: list[TableProgress]) -> list[TableProgress]:
    """Of many tables those that matter now: what loads, what failed, the last that ended, and the next ones."""
    if len(tables) <= MAXIMUM_ROWS:
        return tables
    states = ("failed", "cancelled", LOADING)
    active = [table for table in tables if table.state in states][-MAXIMUM_ROWS:]
    ended = [table for table in tables if table.state not in (WAITING, *states)]
    waiting = [table for table in tables if table.state == WAITING]
    free = MAXIMUM_ROWS - len(active)
    following = waiting[: max(free // 2, free - len(ended))]
    before = ended[len(ended) - min(free - len(following), len(ended)) :]
    names = {table.task for table in (*active, *following, *before)}
    return [table for table in tables if table.task in names]


def _limit_lines(table: TableProgress) -> list[Text]:
    """What a table reads first, what limits it, and late streams. Wraps: what is shown is not to be guessed."""
    reading = [Text(f"{shown_name(table)} reads lookup {table.reading}", style="cyan")] if table.reading else []
    limit = [Text(f"{shown_name(table)} is {table.limit}", style="cyan")] if table.limit else []
    return reading + limit + [Text(line, style="yellow") for line in table.slow]


def _cells(table: TableProgress, now: float) -> list[RenderableType]:
    name = Text(shown_name(table), no_wrap=True, overflow="ellipsis")
    status = Text(shown_state(table), style=_STYLES.get(table.state, ""))
    if not table.has_begun():
        return [name, status, "", "", "", "", ""]
    rates = table.rates(now)
    rejected = Text(units.count(table.rows_rejected), style="red" if table.rows_rejected else "")
    left = table.seconds_left(now)
    return [
        name,
        status,
        units.count(table.rows_read),
        units.per_second(rates[0], 1) if rates else "",
        units.megabytes_per_second(rates[1], 1) if rates else "",
        rejected,
        units.clock(max(1, round(left))) if left is not None else "",
    ]


def _total_cells(tables: list[TableProgress], started: float, now: float) -> list[RenderableType]:
    """Sums, and rates since the start of the run. The time left needs the size of every table."""
    elapsed = now - started
    is_running = any(table.state in (WAITING, LOADING) for table in tables)
    tables = [table for table in tables if table.is_source]
    rows, size_bytes = sum(table.rows_read for table in tables), sum(table.bytes_read for table in tables)
    bytes_total = sum(table.bytes_total for table in tables)
    taken = sum(table.source_bytes_read for table in tables)
    sizes_known = all(table.bytes_total > 0 or table.state != WAITING for table in tables)
    left = ""
    if is_running and sizes_known and 0 < taken < bytes_total and elapsed > 1:
        left = units.clock(max(1, round((bytes_total - taken) * elapsed / taken)))
    return [
        "total",
        units.clock(elapsed),
        units.count(rows),
        units.per_second(rows, elapsed) if elapsed > 1 else "",
        units.megabytes_per_second(size_bytes, elapsed) if elapsed > 1 else "",
        units.count(sum(table.rows_rejected for table in tables)),
        left,
    ]
