"""The fenced blocks of the documents, and what the comment above one says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_MARK = re.compile(r"<!-- (?P<kind>file|exit|edit): (?P<value>\S+)(?: (?P<encoding>\S+))? -->")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file`: write it under this name. `edit`: a difference to this file, which has `encoding`.

    `exit_code`: how its commands end. `line`: that of the page where its text begins, from 0.
    """

    language: str
    text: str
    line: int
    file: str | None = None
    edit: str | None = None
    encoding: str = "utf-8"
    exit_code: int = 0


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, with the comment line above each."""
    mark: re.Match[str] | None = None
    language, lines = None, list[str]()
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines()):
        if line.startswith("```") and language is None:
            language, lines = line[3:].strip(), []
        elif line.startswith("```"):
            assert language is not None
            own = {} if mark is None else {mark["kind"]: mark["value"]}
            yield Block(
                language,
                "\n".join(lines) + "\n",
                number - len(lines),
                file=own.get("file"),
                edit=own.get("edit"),
                encoding=(mark and mark["encoding"]) or "utf-8",
                exit_code=int(own.get("exit", 0)),
            )
            language, mark = None, None
        elif language is not None:
            lines.append(line)
        elif line.strip():
            mark = _MARK.fullmatch(line.strip())
