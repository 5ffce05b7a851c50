"""What a plan has to say of columns that are made, and not read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Final

from headrace.model import Column, UnitedColumn
from headrace.planning.source_snapshot import SourceSnapshot

# Texts of the length that those of a run will have.
_LIKE_THOSE_OF_A_RUN: Final = {"run_id": "20260101-000000-000000", "package_hash": "0" * 64}


def longest_text(column: Column | UnitedColumn, file_paths: Sequence[str]) -> str | None:
    """A text as long as the longest that a column that is made will hold; None for other columns."""
    if column.from_ in _LIKE_THOSE_OF_A_RUN:
        return _LIKE_THOSE_OF_A_RUN[column.from_]
    if column.from_ == "file_name":
        return max((PurePosixPath(path).name for path in file_paths), key=len, default="")
    return max(file_paths, key=len, default="") if column.from_ == "file_path" else None


def made_notes(made: Sequence[Column], loaded: Collection[str], source: SourceSnapshot) -> list[str]:
    """Which of the columns that are loaded are made, and what numbers of rows cost."""
    used = [column for column in made if column.name in loaded]
    if not used:
        return []
    notes = [f"made, not read: {', '.join(f'`{column.name}` ({column.from_})' for column in used)}"]
    counted_bytes = bytes_to_count(source)
    if counted_bytes and any(column.from_ == "row_number" for column in used):
        what = " (and decoded)" if source.compressions else ""
        notes.append(
            f"{_size(counted_bytes)} are read{what} once more before the load, to count the rows before each slice"
        )
    return notes


def bytes_to_count(source: SourceSnapshot) -> int:
    """Bytes of the slices behind which others of their file come: rows of those have rows before them to count."""
    last = {item["file"]: item["number"] for item in source.slices}
    before = (item for item in source.slices if item["number"] != last[item["file"]])
    return sum(int(item["end_byte"]) - int(item["begin_byte"]) for item in before)


def _size(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"
