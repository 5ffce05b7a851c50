"""What a graph is made of: boxes, boxes inside of boxes, and lines between those that stand beside one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

Shape = Literal[
    "task", "container", "loop", "flow", "handler", "file", "generated", "table", "transform", "rejects", "package"
]


@dataclass(frozen=True, slots=True)
class LineKind:
    """What a line means. `shown`: its name in a legend; it stands beside the line too where `is_named`."""

    shown: str
    is_named: bool = False


LINE_KINDS: Final[dict[str, LineKind]] = {
    "success": LineKind("when it has succeeded"),
    "failure": LineKind("failure", is_named=True),
    "completion": LineKind("completion", is_named=True),
    "event": LineKind("at an event"),
    "rows": LineKind("rows"),
    "lookup": LineKind("looked up", is_named=True),
    "rejects": LineKind("rejected rows"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """From one box to another one beside it, both by id. `label`: a condition, or the name of an output."""

    begin: str
    end: str
    kind: str
    label: str = ""

    @property
    def text(self) -> str:
        """What stands beside the line; empty where its kind says all."""
        kind = LINE_KINDS[self.kind]
        return " ".join(part for part in (kind.shown if kind.is_named else "", self.label) if part)


@dataclass(frozen=True, slots=True)
class Box:
    """A task, or a source, transform or destination of a data flow. `id` is unique in the graph; `word` says what it
    is, in one or two words; `facts` are short lines; `about` is prose. `mark`: why it does not run.

    `lines` connect the `boxes` inside, without circles.
    """

    id: str
    shape: Shape
    title: str
    word: str = ""
    facts: tuple[str, ...] = ()
    about: str = ""
    mark: str = ""
    boxes: tuple[Box, ...] = ()
    lines: tuple[Line, ...] = ()

    def within(self) -> Iterator[Box]:
        """The box and all inside it, outer ones first."""
        yield self
        for box in self.boxes:
            yield from box.within()

    def with_texts(self, change: Callable[[str], str]) -> Box:
        """The same box with other texts; ids stay."""
        return replace(
            self,
            title=change(self.title),
            facts=tuple(map(change, self.facts)),
            about=change(self.about),
            boxes=tuple(box.with_texts(change) for box in self.boxes),
            lines=tuple(replace(line, label=change(line.label)) for line in self.lines),
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """A package: a box with all its tasks."""

    root: Box

    def boxes(self) -> Iterator[Box]:
        """All boxes but the package itself, outer ones first."""
        for box in self.root.boxes:
            yield from box.within()

    def lines(self) -> Iterator[Line]:
        """All lines, in the order of their boxes."""
        for box in self.root.within():
            yield from box.lines

    def sentence(self) -> str:
        """How much there is, and what follows what: for those who do not see the picture."""
        names = {box.id: box.title for box in self.boxes()}
        follows = [
            f"{names[line.begin]} to {names[line.end]}{f' ({line.text})' if line.text else ''}" for line in self.lines()
        ]
        tasks = [box.title for box in self.root.boxes if box.shape != "handler"]
        text = f"Tasks: {', '.join(tasks)}."
        return f"{text} Lines: {'; '.join(follows)}." if follows else text

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self.root)
