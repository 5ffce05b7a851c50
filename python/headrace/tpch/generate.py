"""Writes TPC-H text files: checks the request, starts the core's generator, follows it until it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.errors import CommandLineError
from headrace.model.spec_tasks import MAXIMUM_TPCH_CHUNKS, TPCH_SCALES, is_tpch_scale
from headrace.model.suggest import did_you_mean, one_of
from headrace.tpch import TABLES

# As in crates/engine: more threads are a mistake.
MAXIMUM_THREADS: Final = 1024
_STEP_SECONDS: Final = 0.1
# Called ten times a second: bytes written so far, estimated bytes in all.
ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class GenerateRequest:
    """What to generate. `chunk`: only this one of `chunks`, from 1; None for all. `threads`: None for all."""

    folder: Path
    scale: float
    chunks: int = 1
    chunk: int | None = None
    tables: tuple[str, ...] = TABLES
    threads: int | None = None


def generate(request: GenerateRequest, cancel: threading.Event, on_progress: ProgressCallback) -> list[dict[str, Any]]:
    """Write the files and return them: path, table, chunk, rows, bytes.

    Raises CommandLineError for an impossible request, CancelledError when `cancel` was set, and what the core found:
    no space, no right to write, files of another number of chunks. Files that are complete stay, unfinished ones never
    get their name.
    """
    check_request(request)
    generation = core.generate_tpch(
        {
            "scale": request.scale,
            "chunks": request.chunks,
            "chunk": request.chunk,
            "tables": list(request.tables),
            "folder": str(request.folder.resolve()),
            "threads": request.threads or min(os.cpu_count() or 1, MAXIMUM_THREADS),
        }
    )
    while (result := generation.join(_STEP_SECONDS)) is None:
        if cancel.is_set():
            generation.cancel()
        snapshot = generation.snapshot()
        on_progress(int(snapshot["bytes_written"]), int(snapshot["bytes_estimated"]))
    core.raise_for_error(result)
    files: list[dict[str, Any]] = result["files"]
    return files


def check_request(request: GenerateRequest) -> None:
    """What the command line can get wrong; everything else is for the core to say. Raises CommandLineError."""
    if not is_tpch_scale(request.scale):
        raise CommandLineError("the scale is out of range", found=f"{request.scale:.15g}", expected=TPCH_SCALES)
    for option, number, most in [
        ("chunks", request.chunks, MAXIMUM_TPCH_CHUNKS),
        ("threads", request.threads or 1, MAXIMUM_THREADS),
    ]:
        if not 1 <= number <= most:
            raise CommandLineError(f"--{option} is out of range", found=str(number), expected=f"1 to {most}")
    if request.chunk is not None and not 1 <= request.chunk <= request.chunks:
        raise CommandLineError(
            f"there is no chunk {request.chunk} of {request.chunks}", expected=f"1 to {request.chunks}"
        )
    if not request.tables:
        raise CommandLineError("no table is selected", expected=one_of(TABLES))
    for table in request.tables:
        if table not in TABLES:
            raise CommandLineError(
                f"TPC-H has no table `{table}`", expected=one_of(TABLES), hint=did_you_mean(table, TABLES)
            )
