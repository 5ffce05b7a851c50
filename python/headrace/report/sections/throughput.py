"""Throughput: how fast each table, and each stream, was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.report.curves import Chart, Series, stacked
from headrace.report.markup import Markup, digits, element, join
from headrace.report.plot import box, drawing, figure, framed, series_colour, x
from headrace.report.rates import Rates, edges_of, rates_of, stream_curves
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.tables import Column, table
from headrace.report.thinning import thinned
from headrace.report.wording import rate, size

# Tables with a colour of their own; the others are one.
_MOST_TABLES: Final = 7
_GAP: Final = 2
# Points of all streams together.
_MOST_POINTS: Final = 12_000


def section(run: RunFiles, rates: Rates) -> Section | None:
    """Both charts."""
    if not any(rates.bytes.values()):
        return None
    parts = [_of_tables(run, rates)]
    streams = _of_streams(run)
    if streams is not None:
        parts.append(streams)
    return Section("throughput", "Throughput", join(parts))


def _of_tables(run: RunFiles, rates: Rates) -> Markup:
    names = list(rates.by_name)
    shown = names if len(names) <= _MOST_TABLES + 1 else names[:_MOST_TABLES]
    rest = names[len(shown) :]
    series = [
        Series(name, series_colour(number), rates.by_name[name], size(rates.bytes[name]))
        for number, name in enumerate(shown)
    ]
    if rest:
        together = [sum(values) for values in zip(*(rates.by_name[name] for name in rest), strict=True)]
        series.append(
            Series(
                f"{len(rest)} more tables",
                series_colour(_MOST_TABLES),
                together,
                size(sum(rates.bytes[name] for name in rest)),
            )
        )
    total = rates.total()
    peak = max(total)
    chart = Chart(
        "throughput-tables",
        "By table",
        f"Megabytes of source text read per second over the time of the run, stacked by table; at most {rate(peak)}.",
        rate,
        lead=f"Source text read per second. At most {rate(peak)}.",
    )
    return stacked(chart, run.timeline, rates.moments, series)


def _of_streams(run: RunFiles) -> Markup | None:
    """A small area for each stream, all to one scale, one below the other."""
    curves = stream_curves(run)
    if not curves:
        return None
    cells = max(60, min(300, _MOST_POINTS // len(curves)))
    edges = edges_of(run.timeline.seconds, cells)
    rates = rates_of({str(number): own for number, own in curves.items()}, edges)
    largest = max((max(values) for values in rates.by_name.values()), default=0.0)
    top = largest or 1.0
    height = 28 if len(curves) <= 8 else 18 if len(curves) <= 16 else 12
    shapes, labels = [], []
    for row, values in enumerate(rates.by_name.values()):
        shapes.append(_area(run, rates.moments, values, row * (height + _GAP), height, top))
    for number in curves:
        labels.append(element("li", str(number), title=f"stream {number}"))
    whole = len(curves) * (height + _GAP)
    name = "throughput-streams"
    title = "By stream"
    drawn = drawing(
        name,
        title,
        f"Source text parsed per second by each of {len(curves)} streams, one row each, all to one scale up to "
        f"{rate(top)}.",
        run.timeline,
        whole,
        box(whole, *shapes),
    )
    own = element("ol", *labels, class_="labels", style=f"--lane:{height}px;--gap:{_GAP}px", aria_hidden="true")
    lead = f"One row for each stream; a row is {rate(top)} high."
    return figure(name, title, framed(drawn, own), lead=lead, table=_table(run, rates))


def _area(run: RunFiles, moments: Sequence[float], values: Sequence[float], y: int, height: int, top: float) -> Markup:
    bottom = y + height
    kept = thinned(values)
    points = [
        f"{digits(x(run.timeline, moments[place]))} {digits(bottom - height * min(1.0, values[place] / top))}"
        for place in kept
    ]
    first, last = digits(x(run.timeline, moments[kept[0]])), digits(x(run.timeline, moments[kept[-1]]))
    return element("path", class_="ridge", d=f"M{first} {bottom}L{'L'.join(points)}L{last} {bottom}Z")


def _table(run: RunFiles, rates: Rates) -> Markup:
    columns = (Column("stream"), Column("text"), Column("mean while it worked"), Column("at most"))
    rows = []
    for name, values in rates.by_name.items():
        busy = [value for value in values if value > 0]
        mean = rate(sum(busy) / len(busy)) if busy else "-"
        rows.append([name, size(rates.bytes[name]), mean, rate(max(values))])
    return table(columns, rows, caption="Throughput of each stream")
