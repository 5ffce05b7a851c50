"""Where the rows of a data flow are from: files, or a generator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headrace.model.layout import Layout
from headrace.model.source_options import DEFAULT_WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class FileSource:
    """Rows from the files of a folder that match one of the patterns.

    `{stream}` in a pattern stands for 1 to the package's number of streams; each of those files must exist. `-` is
    standard input. `last_row_end` is None if only streams need one.
    """

    name: str
    connection: str
    folder: Path
    patterns: list[str]
    layout: Layout
    missing: Literal["error", "skip"] = "error"
    empty: Literal["error", "allow"] = "error"
    compression: Literal["auto", "none", "gzip", "zstd"] = "auto"
    last_row_end: Literal["required", "optional"] | None = None
    wait_seconds: int = DEFAULT_WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class GenerateSource:
    """Rows of a generated table; `chunks` parts that streams generate independently."""

    name: str
    generator: str
    table: str
    scale: float
    chunks: int
    layout: Layout
