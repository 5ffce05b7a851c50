"""Places boxes in rows so that lines lead down: a small layered layout (Sugiyama's steps), without any drawing.

1. Each box gets a row below those that it follows. Lines over several rows get a slot in each row between, and what is
   written beside a line gets a slot of its size in a row of its own: so nothing can lie on anything else.
2. Rows are ordered by the means of neighbours, and the order with the fewest crossings is kept.
3. Places within a row are as near to the neighbours as the gaps allow: least squares by pooling.
4. Lines run straight through rows and bend only in the gaps between them, where nothing else is.

Everything is done in order of the boxes as given: the same graph always gives the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

Size = tuple[float, float]
Point = tuple[float, float]

_SWEEPS: Final = 12
_ROW_GAP: Final = 40.0
_LABEL_GAP: Final = 28.0
# At its end a line runs straight for the length of its point.
_STRAIGHT: Final = 12.0
_GAP: Final = 28.0
_SLOT_WIDTH: Final = 6.0
_PORT_GAP: Final = 18.0


@dataclass(frozen=True, slots=True)
class Link:
    """A line to be placed. `label`: the size of what is written beside it."""

    begin: str
    end: str
    label: Size | None = None


Piece = tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a line runs: strokes, each of straight pieces with bends between them. What is written on the line stands
    between the first stroke and the second one; `label` is its upper left corner.
    """

    strokes: tuple[tuple[Piece, ...], ...]
    label: Point | None = None
    is_across: bool = False

    def moved(self, x: float, y: float) -> Route:
        """The same line elsewhere."""
        return self._changed(lambda point: (point[0] + x, point[1] + y), is_across=self.is_across)

    def turned(self) -> Route:
        """The same line, down instead of across, or the other way round."""
        return self._changed(lambda point: point[::-1], is_across=not self.is_across)

    def _changed(self, change: Callable[[Point], Point], *, is_across: bool) -> Route:
        strokes = tuple(tuple((change(begin), change(end)) for begin, end in stroke) for stroke in self.strokes)
        return Route(strokes, None if self.label is None else change(self.label), is_across)


@dataclass(frozen=True, slots=True)
class Layout:
    """The upper left corners of boxes, and the lines in the order in which they were given."""

    size: Size
    places: Mapping[str, Point]
    routes: tuple[Route, ...]


@dataclass(slots=True)
class _Slot:
    """A box, or a place that a line runs through. `middle`: of its width."""

    width: float
    height: float
    row: int
    name: str = ""
    middle: float = 0.0
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


def lay_out(sizes: Mapping[str, Size], links: Sequence[Link], *, across: bool = False, widest: float = 1_100) -> Layout:
    """Places for boxes of these sizes. `across`: rows become columns, lines lead to the right. Boxes that no line
    connects stand beside one another as far as `widest` allows, then below.
    """
    if across:
        turned = lay_out(
            {name: (height, width) for name, (width, height) in sizes.items()},
            [Link(link.begin, link.end, link.label and link.label[::-1]) for link in links],
            widest=0,
        )
        return Layout(
            turned.size[::-1],
            {name: place[::-1] for name, place in turned.places.items()},
            tuple(route.turned() for route in turned.routes),
        )
    return _shelves([_Rows(part, sizes, links).layout() for part in _parts(sizes, links)], links, widest)


def _parts(sizes: Mapping[str, Size], links: Sequence[Link]) -> list[list[str]]:
    """The boxes that lines connect with one another, in the order of the first of them."""
    part_of = {name: name for name in sizes}

    def first(name: str) -> str:
        while part_of[name] != name:
            name = part_of[name]
        return name

    order = {name: number for number, name in enumerate(sizes)}
    for link in links:
        one, other = sorted((first(link.begin), first(link.end)), key=order.__getitem__)
        part_of[other] = one
    parts: dict[str, list[str]] = {}
    for name in sizes:
        parts.setdefault(first(name), []).append(name)
    return list(parts.values())


def _shelves(layouts: Sequence[tuple[list[int], Layout]], links: Sequence[Link], widest: float) -> Layout:
    """Parts beside one another, and below where that would be too wide."""
    places: dict[str, Point] = {}
    routes: dict[int, Route] = {}
    x = y = height = width = 0.0
    for numbers, part in layouts:
        if x and x + part.size[0] > widest:
            x, y, height = 0.0, y + height + _GAP, 0.0
        places |= {name: (left + x, top + y) for name, (left, top) in part.places.items()}
        routes |= {number: route.moved(x, y) for number, route in zip(numbers, part.routes, strict=True)}
        height, width = max(height, part.size[1]), max(width, x + part.size[0])
        x += part.size[0] + _GAP
    return Layout((width, y + height), places, tuple(routes[number] for number in range(len(links))))


