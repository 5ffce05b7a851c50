"""Writes TPC-H text files on request of the command line, whose mistakes are found first."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import CommandLineError
from headrace.model.spec_data_flow import MAXIMUM_TPCH_CHUNKS, TPCH_SCALES, is_tpch_scale
from headrace.model.suggest import did_you_mean, one_of
from headrace.sources.tpch_files import MAXIMUM_THREADS, ProgressCallback, TpchFiles, write_tpch
from headrace.tpch import TABLES


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
    files = TpchFiles(request.folder, request.scale, request.chunks, request.chunk, request.tables, request.threads)
    return write_tpch(files, cancel.is_set, on_progress)


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
