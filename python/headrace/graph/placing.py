"""The places of everything in a drawn graph: boxes around what is in them, texts wrapped to their boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from headrace.graph.layered import Layout, Link, Route, lay_out
from headrace.graph.parts import Box, Graph, Line
from headrace.graph.text_widths import cut, text_width, wrap

TITLE_SIZE: Final = 14.0
TEXT_SIZE: Final = 13.0
LINE_HEIGHT: Final = 18.0
HEAD_SIZE: Final = 20.0
LABEL_HEIGHT: Final = 20.0
# Of a table the height of the bow at its upper end, of a transform the width of its tips, of a file that of its corner.
BOW: Final = 8.0
TIP: Final = 12.0
CORNER: Final = 12.0
# How far the second sheet of a loop looks out.
SHEET: Final = 6.0
_SIDE: Final = 14.0
_TOP: Final = 11.0
# From the edge of a box to what is inside of it.
INSET: Final = 20.0
_TEXT_WIDTH: Final = 230.0
_LABEL_WIDTH: Final = 240.0
_LEAST_WIDTH: Final = 110.0
_LEAST_HEAD: Final = 300.0
_WIDEST: Final = 1_080.0
_WIDEST_FLOW: Final = 800.0
_TITLE_LINES: Final = 2
_FACT_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `x`, `y` of its base line, from the upper left corner of its box. `role`: title, word, fact,
    mark, about or head.
    """

    text: str
    role: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A box at `x`, `y` of the box around it. `routes` and `labels` belong to its lines."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    texts: tuple[Text, ...]
    inside: tuple[Placed, ...] = ()
    routes: tuple[Route, ...] = ()
    labels: tuple[str, ...] = ()

    def within(self, x: float = 0.0, y: float = 0.0) -> Iterator[tuple[Placed, float, float]]:
        """The box and all inside it, with places from the corner of the picture."""
        yield self, x + self.x, y + self.y
        for inner in self.inside:
            yield from inner.within(x + self.x, y + self.y)


def place(graph: Graph) -> Placed:
    """The picture without its legend; its size is that of the package."""
    return _placed(graph.root)


def _placed(box: Box) -> Placed:
    return _around(box) if box.boxes else _leaf(box)


def _leaf(box: Box) -> Placed:
    written = list(_lines(box, _TEXT_WIDTH))
    left = _SIDE + (TIP if box.shape == "transform" else 0)
    top = _TOP + (BOW if box.shape == "table" else 0)
    corner = CORNER if box.shape in ("file", "generated", "rejects") else 0
    texts = tuple(_stacked(written, left, top))
    width = max([_LEAST_WIDTH, *map(_width, texts)]) + 2 * left + corner
    height = top + sum(map(_height, texts)) + _TOP + (BOW if box.shape == "table" else 0)
    return Placed(box, 0, 0, width, height, texts)


def _around(box: Box) -> Placed:
    inside = [_placed(inner) for inner in box.boxes]
    labels = tuple(cut(line.text, _LABEL_WIDTH, TEXT_SIZE) for line in box.lines)
    layout = _layout(box, inside, labels)
    wide = max(_LEAST_HEAD, layout.size[0])
    written = list(_lines(box, wide))
    texts = tuple(_stacked(written, INSET, _TOP))
    head = _TOP + sum(map(_height, texts)) + _TOP
    sheet = SHEET if box.shape == "loop" else 0
    width = max([layout.size[0], *map(_width, texts)]) + 2 * INSET + sheet
    height = head + layout.size[1] + INSET + sheet
    # What is inside stands in the middle.
    left = (width - sheet - layout.size[0]) / 2
    return Placed(
        box,
        0,
        0,
        width,
        height,
        texts,
        tuple(_at(inner, layout.places[inner.box.id], left, head) for inner in inside),
        tuple(route.moved(left, head) for route in layout.routes),
        labels,
    )


def _layout(box: Box, inside: list[Placed], labels: tuple[str, ...]) -> Layout:
    sizes = {inner.box.id: (inner.width, inner.height) for inner in inside}
    links = [_link(line, label) for line, label in zip(box.lines, labels, strict=True)]
    if box.shape == "flow":
        across = lay_out(sizes, links, across=True)
        if across.size[0] <= _WIDEST_FLOW:
            return across
    return lay_out(sizes, links, widest=_WIDEST)


def _link(line: Line, label: str) -> Link:
    return Link(line.begin, line.end, (text_width(label, TEXT_SIZE) + 8, LABEL_HEIGHT) if label else None)


def _lines(box: Box, width: float) -> Iterator[tuple[str, str]]:
    """The texts of a box, line by line, and what each is."""
    size = HEAD_SIZE if box.shape == "package" else TITLE_SIZE
    role = "head" if box.shape == "package" else "title"
    for line in wrap(box.title, width, size, _TITLE_LINES, bold=True):
        yield line, role
    if box.shape == "package":
        for line in wrap(box.about, width, TEXT_SIZE, _FACT_LINES):
            yield line, "about"
        return
    if box.mark:
        yield box.mark, "mark"
    if box.word:
        yield box.word, "word"
    for fact in box.facts:
        for line in wrap(fact, width, TEXT_SIZE, _FACT_LINES):
            yield line, "fact"


def _stacked(lines: list[tuple[str, str]], left: float, top: float) -> Iterator[Text]:
    for text, role in lines:
        own = Text(text, role, left, top)
        top += _height(own)
        yield replace(own, y=top - 5)


def _height(text: Text) -> float:
    return LINE_HEIGHT + (HEAD_SIZE - TITLE_SIZE if text.role == "head" else 0)


def _width(text: Text) -> float:
    size = {"head": HEAD_SIZE, "title": TITLE_SIZE}.get(text.role, TEXT_SIZE)
    return text_width(text.text, size, bold=text.role in ("head", "title", "mark"))


def _at(placed: Placed, place: tuple[float, float], x: float, y: float) -> Placed:
    return replace(placed, x=place[0] + x, y=place[1] + y)
