"""A source of flat files: finds them, looks at them once, cuts them into slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import SourceError
from headrace.model import FileSource
from headrace.planning import SourceSnapshot
from headrace.planning.slicing import slice_bytes
from headrace.sources.globbing import find_files, no_files

# core.plan_slices: looks at the files and cuts them at row ends.
PlanSlices = Callable[[dict[str, Any]], dict[str, Any]]

_NOTED_EMPTY_FILES = 3


def snapshot_files(source: FileSource, streams: int, plan_slices: PlanSlices) -> SourceSnapshot | None:
    """The files of a source as they are now; None if there are none and the source says `missing: skip`.

    Raises SourceError: no file, no folder, a folder in place of a file, an unreadable file, nothing but empty files.
    """
    found = find_files(str(source.folder), source.patterns, streams)
    if not found.paths:
        if source.missing == "skip":
            return None
        raise no_files(str(source.folder), source.patterns, source.name, found.notes)
    layout = source.layout.to_core(set())
    # Sizes first: the length of a slice follows from the bytes of all files together.
    looked_at = plan_slices({"files": found.paths, "slice_bytes": _ONE_SLICE, "layout": layout})
    total_bytes = sum(int(file["size_bytes"]) for file in looked_at["files"])
    empty = [str(file["path"]) for file in looked_at["files"] if not file["size_bytes"]]
    if not total_bytes and source.empty == "error":
        raise _nothing_but_empty(source, empty)
    length = slice_bytes(total_bytes, streams)
    cut = plan_slices({"files": found.paths, "slice_bytes": length, "layout": layout})
    return SourceSnapshot(
        name=source.name, files=cut["files"], slices=cut["slices"], notes=found.notes + _empty_notes(empty)
    )


# Larger than any file: the first look cuts nothing.
_ONE_SLICE = 2**62


def _nothing_but_empty(source: FileSource, empty: list[str]) -> SourceError:
    what = "the source file is empty" if len(empty) == 1 else f"all {len(empty)} source files are empty"
    at: dict[str, object] = {"file": empty[0]} if len(empty) == 1 else {"folder": str(source.folder)}
    return SourceError(
        what,
        at=at,
        found="0 bytes",
        hint=f"Set `empty: allow` for source `{source.name}` if this is right; `replace` then empties the table.",
    )


def _empty_notes(empty: list[str]) -> list[str]:
    notes = [f"{path} is empty" for path in empty[:_NOTED_EMPTY_FILES]]
    if len(empty) > _NOTED_EMPTY_FILES:
        notes.append(f"{len(empty) - _NOTED_EMPTY_FILES} more files are empty")
    return notes
