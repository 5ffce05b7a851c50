"""Files and folders that only their owner may read, whatever the umask: those of runs hold rows and names of tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def make_folder(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    """As `Path.mkdir`; `parents` that are missing are made as everybody makes folders."""
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER_MODE, exist_ok=exist_ok)


def open_file(path: Path, mode: str, **text: Any) -> IO[Any]:
    """As `open`, whose further arguments are those about text. A file that exists keeps its rights."""
    return open(path, mode, opener=_opener, **text)


def write_text(path: Path, content: str, **text: Any) -> None:
    """As `Path.write_text`."""
    with open_file(path, "w", **text) as file:
        file.write(content)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
