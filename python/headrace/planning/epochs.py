"""Which slices are committed together where all writers of a load commit at once."""

from __future__ import annotations

from headrace.planning.partitioning import CommitSize
from headrace.planning.slicing import text_bytes
from headrace.planning.source_snapshot import SourceSnapshot


def epochs(source: SourceSnapshot, commit: CommitSize, streams: int) -> list[list[int]]:
    """Neighbouring slices, together of about the size of a commit; of generated rows, whose size is not known, one
    slice for each stream.
    """
    if source.generate is not None:
        numbers = [int(item["number"]) for item in source.slices]
        return [numbers[first : first + streams] for first in range(0, len(numbers), streams)]
    limit = _commit_bytes(source, commit)
    groups: list[list[int]] = []
    filled = 0
    for item in source.slices:
        length = text_bytes(item)
        if not groups or filled + length > limit:
            groups.append([])
            filled = 0
        groups[-1].append(int(item["number"]))
        filled += length
    return groups


def _commit_bytes(source: SourceSnapshot, commit: CommitSize) -> int:
    """Bytes of source text that a commit has, or about as many rows as it has."""
    if commit.bytes is not None:
        return commit.bytes
    return max(1, int((commit.rows or 1) * source.row_bytes))
