"""Errors of file tasks."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headrace.errors import FileTaskError
from headrace.run.leaves.file_reach import shown_path
from headrace.sources.globbing import shown_name

_HINTS: Final = {
    errno.ENOENT: "Somebody has removed it, or a link leads nowhere.",
    errno.ENOSPC: "Free space there.",
    errno.EDQUOT: "Free space there: the quota is used up.",
    errno.EFBIG: "The file system takes no file of this size.",
    errno.EACCES: "Get the right to read and write there.",
    errno.EPERM: "Get the right to change it.",
    errno.EROFS: "It is mounted read-only: choose another place.",
    errno.ENOTEMPTY: "Delete what is in it first: only empty folders are deleted.",
    errno.ENOTDIR: "A part of the path is no folder.",
    errno.EISDIR: "Rename the folder, or choose another place.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EBUSY: "Find out who uses it.",
}


def failure(what: str, path: str, error: OSError) -> FileTaskError:
    """The error for what the system has refused. `what`: such as `move orders.csv`."""
    return FileTaskError(
        f"cannot {what}",
        at={"file": shown_name(shown_path(path))},
        found=error.strerror or str(error),
        hint=_HINTS.get(error.errno or 0, "Check the path and its disk."),
    )


@contextmanager
def failures_of(what: str, path: str) -> Iterator[None]:
    """Errors of the system inside become FileTaskErrors about `path`."""
    try:
        yield
    except OSError as error:
        raise failure(what, path, error) from error


def exists_already(action: str, destination: str) -> FileTaskError:
    """Nothing is overwritten unless the package says so."""
    is_folder = os.path.isdir(destination) and not os.path.islink(destination)
    return FileTaskError(
        f"cannot {action}: the destination exists",
        at={"file": shown_path(destination)},
        found="a folder of that name" if is_folder else "a file of that name",
        hint="Rename the folder, or choose another place."
        if is_folder
        else "Remove or rename it, or set `overwrite: true`.",
    )
