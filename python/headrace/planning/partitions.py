"""Which range partition each file becomes: from the keys of its first and last row.

Partition k reaches from the first key of its file to the first key of the next one, the last partition ends behind its
last key; if nothing can be behind that, it is open. Rows in between that do not fit are strays.
Files whose keys overlap have no partition of their own: their first keys are the bounds, and the ends are open.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.errors import TargetError
from headrace.model.key_values import KeyValue, key_type
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_questions import FileKeys
from headrace.planning.key_ranges import KeyRange, between
from headrace.planning.partitioning import RangeRule
from headrace.planning.parts import Part, range_of
from headrace.planning.plan import OutputColumn
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.wording import counted


@dataclass(frozen=True)
class FileDivision:
    """The partitions in the order of their keys. `overlap`: why no file has one of its own; None: each has."""

    parts: list[Part]
    overlap: str | None = None


@dataclass(frozen=True, order=True)
class _FileRange:
    """The keys of one file, the last one included."""

    first: KeyValue
    last: KeyValue
    file: int


@dataclass(frozen=True)
class _KeptRange:
    """The range of a partition that stays."""

    name: str
    keys: KeyRange


class FilePartitions:
    """The partitions of one source. `key` is the column, `table_name` the table for messages."""

    def __init__(self, source: SourceSnapshot, key: OutputColumn, table_name: str) -> None:
        kind = key_type(key.type)
        assert kind is not None  # key_column refuses others
        self._source = source
        self._key = key
        self._kind = kind
        self._table_name = table_name

    def plan(self, keys: Sequence[FileKeys], existing: Sequence[CatalogPartition], notes: list[str]) -> FileDivision:
        """The partitions of the files; none if no row has a key.

        `keys` are those of the source's files; `existing` are the partitions that stay. Raises TargetError if a file
        overlaps a partition that stays.
        """
        ranges = sorted(self._file_range(number, item) for number, item in enumerate(keys) if item.first is not None)
        self._note_empty([number for number, item in enumerate(keys) if item.first is None], notes)
        kept = [
            _KeptRange(partition.name, range_of(partition, self._kind, self._table_name))
            for partition in existing
            if isinstance(partition.rule, RangeRule)
        ]
        for earlier, later in itertools.pairwise(ranges):
            if later.first <= earlier.last:
                return FileDivision(
                    self._between_first_keys(ranges, kept), f"{self._shown(earlier)} and {self._shown(later)} overlap"
                )
        ends = [item.first for item in ranges[1:]]
        parts = [self._part(item, end, kept, notes) for item, end in itertools.zip_longest(ranges, ends)]
        if parts:
            # Lines of files without a row have to be accounted for. Should one be a row after all, it is a stray.
            used = {number for part in parts for number in part.slices}
            rest = {int(item["number"]) for item in self._source.slices} - used
            parts[0] = replace(parts[0], slices=tuple(sorted(rest.union(parts[0].slices))))
        return FileDivision(parts)

    def _between_first_keys(self, ranges: Sequence[_FileRange], kept: Sequence[_KeptRange]) -> list[Part]:
        """Ranges that each hold keys of a file, apart from the partitions that stay."""
        for item in ranges:
            self._refuse_overlap(item, self._closed(item), kept)
        obstacles = sorted((part.keys for part in kept), key=KeyRange.sort_key)
        pieces: list[KeyRange] = between(sorted({item.first for item in ranges})[1:])
        for obstacle in obstacles:
            pieces = [rest for piece in pieces for rest in _without(piece, obstacle)]
        hinted = [self._closed(item) for item in ranges]
        return [Part(piece.rule(self._kind)) for piece in pieces if any(piece.overlaps(keys) for keys in hinted)]

    def _part(self, item: _FileRange, following: KeyValue | None, kept: Sequence[_KeptRange], notes: list[str]) -> Part:
        keys = KeyRange(item.first, self._end(item, following, kept))
        if keys.end is None:
            last = self._kind.text(item.last)
            notes.append(f"the last partition has no upper bound: {last} is the largest value of {self._key.type}")
        self._refuse_overlap(item, keys, kept)
        slices = tuple(int(part["number"]) for part in self._source.slices if int(part["file"]) == item.file)
        return Part(keys.rule(self._kind), slices=slices)

    def _end(self, item: _FileRange, following: KeyValue | None, kept: Sequence[_KeptRange]) -> KeyValue | None:
        """At the next file, or at a partition that stays and begins before it; the last one behind its last key, or
        nowhere if that is the largest value of its type.
        """
        if following is not None:
            starts = [part.keys.minimum for part in kept if part.keys.minimum is not None]
            between_files = [start for start in starts if item.last < start < following]
            # The table may divide more finely than the source's type can say; that is refused as an overlap.
            return min([following, *(start for start in between_files if self._is_key(start))])
        return self._closed(item).end

    def _closed(self, item: _FileRange) -> KeyRange:
        """From the first to behind the last key of a file."""
        try:
            return KeyRange(item.first, self._kind.after(item.last))
        except OverflowError:
            return KeyRange(item.first, None)

    def _is_key(self, value: KeyValue) -> bool:
        return bool(self._kind.ceiling(value) == value)

    def _file_range(self, file: int, keys: FileKeys) -> _FileRange:
        """Rows may also stand in falling order."""
        ends = [self._kind.parse(text) for text in (keys.first, keys.last) if text is not None]
        return _FileRange(min(ends), max(ends), file)

    def _note_empty(self, files: Sequence[int], notes: list[str]) -> None:
        if files:
            first = os.path.basename(str(self._source.files[files[0]]["path"]))
            more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
            notes.append(f"{first}{more} without a key: no partition")

    def _refuse_overlap(self, item: _FileRange, keys: KeyRange, kept: Sequence[_KeptRange]) -> None:
        part = next((part for part in kept if part.keys.overlaps(keys)), None)
        if part is None:
            return
        minimum = "MINVALUE" if part.keys.minimum is None else self._kind.text(part.keys.minimum)
        end = "MAXVALUE" if part.keys.end is None else self._kind.text(part.keys.end)
        raise TargetError(
            f"a file overlaps a partition of table {self._table_name} that exists",
            found=f"{self._shown(item)}\npartition {part.name}: from {minimum} to before {end}",
            hint="Use `target: replace`, or leave the file out if its rows are loaded already.",
        )

    def _shown(self, item: _FileRange) -> str:
        return f"{self._path(item)}: {self._kind.text(item.first)} to {self._kind.text(item.last)}"

    def _path(self, item: _FileRange) -> str:
        return str(self._source.files[item.file]["path"])


def _without(keys: KeyRange, other: KeyRange) -> list[KeyRange]:
    """What is left of a range, below and above another one."""
    if not keys.overlaps(other):
        return [keys]
    below = KeyRange(keys.minimum, other.minimum)
    above = KeyRange(other.end, keys.end)
    has_below = other.minimum is not None and (keys.minimum is None or keys.minimum < other.minimum)
    has_above = other.end is not None and (keys.end is None or other.end < keys.end)
    return [*([below] if has_below else []), *([above] if has_above else [])]
