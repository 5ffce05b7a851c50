"""A script of SQL, and where its characters stand: in a file of its own, or somewhere in a package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.model.sql_text import mark_in
from headrace.model.yaml_nodes import Mark
from headrace.model.yaml_reader import Document, DocumentPath


@dataclass(frozen=True, slots=True)
class Script:
    """`file`: as messages show it; `mark` gives the place of a character in that file."""

    text: str
    file: str
    mark: Callable[[int], Mark] = field(repr=False, compare=False)

    def at(self, offset: int) -> dict[str, object]:
        """The place of a character, as errors have it."""
        mark = self.mark(offset)
        return {"file": self.file, "line": mark.line, "column": mark.column}


def script_of_file(content: bytes, document: Document, file: str) -> Script:
    """A script file; `file`: its name in the package. Raises UnicodeDecodeError."""
    text = content.decode("utf-8-sig")
    return Script(text, shown_file(document, file), lambda offset: mark_in(text, offset))


def shown_file(document: Document, file: str) -> str:
    """A file that a package names relative to itself, as messages show it."""
    return str(Path(document.file).parent / file)


def script_of_package(text: str, document: Document, path: DocumentPath) -> Script:
    """SQL that stands at `path` of a package."""
    first = document.value_mark(path)
    lines = _written_lines(text, document.content.decode("utf-8-sig").splitlines(), first)

    def mark(offset: int) -> Mark:
        place = mark_in(text, offset)
        if place.line > len(lines):
            return first
        written = lines[place.line - 1]
        return Mark(written.line, written.column + place.column - 1)

    return Script(text, document.file, mark)


def _written_lines(text: str, source: list[str], first: Mark) -> list[Mark]:
    """Where each line of the text begins, as far as it is written there as it is read; other lines are left out, and
    those behind them.
    """
    written = source[first.line - 1][first.column - 1 :] if first.line <= len(source) else ""
    lines = text.split("\n")
    if not written.startswith("|"):
        quote = 1 if written[:1] in ("'", '"') else 0
        begins = len(lines) == 1 and written[quote:].startswith(lines[0])
        return [Mark(first.line, first.column + quote)] if begins else []
    below = source[first.line : first.line + len(lines)]
    indentation = next(
        (len(line) - len(own) for line, own in zip(below, lines, strict=False) if own.strip() and line.endswith(own)), 0
    )
    marks = []
    for number, (line, own) in enumerate(zip(below, lines, strict=False)):
        if line[indentation:] != own:
            break
        marks.append(Mark(first.line + 1 + number, indentation + 1))
    return marks
