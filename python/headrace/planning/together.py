"""What plans say of the sources of a flow whose rows come together: their files one behind the other, and the memory of
their rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.errors import SourceError
from headrace.model import DataType, FileSource
from headrace.planning.memory import slab_bytes
from headrace.planning.source_snapshot import SourcePart, SourceSnapshot


def refuse_common_files(snapshots: Sequence[SourceSnapshot], united: str = "") -> None:
    """Raises SourceError for a file that two of several sources name. `united`: the union whose rows they are, if it is
    one."""
    first: dict[str, str] = {}
    for own in snapshots:
        for path in own.paths:
            other = first.setdefault(path, own.name)
            if other != own.name:
                raise SourceError(
                    f"two sources of the union `{united}` have the same file, whose rows would be loaded twice"
                    if united
                    else "two sources of one data flow have the same file",
                    at={"file": path},
                    found=f"it is a file of `{other}` and of `{own.name}`",
                    expected="each file in one source",
                    hint="Name the files of one of them more closely."
                    if united
                    else "Let several destinations read one source, or name the files of one of them more closely.",
                )


def one_behind_the_other(snapshots: Sequence[SourceSnapshot]) -> SourceSnapshot:
    """The files and slices of several sources as those of one, in the order of the sources."""
    files: list[dict[str, object]] = []
    slices: list[dict[str, object]] = []
    parts = []
    for own in snapshots:
        parts.append(SourcePart(own.name, len(files), own.may_be_empty))
        number = max((int(str(item["number"])) for item in slices), default=0)
        for item in own.slices:
            slices.append({**item, "file": item["file"] + len(files), "number": item["number"] + number})
        files += own.files
    return replace(
        snapshots[0],
        files=files,
        slices=slices,
        notes=[f"{own.name}: {note}" for own in snapshots for note in own.notes],
        row_bytes=_row_bytes(snapshots),
        parts=tuple(parts),
    )


def _row_bytes(snapshots: Sequence[SourceSnapshot]) -> float:
    sizes = [sum(int(file["size_bytes"]) for file in own.files) for own in snapshots]
    rows = sum(size / own.row_bytes for size, own in zip(sizes, snapshots, strict=True))
    return sum(sizes) / rows if rows else 1.0


def as_declared(source: FileSource) -> dict[str, Any]:
    """A layout for the core with all of its columns, as transforms read them: made ones, too."""
    return source.layout.to_core((), {column.name: column.type for column in source.layout.columns})


def source_number(first_files: Sequence[int], file: int) -> int:
    """The number of the source that a file is of, from 0. `first_files`: the first file of each, of one without files
    that of the next one.
    """
    return bisect_right(first_files, file) - 1


def most_slab_bytes(
    sources: Sequence[FileSource], beside: Sequence[Sequence[DataType]], block_bytes: int, added: Sequence[DataType]
) -> int:
    """Worst case of the typed columns of one block of any source. `beside`: for each the types of columns that its rows
    get before the first transform.
    """
    return max(
        slab_bytes(
            source.layout.columns,
            block_bytes,
            rewrites=source.layout.rewritten_blocks,
            fills=source.layout.short_rows == "fill",
            row_width=source.layout.shortest_row_bytes,
            added=(*own, *added),
        )
        for source, own in zip(sources, beside, strict=True)
    )
