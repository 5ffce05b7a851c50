"""Writes TPC-H tables as text files: starts the core's generator and follows it until it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace import core

# As in crates/engine: more threads are a mistake.
MAXIMUM_THREADS: Final = 1024
_STEP_SECONDS: Final = 0.1
# Called ten times a second: bytes written so far, estimated bytes in all.
ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class TpchFiles:
    """What to generate. `chunk`: only this one of `chunks`, from 1; None for all. `threads`: None for all."""

    folder: Path
    scale: float
    chunks: int
    chunk: int | None
    tables: tuple[str, ...]
    threads: int | None = None


def write_tpch(
    files: TpchFiles, is_cancelled: Callable[[], bool], on_progress: ProgressCallback
) -> list[dict[str, Any]]:
    """Writes the files and returns them: path, table, chunk, rows, bytes.

    Raises CancelledError when `is_cancelled` says so, and what the core has found: no space, no right to write, files
    of another number of chunks. Files that are complete stay, unfinished ones never get their name.
    """
    generation = core.generate_tpch(
        {
            "scale": files.scale,
            "chunks": files.chunks,
            "chunk": files.chunk,
            "tables": list(files.tables),
            "folder": str(files.folder.resolve()),
            "threads": files.threads or min(os.cpu_count() or 1, MAXIMUM_THREADS),
        }
    )
    while (result := generation.join(_STEP_SECONDS)) is None:
        if is_cancelled():
            generation.cancel()
        snapshot = generation.snapshot()
        on_progress(int(snapshot["bytes_written"]), int(snapshot["bytes_estimated"]))
    core.raise_for_error(result)
    written: list[dict[str, Any]] = result["files"]
    return written
