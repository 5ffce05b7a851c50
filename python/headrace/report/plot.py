"""The frame of a chart: figure, legend, axes, and the table that tells the same.

Plots have no size of their own. Shapes are drawn in a box of 1,000 by as many units as the plot has pixels in height,
which is stretched to the width that there is; texts stand outside of that box, at percentages, so that they are never
stretched, and as large on a phone as on a wide screen. All plots begin behind a gutter of one width: a moment is at the
same place in each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.report.markup import Markup, digits, element, join
from headrace.report.palette import fill
from headrace.report.scales import clock, ticks, time_ticks
from headrace.report.timeline import Timeline

WIDTH: Final = 1_000
AXIS_HEIGHT: Final = 22
# Labels of the time axis that a phone has room for.
_NARROW_TICKS: Final = 4
_NEAR_END: Final = 0.965


@dataclass(frozen=True)
class Legend:
    """One line of a legend: its colour as a CSS value, its name, and a figure."""

    colour: str
    name: str
    figure: str = ""
    is_dashed: bool = False


@dataclass(frozen=True)
class Scale:
    """The axis of values: round ticks, and where a value stands in a plot of so many pixels."""

    values: Sequence[float]
    height: int
    shown: Callable[[float], str]

    @classmethod
    def up_to(cls, largest: float, height: int, shown: Callable[[float], str], most: int = 4) -> Scale:
        """From 0 to a round value."""
        return cls(ticks(largest, most), height, shown)

    @property
    def top(self) -> float:
        """The value at the upper end."""
        return self.values[-1]

    def y(self, value: float) -> float:
        """Pixels from the upper end."""
        return self.height * (1 - min(1.0, max(0.0, value / self.top)))


def x(timeline: Timeline, seconds: float) -> float:
    """Units from the left end of the box."""
    return WIDTH * timeline.share(seconds)


def at_percent(share: float) -> str:
    """A place outside of the box."""
    return f"{digits(100 * share)}%"


def box(height: int, *shapes: str) -> Markup:
    """The stretched box with its shapes."""
    return element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
        aria_hidden="true",
    )


def time_grid(timeline: Timeline, height: int) -> Markup:
    """Lines at round moments, to be drawn below all else."""
    places = [at_percent(timeline.share(moment)) for moment in time_ticks(timeline.seconds)]
    return join(element("line", class_="grid", x1=place, x2=place, y1=0, y2=height) for place in places)


def time_labels(timeline: Timeline, height: int) -> Markup:
    """Round moments, and where attempts begin."""
    moments = time_ticks(timeline.seconds)
    step = moments[1] - moments[0] if len(moments) > 1 else 1.0
    every = math.ceil(len(moments) / _NARROW_TICKS)
    parts = []
    for number, moment in enumerate(moments):
        share = timeline.share(moment)
        anchor = "start" if number == 0 else "end" if share > _NEAR_END else "middle"
        narrow = number % every == 0 and (number == 0 or share < _NEAR_END)
        parts.append(
            element(
                "text",
                "0" if moment == 0 and step >= 1 else clock(moment, step),
                class_="tick" if narrow else "tick wide",
                x=at_percent(share),
                y=height + 15,
                text_anchor=anchor,
            )
        )
    for attempt in timeline.attempts[1:]:
        place = at_percent(timeline.share(attempt.offset))
        parts.append(element("line", class_="attempt", x1=place, x2=place, y1=0, y2=height))
        parts.append(
            element("text", f"attempt {attempt.number}", class_="mark", x=place, dx=4, y=10),
        )
    return join(parts)


def value_axis(scale: Scale) -> Markup:
    """Lines and labels of values; the labels stand in the gutter."""
    parts = []
    for value in scale.values:
        y = scale.y(value)
        parts.append(element("line", class_="base" if value == 0 else "grid", x1=0, x2="100%", y1=y, y2=y))
        shown = "0" if value == 0 else scale.shown(value)
        parts.append(element("text", shown, class_="tick", x=-8, y=y + 4, text_anchor="end"))
    return join(parts)


def drawing(
    name: str, title: str, description: str, timeline: Timeline, height: int, *parts: str, **attributes: str
) -> Markup:
    """The SVG of a chart over time, `height` pixels above its axis, with what screen readers say of it."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-description"),
        time_grid(timeline, height),
        *parts,
        time_labels(timeline, height),
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
        class_="plot",
        width="100%",
        height=height + AXIS_HEIGHT,
        **attributes,
    )


def figure(
    name: str,
    title: str,
    drawn: Markup,
    *,
    lead: str = "",
    legend: Sequence[Legend] = (),
    table: Markup | None = None,
    class_: str = "",
) -> Markup:
    """A chart with its heading, a sentence, its legend, and its figures as a table."""
    parts = [element("h3", title)]
    if lead:
        parts.append(element("p", lead, class_="lead"))
    if legend:
        parts.append(_legend(legend))
    parts.append(drawn)
    if table is not None:
        parts.append(
            element("details", element("summary", "The same as a table"), table, class_="figures", id=f"{name}-table")
        )
    return element("figure", *parts, class_=f"chart {class_}".strip(), id=name)


def framed(drawn: Markup, labels: Markup | None = None) -> Markup:
    """A drawing behind the gutter, which holds the labels of rows, or those of the axis."""
    return element("div", labels if labels is not None else element("span"), drawn, class_="frame")


def _legend(legend: Sequence[Legend]) -> Markup:
    entries = []
    for item in legend:
        figure_text = element("b", item.figure) if item.figure else Markup("")
        swatch = element("i", class_="dashed" if item.is_dashed else None, style=f"--own:{item.colour}")
        entries.append(element("li", swatch, element("span", item.name), figure_text))
    return element("ul", *entries, class_="legend")


def series_colour(number: int) -> str:
    """The colour of a series by its number."""
    return fill("series", number)
