"""Charts with a row for each thing, and what it was at as colours along the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.report.markup import Attribute, Markup, digits, element
from headrace.report.plot import WIDTH, Legend, at_percent, box, drawing, figure, framed
from headrace.report.timeline import Timeline
from headrace.report.tracks import Curve

_GAP: Final = 2
# Cells of all rows together, and of one row: more would be too many to look at, and to store.
_MOST_CELLS: Final = 6_000
_LEAST_OF_ROW: Final = 60
_MOST_OF_ROW: Final = 240
# Slices that can be pointed at, in all rows together.
_MOST_HINTS: Final = 600
# Lines between slices, per row: closer ones are left out.
_LEAST_DISTANCE: Final = 5.0


@dataclass(frozen=True)
class Stretch:
    """From one moment of the axis to another one, and what to say about it."""

    begin: float
    end: float
    hint: str


@dataclass(frozen=True)
class Lane:
    """A row. `states`: seconds in each, as counters; `marks`: moments where something new began; `late`: a stretch that
    others had no need of.
    """

    label: str
    hint: str
    states: Mapping[str, Sequence[Curve]]
    marks: Sequence[Stretch] = field(default=())
    late: Stretch | None = None


@dataclass(frozen=True)
class LaneChart:
    """What a chart is called, and the colours of its states in their order."""

    name: str
    title: str
    description: str
    colours: Mapping[str, str]
    legend: Sequence[Legend]
    lead: str = ""


def lane_height(lanes: int) -> int:
    """Pixels of a row: few rows can be taller."""
    return 30 if lanes <= 8 else 22 if lanes <= 16 else 16 if lanes <= 32 else 11


def lane_chart(chart: LaneChart, timeline: Timeline, lanes: Sequence[Lane], table: Markup | None) -> Markup:
    """The rows, one below the other."""
    own = lane_height(len(lanes))
    height = len(lanes) * (own + _GAP)
    paths: dict[str, list[str]] = {state: [] for state in chart.colours}
    dividers: list[str] = []
    overlays: list[Markup] = []
    hints = sum(len(lane.marks) for lane in lanes)
    cells = max(_LEAST_OF_ROW, min(_MOST_OF_ROW, _MOST_CELLS // max(1, len(lanes))))
    for number, lane in enumerate(lanes):
        y = number * (own + _GAP)
        _cells(paths, timeline, lane, y, own, cells)
        dividers += _dividers(timeline, lane, y, own)
        overlays.append(_hint(lane.hint, 0.0, 1.0, y, own))
        if hints <= _MOST_HINTS:
            overlays += [
                _hint(mark.hint, timeline.share(mark.begin), timeline.share(mark.end), y, own) for mark in lane.marks
            ]
        if lane.late is not None:
            overlays.append(_late(timeline, lane.late, y, own))
    shapes = [
        element("path", style=f"fill:{chart.colours[state]}", d="".join(parts))
        for state, parts in paths.items()
        if parts
    ]
    if dividers:
        shapes.append(element("path", class_="divider", d="".join(dividers)))
    drawn = drawing(
        chart.name,
        chart.title,
        chart.description,
        timeline,
        height,
        box(height, *shapes),
        *overlays,
    )
    labels = element(
        "ol",
        *(element("li", lane.label, title=lane.hint, class_="late" if lane.late else None) for lane in lanes),
        class_="labels",
        style=f"--lane:{own}px;--gap:{_GAP}px",
        aria_hidden="true",
    )
    return figure(chart.name, chart.title, framed(drawn, labels), lead=chart.lead, legend=chart.legend, table=table)


def _cells(paths: dict[str, list[str]], timeline: Timeline, lane: Lane, y: int, height: int, cells: int) -> None:
    """Each cell is as high as the row, and each state has its share of that; equal neighbours become one."""
    seconds = timeline.seconds / cells
    edges = [seconds * number for number in range(cells + 1)]
    grown = {
        state: [sum(step) for step in zip(*(curve.growth(edges) for curve in curves), strict=True)]
        for state, curves in lane.states.items()
        if curves
    }
    open_from: dict[str, tuple[int, int, int]] = {}
    for cell in range(cells + 1):
        placed = _placed(grown, cell, seconds, height) if cell < cells else {}
        for state, parts in paths.items():
            now, before = placed.get(state), open_from.get(state)
            if before is not None and (now is None or now != before[1:]):
                parts.append(_rectangle(before, cell, cells, y))
                del open_from[state]
                before = None
            if now is not None and before is None:
                open_from[state] = (cell, *now)


def _placed(grown: Mapping[str, Sequence[float]], cell: int, seconds: float, height: int) -> dict[str, tuple[int, int]]:
    """Upper end and height of each state in a cell, in whole pixels, from the bottom up."""
    values = {state: steps[cell] for state, steps in grown.items()}
    total = sum(values.values())
    if total < 0.02 * seconds:
        return {}
    # Clocks that are read one after the other can make the parts a little more, or less, than the whole.
    unit = height / (total if total > 0.8 * seconds else seconds)
    placed, bottom, passed = {}, height, 0.0
    for state, value in values.items():
        passed += value * unit
        upper = height - min(height, round(passed))
        if upper < bottom:
            placed[state] = (upper, bottom - upper)
            bottom = upper
    return placed


def _rectangle(stretch: tuple[int, int, int], end: int, cells: int, y: int) -> str:
    begin, upper, height = stretch
    left, width = WIDTH * begin / cells, WIDTH * (end - begin) / cells
    return f"M{digits(left)} {y + upper}h{digits(width)}v{height}h-{digits(width)}z"


def _dividers(timeline: Timeline, lane: Lane, y: int, height: int) -> list[str]:
    parts, last = [], -_LEAST_DISTANCE
    for mark in lane.marks[1:]:
        place = WIDTH * timeline.share(mark.begin)
        if place - last >= _LEAST_DISTANCE:
            parts.append(f"M{digits(place)} {y}v{height}")
            last = place
    return parts


def _hint(text: str, begin: float, end: float, y: int, height: int) -> Markup:
    return _pointed("hint", text, begin, max(0.0, end - begin), y, height)


def _late(timeline: Timeline, late: Stretch, y: int, height: int) -> Markup:
    begin, end = timeline.share(late.begin), timeline.share(late.end)
    return _pointed("tail", late.hint, begin, max(0.002, end - begin), y, height)


def _pointed(class_: str, text: str, begin: float, width: float, y: int, height: int) -> Markup:
    """A rectangle that says something when it is pointed at."""
    place: dict[str, Attribute] = {"x": at_percent(begin), "width": at_percent(width), "y": y, "height": height}
    return element("rect", element("title", text), class_=class_, **place)
