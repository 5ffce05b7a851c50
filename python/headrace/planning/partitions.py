"""Which range partition each file becomes: from the keys of its first and last row.

Partition k reaches from the first key of its file to the first key of the next one, the last partition ends behind its
last key; if nothing can be behind that, it is open. Whether every row in between fits is known only when it is loaded;
what can be known before is refused here.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.errors import TargetError
from headrace.planning.catalog import CatalogPartition
from headrace.planning.key_values import KeyValue, key_type
from headrace.planning.plan import KeyBounds, OutputColumn, SourceSnapshot
from headrace.planning.wording import counted


@dataclass(frozen=True)
class FileKeys:
    """Canonical text of the keys in a file's first and last row; None if no row of the file conforms to the layout."""

    first: str | None
    last: str | None


@dataclass(frozen=True)
class FilePartition:
    """The partition of one file: its bounds, and the numbers of the slices whose rows go there."""

    slices: tuple[int, ...]
    bounds: KeyBounds


@dataclass(frozen=True, order=True)
class _FileRange:
    """The keys of one file, the last one included."""

    first: KeyValue
    last: KeyValue
    file: int


@dataclass(frozen=True)
class _KeptRange:
    """The range of a partition that stays; None is an open end."""

    name: str
    minimum: KeyValue | None
    end: KeyValue | None


class FilePartitions:
    """The partitions of one source. `key` is the column, `table_name` the table for messages."""

    def __init__(self, source: SourceSnapshot, key: OutputColumn, table_name: str) -> None:
        kind = key_type(key.type)
        assert kind is not None  # key_column refuses others
        self._source = source
        self._key = key
        self._kind = kind
        self._table_name = table_name

    def plan(
        self, keys: Sequence[FileKeys], existing: Sequence[CatalogPartition], notes: list[str]
    ) -> list[FilePartition]:
        """The partitions of the files in the order of their keys; none if no file has a row.

        `keys` are those of the source's files; `existing` are the partitions that stay. Raises TargetError if a file
        overlaps another one, or a partition that stays.
        """
        ranges = sorted(self._file_range(number, item) for number, item in enumerate(keys) if item.first is not None)
        self._note_empty([number for number, item in enumerate(keys) if item.first is None], notes)
        for earlier, later in itertools.pairwise(ranges):
            if later.first <= earlier.last:
                raise self._overlap(earlier, later)
        kept = [self._kept_range(partition) for partition in existing if not partition.is_default]
        ends = [item.first for item in ranges[1:]]
        partitions = [self._partition(item, end, kept, notes) for item, end in itertools.zip_longest(ranges, ends)]
        if partitions:
            # Lines of files without a row have to be accounted for. Should one be a row after all, the bounds tell.
            used = {number for partition in partitions for number in partition.slices}
            rest = {int(item["number"]) for item in self._source.slices} - used
            partitions[0] = replace(partitions[0], slices=tuple(sorted(rest.union(partitions[0].slices))))
        return partitions

    def _partition(
        self, item: _FileRange, following: KeyValue | None, kept: Sequence[_KeptRange], notes: list[str]
    ) -> FilePartition:
        end = self._end(item, following, kept)
        if end is None:
            last = self._kind.text(item.last)
            notes.append(f"the last partition has no upper bound: {last} is the largest value of {self._key.type}")
        for part in kept:
            begins_before = part.minimum is None or end is None or part.minimum < end
            ends_behind = part.end is None or part.end > item.first
            if begins_before and ends_behind:
                raise self._exists(item, part)
        slices = tuple(int(part["number"]) for part in self._source.slices if int(part["file"]) == item.file)
        bounds = KeyBounds(self._key.source, self._kind.text(item.first), None if end is None else self._kind.text(end))
        return FilePartition(slices, bounds)

    def _end(self, item: _FileRange, following: KeyValue | None, kept: Sequence[_KeptRange]) -> KeyValue | None:
        """At the next file, or at a partition that stays and begins before it; the last one behind its last key, or
        nowhere if that is the largest value of its type.
        """
        if following is not None:
            starts = [part.minimum for part in kept if part.minimum is not None]
            between = [start for start in starts if item.last < start < following]
            # The table may divide more finely than the source's type can say; that is refused as an overlap.
            return min([following, *(start for start in between if self._kind.parse(self._kind.text(start)) == start)])
        try:
            return self._kind.after(item.last)
        except OverflowError:
            return None

    def _file_range(self, file: int, keys: FileKeys) -> _FileRange:
        """Rows may also stand in falling order."""
        ends = [self._kind.parse(text) for text in (keys.first, keys.last) if text is not None]
        return _FileRange(min(ends), max(ends), file)

    def _kept_range(self, partition: CatalogPartition) -> _KeptRange:
        minimum, end = (None if text is None else self._kind.parse(text) for text in (partition.minimum, partition.end))
        return _KeptRange(partition.name, minimum, end)

    def _note_empty(self, files: Sequence[int], notes: list[str]) -> None:
        if files:
            first = os.path.basename(str(self._source.files[files[0]]["path"]))
            more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
            notes.append(f"{first}{more} without a row: no partition")

    def _overlap(self, earlier: _FileRange, later: _FileRange) -> TargetError:
        return TargetError(
            f"two files overlap in `{self._key.source}`, by which table {self._table_name} is partitioned",
            found=f"{self._shown(earlier)}\n{self._shown(later)}",
            expected="files whose keys follow each other",
            hint="Divide the files anew, or set `load: single`.",
        )

    def _exists(self, item: _FileRange, part: _KeptRange) -> TargetError:
        minimum = "MINVALUE" if part.minimum is None else self._kind.text(part.minimum)
        end = "MAXVALUE" if part.end is None else self._kind.text(part.end)
        return TargetError(
            f"a file overlaps a partition of table {self._table_name} that exists",
            found=f"{self._shown(item)}\npartition {part.name}: from {minimum} to before {end}",
            hint="Use `target: replace`, or leave the file out if its rows are loaded already.",
        )

    def _shown(self, item: _FileRange) -> str:
        return f"{self._path(item)}: {self._kind.text(item.first)} to {self._kind.text(item.last)}"

    def _path(self, item: _FileRange) -> str:
        return str(self._source.files[item.file]["path"])
