"""`headrace generate tpch`: write TPC-H text files, with progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace import units
from headrace.cli.console import print_json, print_result, result_width, shown_path, write_talk
from headrace.cli.signals import cancel_on_signals, write_now
from headrace.cli.text_table import TextColumn, render_table
from headrace.tpch import TABLES
from headrace.tpch.generate import GenerateRequest, generate

_LINE_INTERVAL_SECONDS: Final = 5.0
_REDRAW_INTERVAL_SECONDS: Final = 0.2
_STOPPING: Final = "stopping: unfinished files are removed"


@dataclass(frozen=True)
class GenerateOptions:
    """The command line of `headrace generate tpch`. `chunk`, `tables` and `threads`: None for all."""

    out: Path
    scale: float
    chunks: int
    chunk: int | None
    tables: tuple[str, ...] | None
    threads: int | None
    json_output: bool
    quiet: bool


def run_generate(options: GenerateOptions) -> int:
    """Generate and report; returns the exit code."""
    tables = TABLES if options.tables is None else options.tables
    request = GenerateRequest(options.out, options.scale, options.chunks, options.chunk, tables, options.threads)
    started = time.monotonic()
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        files = generate_shown(request, cancel, quiet=options.quiet)
        seconds = time.monotonic() - started
        if options.json_output:
            size_bytes, rows = sum(file["bytes"] for file in files), sum(file["rows"] for file in files)
            print_json({"status": "success", "seconds": seconds, "bytes": size_bytes, "rows": rows, "files": files})
        else:
            print_result(render_files(files, seconds, options.out))
    return 0


def generate_shown(request: GenerateRequest, cancel: threading.Event, *, quiet: bool) -> list[dict[str, Any]]:
    """Generate with progress on stderr; the first Ctrl-C sets `cancel`."""
    progress = _GenerateProgress(quiet=quiet)
    with cancel_on_signals(cancel, lambda: write_now(_STOPPING)):
        try:
            return generate(request, cancel, progress.show)
        finally:
            progress.close()


def render_files(files: Sequence[dict[str, Any]], seconds: float, folder: Path) -> str:
    """What was written, table by table."""
    columns = [TextColumn("table", words=True), TextColumn("files"), TextColumn("rows"), TextColumn("size")]
    rows = []
    for table in dict.fromkeys(file["table"] for file in files):
        own = [file for file in files if file["table"] == table]
        rows.append([table, *_sums(own)])
    size_bytes = sum(file["bytes"] for file in files)
    return (
        render_table(columns, rows, total=["total", *_sums(files)], width=result_width())
        + f"\n\nwritten to {shown_path(folder)} in {units.duration(seconds)}, "
        + f"{units.megabytes_per_second(size_bytes, seconds)} MB/s"
    )


def render_files_line(files: Sequence[dict[str, Any]], seconds: float, folder: Path) -> str:
    """What was written, in one line."""
    number, rows, size = _sums(files)
    return f"generated: {number} files, {rows} rows, {size} in {units.duration(seconds)}, in {shown_path(folder)}"


def _sums(files: Sequence[dict[str, Any]]) -> list[str]:
    return [
        units.count(len(files)),
        units.count(sum(file["rows"] for file in files)),
        units.size(sum(file["bytes"] for file in files)),
    ]


class _GenerateProgress:
    """One line: redrawn in place on a terminal, repeated every five seconds elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._in_place = sys.stderr is not None and sys.stderr.isatty()
        self._started = self._last = time.monotonic()
        self._drawn = False

    def show(self, written_bytes: int, expected_bytes: int) -> None:
        """Take the state; print when it is time."""
        now = time.monotonic()
        if self._quiet or now - self._last < (_REDRAW_INTERVAL_SECONDS if self._in_place else _LINE_INTERVAL_SECONDS):
            return
        self._last = now
        elapsed = now - self._started
        # The total is an estimate: "99 %" for a moment too long is better than "101 %".
        percent = min(99, written_bytes * 100 // max(1, expected_bytes))
        line = (
            f"generating: {units.size(written_bytes)} of about {units.size(expected_bytes)} ({percent} %), "
            f"{units.megabytes_per_second(written_bytes, elapsed)} MB/s"
        )
        write_talk(f"\r{line}\x1b[K" if self._in_place else f"{line}\n")
        self._drawn = True

    def close(self) -> None:
        """Clear the line."""
        if self._drawn and self._in_place:
            write_talk("\r\x1b[K")
