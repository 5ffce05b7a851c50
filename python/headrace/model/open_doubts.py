"""Doubts that `infer` and `init` wrote into a layout, and that nobody has settled: settling one is deleting its line.

A run repeats those that decide how the whole file is read: encoding, header, delimiter, the shape of rows, and words
that mean null. Doubts about the type of a column show themselves as rejects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.model.yaml_reader import Document

# Doubts about a column are indented. The words are those of headrace/infer/decide.py.
_OF_FILE: Final = re.compile(r"# doubt: (.+)")
_NULL_WORDS: Final = re.compile(r"\s+# doubt: (.* taken for null)")


@dataclass(frozen=True, slots=True)
class OpenDoubt:
    """`file`: the layout as it is shown; `line`: from 1."""

    file: str
    line: int
    text: str

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {"file": self.file, "line": self.line, "text": self.text}


def open_doubts(document: Document) -> Iterator[OpenDoubt]:
    """The open doubts of a layout file, in the order of its lines."""
    for number, line in enumerate(document.content.decode("utf-8", "replace").splitlines(), start=1):
        if found := _OF_FILE.fullmatch(line) or _NULL_WORDS.fullmatch(line):
            yield OpenDoubt(document.file, number, found[1].removesuffix(". Instead:"))
