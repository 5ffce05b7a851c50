"""Random graphs: boxes in boxes, lines of all kinds, texts of any characters."""

from __future__ import annotations

from hypothesis import strategies as st

from headrace.graph.parts import LINE_KINDS, Box, Graph, Line, Shape
from tests.graph.pictures import HOSTILE

LEAVES: tuple[Shape, ...] = ("task", "file", "generated", "table", "transform", "rejects")
GROUPS: tuple[Shape, ...] = ("container", "loop", "flow", "handler")
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))


@st.composite
def boxes(draw: st.DrawFn, identity: str, depth: int) -> Box:
    """A box with what is in it."""
    title = draw(TEXTS)
    if depth == 0 or draw(st.booleans()):
        facts = tuple(draw(st.lists(TEXTS, max_size=3)))
        mark = draw(st.sampled_from(["", "", "DISABLED"]))
        return Box(identity, draw(st.sampled_from(LEAVES)), title, "word", facts, mark=mark)
    return draw(groups(identity, draw(st.sampled_from(GROUPS)), title, depth - 1, most=4))


@st.composite
def groups(draw: st.DrawFn, identity: str, shape: Shape, title: str, depth: int, most: int) -> Box:
    """A box around others. Lines lead to later ones: there are no circles."""
    count = draw(st.integers(1, most))
    inside = tuple(draw(boxes(f"{identity}.{number}", depth)) for number in range(count))
    ends = [(one, other) for one in range(count) for other in range(one + 1, count)]
    chosen = draw(st.lists(st.sampled_from(ends), max_size=8)) if ends else []
    kinds = draw(st.lists(st.sampled_from(sorted(LINE_KINDS)), min_size=len(chosen), max_size=len(chosen)))
    lines = tuple(
        Line(f"{identity}.{one}", f"{identity}.{other}", kind, draw(st.one_of(st.just(""), TEXTS)))
        for (one, other), kind in zip(chosen, kinds, strict=True)
    )
    return Box(identity, shape, title, "word", boxes=inside, lines=lines)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A package."""
    return Graph(draw(groups("r", "package", draw(TEXTS), depth=2, most=7)))
