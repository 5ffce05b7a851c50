"""A graph as one SVG document that needs nothing else: light on light pages and on paper, dark on dark ones."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Final

from headrace.graph.layered import Point, Route
from headrace.graph.parts import LINE_KINDS, Graph, Line
from headrace.graph.placing import BOW, CORNER, INSET, LABEL_HEIGHT, SHEET, TEXT_SIZE, TIP, Placed, place
from headrace.graph.text_widths import text_width
from headrace.report.markup import Markup, digits, element, join

_MARGIN: Final = 16.0
_ARROW_LENGTH: Final = 9.0
_ARROW_WIDTH: Final = 8.0
_ROUND: Final = 6
_SAMPLE: Final = 34.0
_LEGEND_LINE: Final = 24.0
_LEGEND_GAP: Final = 26.0


def to_svg(graph: Graph) -> str:
    """The document, with a line end behind it."""
    root = place(graph)
    legend, legend_height = _legend(graph, root.width - 2 * INSET)
    width, height = root.width + 2 * _MARGIN, root.height + legend_height + 2 * _MARGIN
    document = element(
        "svg",
        element("title", f"Package {graph.root.title}", id="headrace-graph-title"),
        element("desc", graph.sentence(), id="headrace-graph-description"),
        element("style", Markup(_style())),
        element("rect", class_="page", width=width, height=height),
        element(
            "g",
            join(element("text", text.text, class_=text.role, x=text.x, y=text.y) for text in root.texts),
            *_content(root, 1),
            transform=_translate(_MARGIN, _MARGIN),
        ),
        element("g", *legend, transform=_translate(_MARGIN + INSET, _MARGIN + root.height)),
        xmlns="http://www.w3.org/2000/svg",
        class_="headrace-graph",
        role="img",
        aria_labelledby="headrace-graph-title headrace-graph-description",
        viewBox=f"0 0 {digits(width)} {digits(height)}",
        width=width,
        height=height,
    )
    return f"{document}\n"


def _style() -> str:
    return resources.files("headrace.graph").joinpath("style.css").read_text(encoding="utf-8")


def _content(placed: Placed, depth: int) -> Iterator[Markup]:
    """What is inside of a box, lines last: they end at the edges of boxes."""
    for inner in placed.inside:
        yield _box(inner, depth)
    for line, route, label in zip(placed.box.lines, placed.routes, placed.labels, strict=True):
        yield _line(line, route, label)


def _box(placed: Placed, depth: int) -> Markup:
    box = placed.box
    parts = [element("title", "; ".join(part for part in (box.title, box.word, *box.facts, box.about) if part))]
    parts += _shape(placed, depth)
    parts += [element("text", text.text, class_=text.role, x=text.x, y=text.y) for text in placed.texts]
    return element(
        "g",
        *parts,
        *_content(placed, depth + 1),
        class_=f"{box.shape} off" if box.mark else box.shape,
        transform=_translate(placed.x, placed.y),
    )


def _shape(placed: Placed, depth: int) -> list[Markup]:
    width, height, shape = placed.width, placed.height, placed.box.shape
    if placed.inside:
        return _around(placed, depth)
    if shape == "table":
        bow = f"a{digits(width / 2)} {digits(BOW)} 0 0"
        path = f"M0 {digits(BOW)}{bow} 1 {digits(width)} 0v{digits(height - 2 * BOW)}{bow} 1 {digits(-width)} 0Z"
        edge = f"M0 {digits(BOW)}{bow} 0 {digits(width)} 0"
        return [element("path", class_="shape", d=path), element("path", class_="shape fold", d=edge)]
    if shape == "transform":
        half = digits(height / 2)
        path = (
            f"M{digits(TIP)} 0H{digits(width - TIP)}L{digits(width)} {half}L{digits(width - TIP)} {digits(height)}"
            f"H{digits(TIP)}L0 {half}Z"
        )
        return [element("path", class_="shape", d=path)]
    if shape in ("file", "generated", "rejects"):
        edge = digits(width - CORNER)
        path = f"M0 0H{edge}L{digits(width)} {digits(CORNER)}V{digits(height)}H0Z"
        fold = f"M{edge} 0V{digits(CORNER)}H{digits(width)}"
        return [element("path", class_="shape", d=path), element("path", class_="shape fold", d=fold)]
    return [element("rect", class_="shape", width=width, height=height, rx=_ROUND)]


def _around(placed: Placed, depth: int) -> list[Markup]:
    """The box around others; a loop lies on a second sheet."""
    class_ = "shape around" if depth % 2 else "shape around inner"
    sheet = SHEET if placed.box.shape == "loop" else 0.0
    width, height = placed.width - sheet, placed.height - sheet
    parts = [element("rect", class_=class_, width=width, height=height, rx=_ROUND)]
    if sheet:
        parts.insert(0, element("rect", class_=class_, x=sheet, y=sheet, width=width, height=height, rx=_ROUND))
    return parts


def _line(line: Line, route: Route, label: str) -> Markup:
    end = route.strokes[-1][-1][1]
    parts = [
        element("path", class_="run", d=_path(route)),
        element("path", class_="point", d=_arrow(end, is_across=route.is_across)),
    ]
    if label and route.label is not None:
        x, y = route.label
        parts.append(element("text", label, class_="label", x=x + 4, y=y + LABEL_HEIGHT - 6))
    if label != line.text:
        parts.insert(0, element("title", line.text))
    return element("g", *parts, class_=line.kind)


def _path(route: Route) -> str:
    """The strokes; the point at the end takes the last few pixels."""
    path = ""
    for number, stroke in enumerate(route.strokes):
        before = None
        for piece, (begin, end) in enumerate(stroke):
            path += f"M{_point(begin)}" if before is None else _bend(before, begin, is_across=route.is_across)
            if number == len(route.strokes) - 1 and piece == len(stroke) - 1:
                end = _before_point(end, is_across=route.is_across)
            path += f"L{_point(end)}" if begin != end else ""
            before = end
    return path


def _bend(begin: Point, end: Point, *, is_across: bool) -> str:
    if is_across:
        middle = (begin[0] + end[0]) / 2
        return f"C{_point((middle, begin[1]))} {_point((middle, end[1]))} {_point(end)}"
    middle = (begin[1] + end[1]) / 2
    return f"C{_point((begin[0], middle))} {_point((end[0], middle))} {_point(end)}"


def _before_point(end: Point, *, is_across: bool) -> Point:
    back = _ARROW_LENGTH - 1
    return (end[0] - back, end[1]) if is_across else (end[0], end[1] - back)


def _arrow(end: Point, *, is_across: bool) -> str:
    length, half = digits(-_ARROW_LENGTH), digits(-_ARROW_WIDTH / 2)
    if is_across:
        return f"M{_point(end)}l{length} {half}v{digits(_ARROW_WIDTH)}Z"
    return f"M{_point(end)}l{half} {length}h{digits(_ARROW_WIDTH)}Z"


def _legend(graph: Graph, width: float) -> tuple[list[Markup], float]:
    """The kinds of lines that there are, and how high the legend is."""
    used = [kind for kind in LINE_KINDS if any(line.kind == kind for line in graph.lines())]
    parts: list[Markup] = []
    x, y = 0.0, _LEGEND_LINE
    for kind in used:
        own = _SAMPLE + 8 + text_width(LINE_KINDS[kind].shown, TEXT_SIZE)
        if x and x + own > width:
            x, y = 0.0, y + _LEGEND_LINE
        end = (x + _SAMPLE, y - 5)
        parts.append(
            element(
                "g",
                element("path", class_="run", d=f"M{_point((x, y - 5))}L{_point(_before_point(end, is_across=True))}"),
                element("path", class_="point", d=_arrow(end, is_across=True)),
                element("text", LINE_KINDS[kind].shown, x=x + _SAMPLE + 8, y=y),
                class_=kind,
            )
        )
        x += own + _LEGEND_GAP
    return parts, y + 8 if used else 0.0


def _translate(x: float, y: float) -> str:
    return f"translate({digits(x)} {digits(y)})"


def _point(point: Point) -> str:
    return f"{digits(point[0])} {digits(point[1])}"
