"""Comparison with an earlier run: figures side by side, and both speeds over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.report.curves import Chart, Series, lines
from headrace.report.markup import Markup, element, join
from headrace.report.plot import series_colour
from headrace.report.rates import Rates
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.sections.figures import FlowAccount, Totals, accounts, totals
from headrace.report.tables import Column, table
from headrace.report.timeline import Attempt, Timeline
from headrace.report.verdicts import phrase
from headrace.report.wording import NOTHING, count, duration, rate, size

_MOST_TABLES: Final = 60


def section(run: RunFiles, rates: Rates, earlier: RunFiles, earlier_rates: Rates) -> Section:
    """The figures of both, and their curves."""
    parts = [element("p", _lead(run, earlier), class_="lead"), _figures(run, earlier)]
    tables = _tables(run, earlier)
    if tables is not None:
        parts.append(tables)
    parts.append(_curves(run, rates, earlier, earlier_rates))
    return Section("comparison", "Comparison", join(parts))


def _lead(run: RunFiles, earlier: RunFiles) -> str:
    now, before = totals(run), totals(earlier)
    parts = []
    if now.speed and before.speed:
        ratio = now.speed / before.speed
        words = "as fast as" if abs(ratio - 1) < 0.005 else f"{ratio:.2f} times as fast as"
        parts.append(f"This run loaded {words} run {earlier.run_id}.")
    else:
        parts.append(f"Beside run {earlier.run_id}.")
    if earlier.package != run.package:
        parts.append(f"That was a run of another package: {earlier.package}.")
    mine, other = run.verdict(), earlier.verdict()
    if mine and other and mine.limit != other.limit:
        parts.append(f"The limit was {phrase(other.limit)} then and is {phrase(mine.limit)} now.")
    return " ".join(parts)


def _figures(run: RunFiles, earlier: RunFiles) -> Markup:
    now, before = totals(run), totals(earlier)
    figures: list[tuple[str, Callable[[Totals], float | None], Callable[[float], str]]] = [
        ("time", lambda own: own.seconds, duration),
        ("time of loading", lambda own: own.load_seconds, duration),
        ("speed of loading", lambda own: own.speed, rate),
        ("rows per second", lambda own: own.rows_per_second, count),
        ("text read", lambda own: own.bytes, size),
        ("rows loaded", lambda own: own.loaded, count),
        ("rows rejected", lambda own: own.rejected, count),
        ("CPU time", lambda own: own.cpu_seconds, duration),
        ("most memory", lambda own: own.peak_bytes, size),
        ("streams", lambda own: own.streams, count),
    ]
    rows = [[name, *_pair(value(now), value(before), shown)] for name, value, shown in figures]
    mine, other = run.verdict(), earlier.verdict()
    rows.append(["limit", mine.limit if mine else NOTHING, other.limit if other else NOTHING, ""])
    rows.append(["status", run.status or "not ended", earlier.status or "not ended", ""])
    return element("div", table(_columns("figure", earlier), rows, caption="Both runs", cards=True), class_="chart")


def _tables(run: RunFiles, earlier: RunFiles) -> Markup | None:
    before = {flow.table: flow for flow in accounts(earlier)}
    both = [(flow, before[flow.table]) for flow in accounts(run) if flow.table in before]
    rows = [[now.table, *_pair(now.speed, old.speed, rate)] for now, old in both[:_MOST_TABLES] if _is_timed(now, old)]
    if not rows:
        return None
    return element(
        "div",
        element("h3", "Speed of each table"),
        table(_columns("table", earlier), rows, caption="Speed of tables in both runs", cards=True),
        class_="chart",
    )


def _is_timed(now: FlowAccount, old: FlowAccount) -> bool:
    return now.speed is not None and old.speed is not None


def _columns(first: str, earlier: RunFiles) -> tuple[Column, ...]:
    return (Column(first, words=True), Column("this run"), Column(earlier.run_id), Column("ratio"))


def _pair(now: float | None, before: float | None, shown: Callable[[float], str]) -> list[str]:
    ratio = f"{now / before:.2f}" if now is not None and before else NOTHING
    return [NOTHING if now is None else shown(now), NOTHING if before is None else shown(before), ratio]


def _curves(run: RunFiles, rates: Rates, earlier: RunFiles, earlier_rates: Rates) -> Markup:
    longest = max(run.timeline.seconds, earlier.timeline.seconds)
    timeline = Timeline([Attempt(1, 0.0, longest)])
    chart = Chart(
        "comparison-throughput",
        "Throughput of both runs",
        f"Megabytes of source text per second since each run began: this run, and dashed run {earlier.run_id}.",
        rate,
        lead="Both begin at 0.",
    )
    series = [
        Series("this run", series_colour(0), rates.total(), duration(run.timeline.seconds), rates.moments),
        Series(
            f"run {earlier.run_id}",
            series_colour(2),
            earlier_rates.total(),
            duration(earlier.timeline.seconds),
            earlier_rates.moments,
            is_dashed=True,
        ),
    ]
    return lines(chart, timeline, series)
