"""A source of flat files: finds them, looks at them once, cuts them into slices."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from headrace.errors import SourceError
from headrace.model import CommitInterval, FileSource, Layout
from headrace.model.layout_for_core import row_end_bytes
from headrace.planning import SourceSnapshot, counted
from headrace.planning.slicing import MINIMUM_COMMIT_BYTES, slice_bytes
from headrace.sources.globbing import find_files, no_files
from headrace.sources.packed import source_notes
from headrace.sources.streams import check_streams

# core.plan_slices: looks at the files and cuts them at row ends.
PlanSlices = Callable[[dict[str, Any]], dict[str, Any]]

_NOTED_EMPTY_FILES = 3
# Enough to tell about how long rows are.
_SAMPLED_FILES: Final = 8
_SAMPLE_BYTES: Final = 65_536
_GUESSED_ROW_BYTES: Final = 100.0
# A slice of so many bytes is not cut.
_WHOLE_BYTES: Final = 1 << 60


@dataclass(frozen=True)
class FileCommit:
    """How much of the files a destination commits at once. `is_shared`: all streams together."""

    interval: CommitInterval
    is_shared: bool

    def slice_bytes(self, streams: int, row_bytes: float) -> int:
        """The longest slice with which commits are about as far apart as they should be."""
        size = self.interval.bytes
        wanted = int((self.interval.rows or 0) * row_bytes) if size is None else size
        return wanted // max(1, streams) if self.is_shared else wanted


def snapshot_files(
    source: FileSource,
    streams: int,
    plan_slices: PlanSlices,
    destination_files: Sequence[Path] = (),
    commit: FileCommit | None = None,
    *,
    is_lookup: bool = False,
    is_whole: bool = False,
) -> SourceSnapshot | None:
    """The files of a source as they are now; None if there are none and the source says `missing: skip`. With `commit`
    no slice is much longer than what is committed at once. `is_lookup`: they are
    those of a lookup, and it is told about how long rows are. `is_whole`: each file is one slice.

    Raises SourceError: no file, no folder, a folder in place of a file, an unreadable file, nothing but empty files, or
    one of the `destination_files` of the run.
    """
    found = find_files(str(source.folder), source.patterns, streams)
    if not found.paths:
        if source.missing == "skip":
            return None
        raise no_files(str(source.folder), source.patterns, source.name, found.notes, is_lookup=is_lookup)
    layout = source.layout.to_core(set())
    # Sizes first: the length of a slice follows from the bytes of all files together.
    looked_at = {path: status for path in found.paths if (status := _status(path)) is not None}
    # Not even a look: closing a database file drops the lock that this process may hold on it.
    _refuse_destinations(looked_at, destination_files)
    files = {path: status for path, status in looked_at.items() if stat.S_ISREG(status.st_mode)}
    is_asked = is_lookup or (commit is not None and commit.interval.rows is not None)
    row_bytes = _row_bytes(files, source.layout) if is_asked else 1.0
    limit = None if commit is None else commit.slice_bytes(streams, row_bytes)
    bytes_total = sum(status.st_size for status in files.values())
    cut = plan_slices(
        {
            "files": found.paths,
            "slice_bytes": slice_bytes(bytes_total, streams, limit) if not is_whole else _WHOLE_BYTES,
            "layout": layout,
            "compression": source.compression,
            "wait_seconds": source.wait_seconds,
            "needs_last_row_end": None if source.last_row_end is None else source.last_row_end == "required",
            "most_text_bytes": None if limit is None else max(MINIMUM_COMMIT_BYTES, limit),
        }
    )
    snapshot = SourceSnapshot(
        name=source.name,
        files=cut["files"],
        slices=cut["slices"],
        notes=list(found.notes),
        may_be_empty=source.empty == "allow",
        row_bytes=row_bytes,
    )
    check_streams(snapshot, streams, commits=commit is not None)
    empty = [str(file["path"]) for file in cut["files"] if not file["size_bytes"] and not file.get("stream")]
    if len(empty) == len(cut["files"]) and source.empty == "error":
        raise _nothing_but_empty(source, empty)
    return replace(
        snapshot,
        notes=found.notes
        + _empty_notes(empty)
        + encoding_notes(source.layout)
        + source_notes(snapshot, commits=commit is not None),
    )


def _row_bytes(files: dict[str, os.stat_result], layout: Layout) -> float:
    """About as many bytes has a row, as the beginnings of the first files say; the core reports what cannot be read."""
    if layout.shortest_row_bytes is not None:
        return float(layout.shortest_row_bytes)
    row_end = row_end_bytes(layout)
    length = rows = 0
    for path in [path for path, status in files.items() if status.st_size][:_SAMPLED_FILES]:
        with suppress(OSError, zlib.error), open(path, "rb") as file:
            sample = _text(file.read(_SAMPLE_BYTES))
            length += len(sample)
            # Old Macintoshes ended rows with the other one.
            rows += sample.count(row_end) if row_end else sample.count(b"\n") or sample.count(b"\r")
    return max(1.0, length / max(1, rows)) if length else _GUESSED_ROW_BYTES


def _text(sample: bytes) -> bytes:
    """The text that the beginning of a file holds; nothing of zstd, which Python does not read."""
    if sample.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(sample, _SAMPLE_BYTES)
    return b"" if sample.startswith(b"\x28\xb5\x2f\xfd") else sample


def _status(path: str | Path) -> os.stat_result | None:
    """None for a file that cannot be looked at; the core says why."""
    try:
        return os.stat(path)
    except OSError:
        return None


def _refuse_destinations(sources: dict[str, os.stat_result], destination_files: Sequence[Path]) -> None:
    for destination in destination_files:
        status = _status(destination)
        same = [] if status is None else [path for path, own in sources.items() if os.path.samestat(own, status)]
        if same:
            raise SourceError(
                "a source file is the database that the rows go to",
                at={"file": same[0]},
                hint="Name the source files more closely, or keep the database in another folder.",
            )


def _nothing_but_empty(source: FileSource, empty: list[str]) -> SourceError:
    what = "the source file is empty" if len(empty) == 1 else f"all {len(empty)} source files are empty"
    at: dict[str, object] = {"file": empty[0]} if len(empty) == 1 else {"folder": str(source.folder)}
    return SourceError(
        what,
        at=at,
        found="0 bytes",
        hint=f"Set `empty: allow` for source `{source.name}` if this is right; `replace` then empties the table.",
    )


def encoding_notes(layout: Layout) -> list[str]:
    """What the plan says of files that are not UTF-8, or may hold what is no character."""
    replaced = "bytes that are no character are read as U+FFFD" if layout.unmappable == "replace" else ""
    if layout.encoding == "utf-8":
        return [replaced] if replaced else []
    how = "decoded while it is read" if layout.encoding.startswith("utf-16") else "texts that are not ASCII are decoded"
    return [f"encoding {layout.encoding}: {how}" + (f"; {replaced}" if replaced else "")]


def format_notes(slow: Sequence[tuple[str, str]]) -> list[str]:
    """What the plan says of columns, each with its reason, that are not converted many texts at once."""
    reasons = dict.fromkeys(reason for _, reason in slow)
    columns = {why: [f"`{name}`" for name, reason in slow if reason == why] for why in reasons}
    return [
        f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}: converted field by field ({why})"
        for why, names in columns.items()
    ]


def _empty_notes(empty: list[str]) -> list[str]:
    notes = [f"{path} is empty" for path in empty[:_NOTED_EMPTY_FILES]]
    if len(empty) > _NOTED_EMPTY_FILES:
        more = len(empty) - _NOTED_EMPTY_FILES
        notes.append(f"{counted(more, 'more file')} {'is' if more == 1 else 'are'} empty")
    return notes
