"""Charts of figures over time: stacked areas, and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from headrace.report.markup import Markup, digits, element, join
from headrace.report.plot import (
    WIDTH,
    Legend,
    Scale,
    box,
    drawing,
    figure,
    framed,
    value_axis,
    x,
)
from headrace.report.scales import clock
from headrace.report.tables import Column, table
from headrace.report.thinning import thinned
from headrace.report.timeline import Timeline

_TABLE_ROWS: Final = 12
_HEIGHT: Final = 190


@dataclass(frozen=True)
class Series:
    """Values at the moments of a chart; for lines moments may be its own. `figure`: what the legend says of it."""

    name: str
    colour: str
    values: Sequence[float]
    figure: str = ""
    moments: Sequence[float] | None = None
    is_dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """What a chart is called, and how its values are shown. `top`: the upper end of the axis, if it is fixed."""

    name: str
    title: str
    description: str
    shown: Callable[[float], str]
    lead: str = ""
    height: int = _HEIGHT
    top: float | None = None
    class_: str = ""


def stacked(chart: Chart, timeline: Timeline, moments: Sequence[float], series: Sequence[Series]) -> Markup:
    """Areas on top of each other, the first one at the bottom. All have values at all `moments`."""
    columns = zip(*(own.values for own in series), strict=True)
    sums = [list(level) for level in zip(*(accumulate(column) for column in columns), strict=True)]
    totals = sums[-1] if sums else []
    scale = Scale.up_to(chart.top or max(totals, default=0.0), chart.height, chart.shown)
    kept = thinned(totals)
    shapes = []
    below: Sequence[float] = [0.0] * len(moments)
    for own, level in zip(series, sums, strict=True):
        upper = [_point(timeline, scale, moments[place], level[place]) for place in kept]
        lower = [_point(timeline, scale, moments[place], below[place]) for place in reversed(kept)]
        shapes.append(_shape("area", own, f"M{'L'.join((*upper, *lower))}Z"))
        below = level
    return _assembled(chart, timeline, scale, series, shapes, _table(chart, timeline, moments, series))


def lines(chart: Chart, timeline: Timeline, series: Sequence[Series]) -> Markup:
    """Lines over each other, each with moments of its own."""
    largest = max((max(own.values, default=0.0) for own in series), default=0.0)
    scale = Scale.up_to(chart.top or largest, chart.height, chart.shown)
    shapes = []
    for own in series:
        kept = thinned(own.values)
        points = [_point(timeline, scale, (own.moments or ())[place], own.values[place]) for place in kept]
        if points:
            shapes.append(_shape("line", own, f"M{'L'.join(points)}"))
    first = max(series, key=lambda own: len(own.values), default=None)
    moments = (first.moments or ()) if first else ()
    return _assembled(chart, timeline, scale, series, shapes, _table(chart, timeline, moments, series))


def silhouette(timeline: Timeline, moments: Sequence[float], values: Sequence[float], height: int) -> Markup:
    """An area without axes, as an ornament."""
    scale = Scale.up_to(max(values, default=0.0) * 1.05, height, str)
    points = [_point(timeline, scale, moments[place], values[place]) for place in thinned(values, 240)]
    if not points:
        return Markup("")
    path = f"M0 {height}L{'L'.join(points)}L{WIDTH} {height}Z"
    return element("div", box(height, element("path", d=path)), class_="silhouette", aria_hidden="true")


def _assembled(
    chart: Chart,
    timeline: Timeline,
    scale: Scale,
    series: Sequence[Series],
    shapes: Sequence[Markup],
    as_table: Markup,
) -> Markup:
    drawn = drawing(
        chart.name,
        chart.title,
        chart.description,
        timeline,
        chart.height,
        value_axis(scale),
        box(chart.height, *shapes),
        data_seconds=digits(timeline.seconds),
        data_top=f"{scale.top:.6g}",
        data_unit=chart.shown(scale.top).rpartition(" ")[2],
    )
    legend = [Legend(own.colour, own.name, own.figure, own.is_dashed) for own in series]
    return figure(
        chart.name, chart.title, framed(drawn), lead=chart.lead, legend=legend, table=as_table, class_=chart.class_
    )


def _shape(kind: str, own: Series, path: str) -> Markup:
    classes = f"{kind} dashed" if own.is_dashed else kind
    return element("path", class_=classes, style=f"--own:{own.colour}", d=path, data_name=own.name)


def _point(timeline: Timeline, scale: Scale, moment: float, value: float) -> str:
    return f"{digits(x(timeline, moment))} {digits(scale.y(value))}"


def _table(chart: Chart, timeline: Timeline, moments: Sequence[float], series: Sequence[Series]) -> Markup:
    """Means of equal stretches of time."""
    columns = [Column("from", words=True), *(Column(own.name) for own in series)]
    step = timeline.seconds / _TABLE_ROWS
    rows = []
    for number in range(_TABLE_ROWS):
        begin, end = number * step, (number + 1) * step
        cells = [
            _mean(chart, [v for m, v in zip(own.moments or moments, own.values, strict=True) if begin <= m < end])
            for own in series
        ]
        rows.append([clock(begin, step), *cells])
    return table(columns, rows, caption=f"{chart.title}: means of {_TABLE_ROWS} stretches of time")


def _mean(chart: Chart, values: Sequence[float]) -> str:
    return chart.shown(sum(values) / len(values)) if values else "-"


def joined(parts: Sequence[Markup]) -> Markup:
    """Charts side by side."""
    return element("div", join(parts), class_="pair")
