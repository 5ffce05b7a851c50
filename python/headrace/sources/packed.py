"""What the plan says of sources that are compressed, or can be read once only."""

from __future__ import annotations

import os
from collections import Counter

from headrace.planning import SourceSnapshot, counted
from headrace.planning.wording import stream_name


def source_notes(source: SourceSnapshot, *, commits: bool) -> list[str]:
    """Notes for the plan."""
    slices = Counter(int(item["file"]) for item in source.slices)
    notes = []
    for compression in ("gzip", "zstd"):
        files = [index for index, file in enumerate(source.files) if file.get("compression") == compression]
        whole = [index for index in files if slices[index] == 1 and not source.files[index].get("stream")]
        cut = [index for index in files if slices[index] > 1]
        if whole:
            each = "" if len(whole) == 1 else " each"
            notes.append(
                f"{_names(source, whole)}: {compression}, one slice{each}, decoded by a thread beside the stream"
            )
            if commits:
                notes.append(f"{_names(source, whole)}: committed as a whole")
        if cut:
            count = sum(slices[index] for index in cut)
            notes.append(
                f"{_names(source, cut)}: {compression} in pieces, {counted(count, 'slice')}, decoded by a thread "
                "beside each stream"
            )
        if files:
            notes.append("positions in compressed files count bytes of their text")
    held = [index for index, file in enumerate(source.files) if file.get("held")]
    if held:
        rows, most = (int(source.files[held[0]]["held"][name]) for name in ("rows", "text_bytes"))
        notes.append(
            f"{_names(source, held)}: the last {counted(rows, 'row')} held back until the end is known, up to "
            f"{most >> 20} MB"
        )
    notes = list(dict.fromkeys(notes))
    for name in source.streams:
        notes.append(
            f"{stream_name(name)} is read once: the load can be neither resumed nor verified, and a row that only the "
            "destination refuses is not found again"
        )
    return notes


def _names(source: SourceSnapshot, files: list[int]) -> str:
    if len(files) > 1:
        return counted(len(files), "file")
    return os.path.basename(str(source.files[files[0]]["path"]))
