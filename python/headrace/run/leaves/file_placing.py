"""Puts files into their places: whole or not at all, and over nothing that is there, unless that is wanted."""

from __future__ import annotations

import ctypes
import errno
import functools
import gzip
import io
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final, cast

from headrace.errors import FileTaskError
from headrace.run.leaves.file_failures import failures_of
from headrace.run.leaves.file_reach import Reached, shown_path

_BLOCK_BYTES: Final = 1_048_576
_GZIP_LEVEL: Final = 6
_AT_CURRENT_FOLDER: Final = -100
_NO_REPLACE: Final = 1
# What file systems and kernels say that do not know how to rename without replacing.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY})


def place(source: str, destination: str, *, overwrite: bool) -> None:
    """Gives a file another name on the same file system, in one step. Raises OSError: FileExistsError if the name is
    taken, EXDEV on another file system.
    """
    if overwrite:
        if os.path.isdir(destination) and not os.path.islink(destination):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        os.replace(source, destination)
        return
    number = _rename_without_replacing(source, destination)
    if number in _UNKNOWN:
        # In two steps: a second name, then the first one goes.
        os.link(source, destination, follow_symlinks=False)
        os.unlink(source)
    elif number:
        raise OSError(number, os.strerror(number))


def _rename_without_replacing(source: str, destination: str) -> int:
    """0, or errno."""
    rename = _system_call()
    if rename is None:
        return errno.ENOSYS
    arguments = (_AT_CURRENT_FOLDER, os.fsencode(source), _AT_CURRENT_FOLDER, os.fsencode(destination), _NO_REPLACE)
    return 0 if rename(*arguments) == 0 else ctypes.get_errno()


@functools.cache
def _system_call() -> Callable[..., int] | None:
    try:
        return cast(Callable[..., int], ctypes.CDLL(None, use_errno=True).renameat2)
    except (OSError, AttributeError):
        return None


def copy(source: str, temporary: str, *, compress: bool, check: Callable[[], None]) -> None:
    """Writes a copy of a file, which is on disk when this returns, with the times and rights of the file. `check` is
    called between blocks. Raises FileTaskError, also if the file has changed meanwhile; then there is no copy.
    """
    try:
        what = f"write a copy of {os.path.basename(source)}"
        with failures_of(what, os.path.dirname(shown_path(temporary))), _opened(source) as read_from:
            before = os.fstat(read_from.fileno())
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as written_to:
                if compress:
                    modified = max(0, int(before.st_mtime))
                    name = os.path.basename(source)
                    with gzip.GzipFile(name, "wb", _GZIP_LEVEL, written_to, mtime=modified) as packed:
                        _transfer(read_from, packed, source, check)
                else:
                    _transfer(read_from, written_to, source, check)
                _require_unchanged(source, before, os.fstat(read_from.fileno()))
                written_to.flush()
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
                os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _opened(source: str) -> io.FileIO:
    with failures_of("read a file", source):
        # A pipe without a writer would wait for ever.
        # What is reached has no link any more, but somebody may put one there.
        no_link = os.O_NOFOLLOW if isinstance(source, Reached) else 0
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | no_link)
        read_from = io.FileIO(descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            read_from.close()
            raise FileTaskError("only files are copied", at={"file": shown_path(source)}, expected="a file")
        return read_from


def _transfer(
    read_from: io.FileIO, written_to: BinaryIO | gzip.GzipFile, source: str, check: Callable[[], None]
) -> None:
    while True:
        check()
        with failures_of("read a file", source):
            block = read_from.read(_BLOCK_BYTES)
        if not block:
            return
        written_to.write(block)


def _require_unchanged(source: str, before: os.stat_result, after: os.stat_result) -> None:
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise FileTaskError(
            "a file has changed while it was copied",
            at={"file": shown_path(source)},
            found=f"{after.st_size:,} bytes in place of {before.st_size:,}",
            hint="Wait until its writer has ended.",
        )
