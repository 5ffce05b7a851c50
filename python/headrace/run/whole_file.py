"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write under, which becomes `path` when all is written. What is no file, such as a pipe or a device, is
    written itself, and a link goes on to point where it did. Raises OSError.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
