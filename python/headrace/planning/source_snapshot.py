"""What a source of rows offers, looked at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class SourcePart:
    """One of several sources whose files stand one behind the other. `first_file`: of one without files that of the
    next one; `may_be_empty`: as in `SourceSnapshot`.
    """

    name: str
    first_file: int
    may_be_empty: bool


@dataclass(frozen=True)
class SourceSnapshot:
    """What a source offers, looked at once. `files` and `slices` have the members of a flow spec.

    `generate` is the flow spec's member of that name when the rows are generated instead of read. `may_be_empty`: a
    source without one data row is loaded too. `row_bytes`: about as long is a row of the files. `lookups`: what those
    of the data flow read, in the order of its transforms; `lookups_beside`: those on the ways to its other destinations
    alone. `pairs`: so many files have each of the first sources, those that are `joined`, and the k-th of each are a
    pair; None without a join. `parts`: the sources whose files stand one behind the other; empty for one source alone.
    `gathered`: what is read for a query over all rows, which gives the rows of this source.
    """

    name: str
    files: list[dict[str, Any]]
    slices: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    generate: dict[str, Any] | None = None
    may_be_empty: bool = True
    row_bytes: float = 1.0
    lookups: tuple[SourceSnapshot, ...] = ()
    lookups_beside: tuple[SourceSnapshot, ...] = ()
    pairs: int | None = None
    joined: int = 0
    parts: tuple[SourcePart, ...] = ()
    gathered: SourceSnapshot | None = None

    @property
    def first(self) -> SourceSnapshot:
        """What is read, in front of all queries over all rows."""
        return self if self.gathered is None else self.gathered.first

    @property
    def bytes_total(self) -> int:
        """Bytes of files to read, compressed or not; 0 when they are generated, or not known."""
        if self.gathered is not None:
            return self.gathered.bytes_total
        # A path that is read in several ways, as rows of a replay are, is one file.
        sizes = {} if self.streams else {str(file["path"]): int(file["size_bytes"]) for file in self.files}
        return sum(sizes.values())

    @property
    def paths(self) -> list[str]:
        """Paths of all files, as columns that are made show them."""
        return [str((file.get("origin") or file)["path"]) for file in self.files]

    @property
    def streams(self) -> list[str]:
        """Paths of what can be read once only: named pipes, and `-` for standard input."""
        own = [str(file["path"]) for file in self.files if file.get("stream")]
        return own if self.gathered is None else self.gathered.streams

    @property
    def slice_numbers(self) -> set[int]:
        """Those of all its slices."""
        return {int(item["number"]) for item in self.slices}

    @property
    def units(self) -> list[list[dict[str, Any]]]:
        """The slices that streams take together: each one alone, or those of pairs of files."""
        if self.pairs is None:
            return [[item] for item in self.slices]
        units: dict[int, list[dict[str, Any]]] = {}
        for item in self.slices:
            units.setdefault(self.unit_of(item), []).append(item)
        return [units[number] for number in sorted(units)]

    def unit_of(self, slice_: dict[str, Any]) -> int:
        """The same for all slices of a unit."""
        number, file = int(slice_["number"]), int(slice_["file"])
        if self.pairs is None:
            return number
        return file % self.pairs if file < self.joined * self.pairs else self.pairs + number

    @property
    def pair_word(self) -> str:
        """What the files are called that belong together."""
        return pair_word(self.joined)

    @property
    def groups(self) -> int:
        """How many units there are."""
        return len({self.unit_of(item) for item in self.slices})

    def part_of(self, file: int) -> int:
        """The number of the source that a file is of, from 0."""
        return sum(part.first_file <= file for part in self.parts) - 1

    def part(self, number: int) -> SourceSnapshot:
        """The files and slices of one of several sources, numbered as they are."""
        own = self.files_of(number)
        slices = [item for item in self.slices if item["file"] in own]
        return replace(
            self, name=self.parts[number].name, files=self.files[own.start : own.stop], slices=slices, parts=()
        )

    def of_slices(self, numbers: range) -> SourceSnapshot:
        """All files, and the slices of some of several sources."""
        if not self.parts or len(numbers) == len(self.parts):
            return self
        return replace(self, slices=[item for item in self.slices if self.part_of(item["file"]) in numbers])

    def without_apart(self, brought: int) -> SourceSnapshot:
        """As if there were only the first ones of several sources, so many as come together."""
        if len(self.parts) <= brought:
            return self
        behind = self.parts[brought].first_file
        slices = [item for item in self.slices if item["file"] < behind]
        return replace(self, files=self.files[:behind], slices=slices, parts=self.parts[:brought])

    def alone(self, number: int) -> SourceSnapshot:
        """One of several sources, as if there were no other one."""
        first, part = self.files_of(number).start, self.part(number)
        slices = [{**item, "file": item["file"] - first} for item in part.slices]
        return replace(part, slices=slices, pairs=None, may_be_empty=self.parts[number].may_be_empty)

    def files_of(self, number: int) -> range:
        """The numbers of the files of one of several sources."""
        behind = self.parts[number + 1].first_file if number + 1 < len(self.parts) else len(self.files)
        return range(self.parts[number].first_file, behind)

    @property
    def compressions(self) -> list[str]:
        """How files are compressed, as far as that is known: each way once."""
        found = dict.fromkeys(str(file.get("compression", "none")) for file in self.files)
        return [name for name in found if name not in ("none", "auto")]

    def decoding_bytes(self, streams: int) -> int:
        """Memory that decodes, or holds footers back, at the same time, at most."""
        last = {item["file"]: index for index, item in enumerate(self.slices)}
        needed = (
            _decoding_bytes(self.files[item["file"]], is_last=last[item["file"]] == index)
            for index, item in enumerate(self.slices)
        )
        return sum(sorted(needed, reverse=True)[:streams])

    def to_core(self) -> dict[str, Any]:
        """The `source` member of a flow spec."""
        source: dict[str, Any] = {"files": self.files, "slices": self.slices}
        if self.gathered is not None:
            return {**source, "gathered": True}
        return source if self.generate is None else {"generate": self.generate, **source}


def pair_word(sources: int) -> str:
    """What files of joined sources are called that belong together."""
    return "pair" if sources == 2 else "set"


def _decoding_bytes(file: dict[str, Any], *, is_last: bool) -> int:
    """What one stream needs of a slice of it beside its blocks; the last slice holds the footer."""
    held = (file.get("held") or {}) if is_last else {}
    return int(file.get("decoder_bytes", 0)) + int(held.get("memory_bytes", 0))
