"""Sizes of the files that a load makes grow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class FileWatcher:
    """A `DestinationWatcher`. Only `stat` is used: closing any descriptor of the database would drop DuckDB's lock."""

    def __init__(self, path: Path, spill_folder: str | None) -> None:
        self._path = path
        self._spill_folder = spill_folder

    def look(self) -> dict[str, Any]:
        return {
            "type": "duckdb",
            "denied": [],
            "file_bytes": _size(self._path),
            "wal_bytes": _size(self._path.with_name(f"{self._path.name}.wal")) or 0,
            "spill_bytes": None if self._spill_folder is None else sum(_sizes(self._spill_folder)),
        }

    def close(self) -> None:
        """There is nothing to give back."""


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sizes(folder: str) -> Iterable[int]:
    """Of what is there now: the engine makes its folder when it needs it, and removes files at any moment."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [size for name in names if (size := _size(Path(folder, name))) is not None]
