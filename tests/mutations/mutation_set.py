"""The set of mutations: how it is stored, and where its texts are in sources that have changed since."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutations.sites import Site

SET = Path(__file__).parent / "set.json"


@dataclass(frozen=True)
class Mutation:
    """One mutation. Lines begin at 1, and columns, in bytes, at 0.

    `before` and `after` are the rest of the lines that it is in. The file had these lines `occurrences` times; the
    mutation is in those with the number `occurrence`, from 0. `statement`: it leaves the original out.
    """

    number: int
    area: str
    file: str
    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    original: str
    after: str
    occurrence: int
    occurrences: int
    mutated: str
    statement: bool

    @classmethod
    def from_site(cls, number: int, area: str, file: str, source: bytes, site: Site) -> Mutation:
        """The mutation of a site in a source."""
        line, column = _place(source, site.start)
        end_line, end_column = _place(source, site.end)
        ends = source.find(b"\n", site.end)
        ends = ends if ends >= 0 else len(source)
        same = _places(source, source[site.start - column : ends])
        return cls(
            number=number,
            area=area,
            file=file,
            kind=site.kind,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            before=source[site.start - column : site.start].decode(),
            original=source[site.start : site.end].decode(),
            after=source[site.end : ends].decode(),
            occurrence=same.index(site.start - column),
            occurrences=len(same),
            mutated=site.mutated,
            statement=site.statement,
        )

    def locate(self, source: bytes) -> int | None:
        """The byte at which the original text begins, wherever its lines are now; None if they are gone.

        They are also gone if there are more or fewer of the same lines than there were.
        """
        lines = f"{self.before}{self.original}{self.after}".encode()
        same = _places(source, lines)
        if len(same) == self.occurrences:
            return same[self.occurrence] + self.column
        # Indentation may have changed.
        indent = len(lines) - len(lines.lstrip())
        same = [] if same else _places(source, lines.strip())
        return same[self.occurrence] + self.column - indent if len(same) == self.occurrences else None


def load(path: Path = SET) -> list[Mutation]:
    """The committed set."""
    return [Mutation(**item) for item in json.loads(path.read_text(encoding="utf-8"))["mutations"]]


def save(mutations: Sequence[Mutation], seed: int, path: Path = SET) -> None:
    """Writes a set that was drawn with this seed."""
    document = {"seed": seed, "mutations": [asdict(mutation) for mutation in mutations]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def splice(source: bytes, mutations: Iterable[tuple[int, Mutation]]) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """Puts mutations behind the run-time switch. Each comes with the byte at which its original begins.

    Returns the new source, and for each number the span of bytes in it.
    """
    parts, end, length = list[bytes](), 0, 0
    spans: dict[int, tuple[int, int]] = {}
    switched: Callable[[Mutation], str]
    for start, mutation in sorted(mutations, key=lambda item: item[0]):
        assert start >= end, f"mutation {mutation.number} overlaps another one"
        switched = _in_rust if mutation.file.endswith(".rs") else _in_python
        text = switched(mutation).encode()
        parts += [source[end:start], text]
        length += start - end
        spans[mutation.number] = (length, length + len(text))
        length += len(text)
        end = start + len(mutation.original.encode())
    return b"".join([*parts, source[end:]]), spans


def _in_rust(mutation: Mutation) -> str:
    active = f"headrace_mutants::active({mutation.number})"
    if mutation.statement:
        return f"if !{active} {{ {mutation.original} }}"
    return f"(if {active} {{ {mutation.mutated} }} else {{ {mutation.original} }})"


def _in_python(mutation: Mutation) -> str:
    active = f"__import__('headrace_mutants').active({mutation.number})"
    return f"(({mutation.mutated}) if {active} else ({mutation.original}))"


def _places(source: bytes, lines: bytes) -> list[int]:
    return [match.start() for match in re.finditer(rb"(?<![^\s])" + re.escape(lines) + rb"(?=\r?\n|\Z)", source)]


def _place(source: bytes, at: int) -> tuple[int, int]:
    return source.count(b"\n", 0, at) + 1, at - (source.rfind(b"\n", 0, at) + 1)
