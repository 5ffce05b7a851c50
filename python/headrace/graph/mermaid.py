"""A graph as text for Mermaid, which many sites and editors draw from a block of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headrace.errors import without_controls
from headrace.graph.parts import Box, Graph, Line
from headrace.graph.text_widths import cut, wrap

_INDENT: Final = "  "
# Longer texts would make boxes wider than a page.
_WIDTH: Final = 300.0
_SIZE: Final = 16.0
_MOST_LINES: Final = 3
_HEAD_WIDTH: Final = 420.0
_SHAPES: Final = {
    "task": ("[", "]"),
    "file": ("[/", "/]"),
    "generated": ("[/", "/]"),
    "table": ("[(", ")]"),
    "transform": ("{{", "}}"),
    "rejects": ("[\\", "\\]"),
}
# How lines of a kind are drawn, without and with a text.
_ARROWS: Final = {
    "success": ("-->", "--", "-->"),
    "failure": ("-.->", "-.", ".->"),
    "completion": ("-.->", "-.", ".->"),
    "event": ("-.-o", "-.", ".-o"),
    "rows": ("==>", "==", "==>"),
    "lookup": ("-.->", "-.", ".->"),
    "rejects": ("-.-x", "-.", ".-x"),
}
_COLOURS: Final = {
    "success": "#0a7a5c",
    "failure": "#b83b0c",
    "completion": "#76828d",
    "event": "#7d5fb5",
    "rows": "#2f7fc9",
    "lookup": "#2f7fc9",
    "rejects": "#a97400",
}
# What Mermaid takes for markup, for the end of a text, for an entity, for a comment or for a directive.
_MARKUP: Final = re.compile(r"[^\w\s.,:/=+*()$'!?-]")
# What stands between two pairs of dollars, as SQL quotes bodies of functions, is a formula there: one that cannot be
# read leaves no picture at all. `fa:fa-car` is an icon, a backslash and an n begin a line. Entities do not help: they
# are resolved before. What is put in has no width.
_JOINED: Final = re.compile(r"(?<=\$)(?=\$)|(?<=:)(?=fa-)|(?<=\\)(?=n)")
_WORD_JOINER: Final = "\u2060"


def to_mermaid(graph: Graph) -> str:
    """The text, with a line end behind it. Names of nodes are made: no name of a package can be a word of Mermaid."""
    names = {box.id: f"n{number}" for number, box in enumerate(graph.boxes(), 1)}
    lines = ["flowchart TB", f"{_INDENT}accTitle: {_plain(f'Package {graph.root.title}')}"]
    lines.append(f"{_INDENT}accDescr: {_plain(graph.sentence())}")
    for box in graph.root.boxes:
        lines += _box(box, names, 1)
    ordered = list(graph.lines())
    lines += [f"{_INDENT}{_line(line, names)}" for line in ordered]
    off = [names[box.id] for box in graph.boxes() if box.mark]
    if off:
        lines += [f"{_INDENT}classDef off stroke-dasharray:3 4,opacity:0.7", f"{_INDENT}class {','.join(off)} off"]
    for kind, colour in _COLOURS.items():
        numbers = [str(number) for number, line in enumerate(ordered) if line.kind == kind]
        if numbers:
            lines.append(f"{_INDENT}linkStyle {','.join(numbers)} stroke:{colour}")
    return "\n".join(lines) + "\n"


def _box(box: Box, names: dict[str, str], depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    if not box.boxes:
        begin, end = _SHAPES.get(box.shape, _SHAPES["task"])
        yield f"{indent}{names[box.id]}{begin}{_text(box)}{end}"
        return
    yield f"{indent}subgraph {names[box.id]}[{_head(box)}]"
    yield f"{indent}{_INDENT}direction {'LR' if box.shape == 'flow' else 'TB'}"
    for inner in box.boxes:
        yield from _box(inner, names, depth + 1)
    yield f"{indent}end"


def _line(line: Line, names: dict[str, str]) -> str:
    alone, begin, end = _ARROWS[line.kind]
    text = _escaped(line.text)
    arrow = f'{begin} "{text}" {end}' if text else alone
    return f"{names[line.begin]} {arrow} {names[line.end]}"


def _text(box: Box) -> str:
    parts = [box.title, box.mark, box.word, *box.facts]
    shown = [line for part in parts if part for line in wrap(part, _WIDTH, _SIZE, _MOST_LINES)]
    # Between two quotation marks something must stand.
    return f'"{"<br/>".join(map(_escaped, shown)) or " "}"'


def _head(box: Box) -> str:
    """The name of a box around others, on the one line that there is room for."""
    about = "; ".join(part for part in (box.mark, box.word, *box.facts) if part)
    return f'"{_escaped(cut(f"{box.title} - {about}", _HEAD_WIDTH, _SIZE))}"'


def _escaped(text: str) -> str:
    """A text between quotation marks."""
    apart = _JOINED.sub(_WORD_JOINER, _one_line(text))
    return _MARKUP.sub(lambda found: f"#{ord(found[0])};", apart)


def _plain(text: str) -> str:
    """A text up to the end of its line, where there are no entities."""
    return _MARKUP.sub("", _one_line(text).replace(";", ",")).strip()


def _one_line(text: str) -> str:
    return " ".join(without_controls(text).split())