class _Rows:
    """Places the boxes of one connected part."""

    def __init__(self, names: Sequence[str], sizes: Mapping[str, Size], links: Sequence[Link]) -> None:
        self._names = names
        inside = set(names)
        self._numbers = [number for number, link in enumerate(links) if link.begin in inside]
        self._links = [links[number] for number in self._numbers]
        self._slots: list[_Slot] = []
        # The slots of each line, from its first box to its last one; and the one of its label.
        self._chains: list[list[int]] = []
        self._labels: list[int | None] = []
        ranks = self._ranks()
        box_of = {name: self._slot(*sizes[name], ranks[name], name) for name in names}
        self._chain(ranks, box_of)
        self._rows: list[list[int]] = [[] for _ in range(max(slot.row for slot in self._slots) + 1)]

    def layout(self) -> tuple[list[int], Layout]:
        """The numbers of its lines, and the layout."""
        self._first_order()
        self._order()
        tops, heights = self._heights()
        self._places()
        left = min(slot.middle - slot.width / 2 for slot in self._slots)
        for slot in self._slots:
            slot.middle -= left
        places = {
            slot.name: (slot.middle - slot.width / 2, tops[slot.row] + (heights[slot.row] - slot.height) / 2)
            for slot in self._slots
            if slot.name
        }
        size = (max(slot.middle + slot.width / 2 for slot in self._slots), tops[-1] + heights[-1])
        return self._numbers, Layout(size, places, self._routes(tops, heights))

    def _slot(self, width: float, height: float, row: int, name: str = "") -> int:
        self._slots.append(_Slot(width, height, row, name))
        return len(self._slots) - 1

    def _ranks(self) -> dict[str, int]:
        """A row for each box, below those that it follows; even numbers, and odd ones for labels where there are any.
        A box without anything above it stands just above what follows it.
        """
        ranks = dict.fromkeys(self._names, 0)
        for _ in self._names:
            changed = False
            for link in self._links:
                if ranks[link.end] <= ranks[link.begin]:
                    ranks[link.end] = ranks[link.begin] + 1
                    changed = True
            if not changed:
                break
        begins = {link.end for link in self._links}
        for name in self._names:
            nexts = [ranks[link.end] for link in self._links if link.begin == name]
            if name not in begins and nexts:
                ranks[name] = min(nexts) - 1
        labelled = {ranks[link.end] for link in self._links if link.label is not None}
        rows: dict[int, int] = {}
        row = 0
        for rank in range(max(ranks.values()) + 1):
            row += rank in labelled
            rows[rank] = row
            row += 1
        return {name: rows[rank] for name, rank in ranks.items()}

    def _chain(self, ranks: Mapping[str, int], box_of: Mapping[str, int]) -> None:
        box_rows = set(ranks.values())
        for link in self._links:
            chain = [box_of[link.begin]]
            label = None
            for row in range(ranks[link.begin] + 1, ranks[link.end]):
                # Beside its end: there a line is alone with its label, and what is near is what it leads to.
                if link.label is not None and row == ranks[link.end] - 1 and row not in box_rows:
                    label = self._slot(*link.label, row)
                    chain.append(label)
                else:
                    chain.append(self._slot(_SLOT_WIDTH, 0, row))
            chain.append(box_of[link.end])
            for one, other in pairwise(chain):
                self._slots[one].below.append(other)
                self._slots[other].above.append(one)
            self._chains.append(chain)
            self._labels.append(label)

    def _first_order(self) -> None:
        """Boxes as they are given, each followed by what is below it."""
        seen: set[int] = set()
        for number, slot in enumerate(self._slots):
            if slot.above:
                continue
            waiting = [number]
            while waiting:
                own = waiting.pop()
                if own in seen:
                    continue
                seen.add(own)
                self._rows[self._slots[own].row].append(own)
                waiting += reversed(self._slots[own].below)

    def _order(self) -> None:
        best, fewest = [list(row) for row in self._rows], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            rows = self._rows[1:] if down else self._rows[-2::-1]
            for row in rows:
                place = {number: spot for each in self._rows for spot, number in enumerate(each)}
                row.sort(key=lambda number: self._mean(number, place, down=down))
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self._rows], crossings
        self._rows = best

    def _mean(self, number: int, place: Mapping[int, int], *, down: bool) -> float:
        near = self._slots[number].above if down else self._slots[number].below
        return sum(place[other] for other in near) / len(near) if near else place[number]

    def _crossings(self) -> int:
        crossings = 0
        for row in self._rows[:-1]:
            place = {number: spot for each in self._rows for spot, number in enumerate(each)}
            ends = [
                place[other] for number in row for other in sorted(self._slots[number].below, key=place.__getitem__)
            ]
            crossings += sum(one > other for number, one in enumerate(ends) for other in ends[number + 1 :])
        return crossings

    def _heights(self) -> tuple[list[float], list[float]]:
        tops: list[float] = []
        heights: list[float] = []
        y, was_label = 0.0, False
        for row in self._rows:
            height = max((self._slots[number].height for number in row), default=0.0)
            is_label = not any(self._slots[number].name for number in row)
            if tops:
                y += _LABEL_GAP if is_label or was_label else _ROW_GAP
            was_label = is_label
            tops.append(y)
            heights.append(height)
            y += height
        return tops, heights

    def _places(self) -> None:
        for row in self._rows:
            _spread([0.0] * len(row), [1.0] * len(row), [self._slots[number] for number in row])
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for row in self._rows if down else self._rows[::-1]:
                slots = [self._slots[number] for number in row]
                wished, weights = [], []
                for slot in slots:
                    near = (slot.above or slot.below) if down else (slot.below or slot.above)
                    middles = [self._slots[other].middle for other in near] or [slot.middle]
                    wished.append(sum(middles) / len(middles))
                    # Lines that are long run straight rather than boxes stand in the middle.
                    weights.append(1.0 if slot.name else 4.0)
                _spread(wished, weights, slots)

    def _routes(self, tops: Sequence[float], heights: Sequence[float]) -> tuple[Route, ...]:
        leaving = self._ports(0)
        arriving = self._ports(-1)
        routes = []
        for number, chain in enumerate(self._chains):
            strokes: list[list[Piece]] = [[]]
            where = None
            for spot, own in enumerate(chain):
                slot = self._slots[own]
                top, bottom = tops[slot.row], tops[slot.row] + heights[slot.row]
                inset = (heights[slot.row] - slot.height) / 2
                x = leaving[number] if spot == 0 else arriving[number] if spot == len(chain) - 1 else slot.middle
                if spot == 0:
                    strokes[-1].append(((x, bottom - inset), (x, bottom)))
                elif spot == len(chain) - 1:
                    strokes[-1].append(((x, top - _STRAIGHT), (x, top + inset)))
                elif own == self._labels[number]:
                    where = (x - slot.width / 2, top + inset)
                    strokes[-1].append(((x, top), (x, top + inset)))
                    strokes.append([((x, bottom - inset), (x, bottom))])
                else:
                    strokes[-1].append(((x, top), (x, bottom)))
            routes.append(Route(tuple(map(tuple, strokes)), where))
        return tuple(routes)

    def _ports(self, end: int) -> list[float]:
        """Where each line leaves its first box (end 0) or arrives at its last one (end -1), in the order in which they
        stand beside one another.
        """
        by_box: dict[int, list[int]] = {}
        for number, chain in enumerate(self._chains):
            by_box.setdefault(chain[end], []).append(number)
        ports = [0.0] * len(self._chains)
        for box, numbers in by_box.items():
            slot = self._slots[box]
            inner = 1 if end == 0 else -2
            numbers.sort(key=lambda number: (self._slots[self._chains[number][inner]].middle, number))
            gap = min(_PORT_GAP, slot.width * 0.8 / len(numbers))
            for spot, number in enumerate(numbers):
                ports[number] = slot.middle + (spot - (len(numbers) - 1) / 2) * gap
        return ports


def _spread(wished: Sequence[float], weights: Sequence[float], slots: Sequence[_Slot]) -> None:
    """Sets the middles of a row: in its order, not nearer than the gaps allow, and as near to the wishes as can be.

    Behind subtracting the least distances this is isotonic regression: neighbours in the wrong order are pooled.
    """
    offsets, offset = [], 0.0
    for number, slot in enumerate(slots):
        if number:
            before = slots[number - 1]
            gap = _GAP if slot.name and before.name else _GAP / 2
            offset += (before.width + slot.width) / 2 + gap
        offsets.append(offset)
    pools: list[list[float]] = []  # weight, weighted sum, members
    for number, wish in enumerate(wished):
        pools.append([weights[number], weights[number] * (wish - offsets[number]), 1])
        while len(pools) > 1 and pools[-2][1] / pools[-2][0] > pools[-1][1] / pools[-1][0]:
            weight, total, members = pools.pop()
            pools[-1] = [pools[-1][0] + weight, pools[-1][1] + total, pools[-1][2] + members]
    number = 0
    for weight, total, members in pools:
        for _ in range(int(members)):
            slots[number].middle = total / weight + offsets[number]
            number += 1
