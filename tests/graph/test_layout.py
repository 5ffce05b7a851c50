"""Whatever the graph: nothing lies on anything else, and everything is within what is around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.graph import Graph
from headrace.graph.layered import Layout, Link, lay_out
from headrace.graph.parts import Box
from headrace.graph.placing import HEAD_SIZE, LABEL_HEIGHT, TEXT_SIZE, TITLE_SIZE, Placed, place
from headrace.graph.text_widths import cut, text_width, wrap
from tests.graph.pictures import PACKAGES, graph, later_graph
from tests.graph.random_graphs import TEXTS, graphs

Area = tuple[float, float, float, float]  # left, top, right, bottom
_ROUNDING = 0.01
_PARTS_OF_BEND = 8


def overlap(one: Area, other: Area) -> bool:
    return (
        one[0] < other[2] - _ROUNDING
        and other[0] < one[2] - _ROUNDING
        and one[1] < other[3] - _ROUNDING
        and other[1] < one[3] - _ROUNDING
    )


def within(inner: Area, outer: Area) -> bool:
    return (
        inner[0] >= outer[0] - _ROUNDING
        and inner[1] >= outer[1] - _ROUNDING
        and inner[2] <= outer[2] + _ROUNDING
        and inner[3] <= outer[3] + _ROUNDING
    )


def points(layout: Layout, number: int) -> Iterator[tuple[float, float]]:
    """Points on a line, close to one another."""
    route = layout.routes[number]
    for stroke in route.strokes:
        for before, after in pairwise(stroke):
            (x0, y0), (x1, y1) = before[1], after[0]
            for part in range(1, _PARTS_OF_BEND):
                t = part / _PARTS_OF_BEND
                ease = 3 * t**2 - 2 * t**3
                along = 1.5 * t * (1 - t) + t**3
                if route.is_across:
                    yield x0 + (x1 - x0) * along, y0 + (y1 - y0) * ease
                else:
                    yield x0 + (x1 - x0) * ease, y0 + (y1 - y0) * along
        for begin, end in stroke:
            for part in range(_PARTS_OF_BEND + 1):
                t = part / _PARTS_OF_BEND
                yield begin[0] + (end[0] - begin[0]) * t, begin[1] + (end[1] - begin[1]) * t


@st.composite
def laid_out(draw: st.DrawFn) -> tuple[Mapping[str, tuple[float, float]], list[Link], Layout]:
    count = draw(st.integers(1, 12))
    size = st.tuples(st.floats(20, 400), st.floats(20, 300))
    sizes = {f"b{number}": draw(size) for number in range(count)}
    ends = [(one, other) for one in range(count) for other in range(one + 1, count)]
    chosen = draw(st.lists(st.sampled_from(ends), max_size=20)) if ends else []
    label = st.one_of(st.none(), st.tuples(st.floats(20, 240), st.just(20.0)))
    links = [Link(f"b{one}", f"b{other}", draw(label)) for one, other in chosen]
    return sizes, links, lay_out(sizes, links, across=draw(st.booleans()))


@settings(max_examples=60, deadline=None)
@given(laid_out())
def test_a_layout_keeps_everything_apart(
    drawn: tuple[Mapping[str, tuple[float, float]], list[Link], Layout],
) -> None:
    sizes, links, layout = drawn
    boxes = {name: (x, y, x + sizes[name][0], y + sizes[name][1]) for name, (x, y) in layout.places.items()}
    assert set(boxes) == set(sizes)
    labels = []
    for link, route in zip(links, layout.routes, strict=True):
        assert (link.label is None) == (route.label is None)
        if link.label is not None and route.label is not None:
            x, y = route.label
            labels.append((x, y, x + link.label[0], y + link.label[1]))
    whole = (0.0, 0.0, *layout.size)
    areas = [*boxes.values(), *labels]
    assert all(within(area, whole) for area in areas)
    assert not any(overlap(one, other) for one, other in combinations(areas, 2))
    for number, link in enumerate(links):
        route = layout.routes[number]
        first, last = route.strokes[0][0][0], route.strokes[-1][-1][1]
        assert within((*first, *first), boxes[link.begin])
        assert within((*last, *last), boxes[link.end])
        for x, y in points(layout, number):
            own = (x, y, x, y)
            inside = [
                name for name, area in boxes.items() if area[0] + 1 < x < area[2] - 1 and area[1] + 1 < y < area[3] - 1
            ]
            assert not inside, f"{link} runs through {inside} at {own}"
            assert within(own, whole)
            assert not any(area[0] + 1 < x < area[2] - 1 and area[1] + 1 < y < area[3] - 1 for area in labels)


@settings(deadline=None)
@given(laid_out())
def test_a_layout_is_the_same_each_time(
    drawn: tuple[Mapping[str, tuple[float, float]], list[Link], Layout],
) -> None:
    sizes, links, _ = drawn
    assert lay_out(sizes, links) == lay_out(sizes, links)
    across = lay_out(sizes, links, across=True)
    assert all(place[0] <= across.places[link.end][0] for link in links for place in [across.places[link.begin]])


def check(drawn: Graph) -> None:
    root = place(drawn)
    boxes = [(placed, area(placed, x, y)) for placed, x, y in root.within()]
    assert [placed.box.id for placed, _ in boxes[1:]] == [box.id for box in drawn.boxes()]
    for placed, around in boxes:
        inside = [area(inner, around[0] + inner.x, around[1] + inner.y) for inner in placed.inside]
        texts = [text_area(placed, index, around) for index in range(len(placed.texts))]
        labels = [
            (
                around[0] + x,
                around[1] + y,
                around[0] + x + text_width(label, TEXT_SIZE) + 8,
                around[1] + y + LABEL_HEIGHT,
            )
            for route, label in zip(placed.routes, placed.labels, strict=True)
            if route.label is not None
            for x, y in [route.label]
        ]
        everything = [*inside, *texts, *labels]
        assert all(within(each, around) for each in everything), placed.box
        assert not any(overlap(one, other) for one, other in combinations(everything, 2)), placed.box


def area(placed: Placed, x: float, y: float) -> Area:
    return (x, y, x + placed.width, y + placed.height)


def text_area(placed: Placed, index: int, around: Area) -> Area:
    text = placed.texts[index]
    size = {"head": HEAD_SIZE, "title": TITLE_SIZE}.get(text.role, TEXT_SIZE)
    width = text_width(text.text, size, bold=text.role in ("head", "title", "mark"))
    left, base = around[0] + text.x, around[1] + text.y
    return (left, base - size * 0.75, left + width, base + size * 0.25)


@settings(deadline=None)
@given(graphs())
def test_nothing_of_a_picture_lies_on_anything_else(drawn: Graph) -> None:
    check(drawn)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_examples(name: str) -> None:
    check(graph(name))


def test_a_flow_of_a_later_version() -> None:
    check(later_graph())


def test_many_tasks_side_by_side() -> None:
    """Boxes without lines stand in several rows: no picture is as wide as its package is long."""
    boxes = tuple(Box(f"b{number}", "task", f"task {number}") for number in range(200))
    root = place(Graph(Box("", "package", "wide", boxes=boxes)))
    assert root.width < 1_200
    check(Graph(Box("", "package", "wide", boxes=boxes)))


@settings(deadline=None)
@given(TEXTS, st.floats(40, 400), st.integers(1, 4))
def test_wrapped_texts_fit(text: str, width: float, most: int) -> None:
    lines = wrap(text, width, TEXT_SIZE, most)
    assert len(lines) <= most
    assert all(text_width(line, TEXT_SIZE) <= width for line in lines)
    if not any(line.endswith("…") for line in lines):
        assert "".join("".join(lines).split()) == "".join(text.split())
    assert text_width(cut(text, width, TEXT_SIZE), TEXT_SIZE) <= width
