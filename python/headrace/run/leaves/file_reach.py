"""How a file task reaches its files. Where values are put into a path, nothing leads out of the folder that is written
in the package, not even a link that somebody puts there while the task runs: folders are opened one in the other, and
what is done with a file is done by its name in a folder that is open.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headrace.errors import FileTaskError
from headrace.model.written_folder import is_below, is_written, written_folder
from headrace.sources.globbing import shown_name

_MOST_LINKS: Final = 40
# Of each setting; one step of a task needs few, and a pattern may match files in any number of folders.
_MOST_OPEN: Final = 16
_OPEN_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Reached(str):
    """A path below a folder that is open, and how it is shown."""

    __slots__ = ("shown",)
    shown: str


def shown_path(path: str) -> str:
    """How a path is shown, reached or not."""
    return path.shown if isinstance(path, Reached) else path


class Reach:
    """The folders of one setting of a task. `texts`: as they are written in the package. `is_free`: values may lead
    anywhere. As a context manager it closes its folders behind the block.
    """

    def __init__(self, folder: Path, texts: Iterable[object], *, is_free: bool) -> None:
        self._is_free = is_free
        self._written: set[str] = set()
        self._bounds: set[str] = set()
        for text in texts:
            named = os.path.normpath(folder / written_folder(text))
            (self._written if is_written(text) else self._bounds).add(named)
        self._open: dict[tuple[str, ...], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def bound(self, path: str) -> str | None:
        """The folder that an absolute path must not leave; None if it may. Raises FileTaskError if it does so as it is
        written.
        """
        if self._is_free:
            return None
        around = [bound for bound in self._bounds if is_below(path, bound)]
        if around:
            return max(around, key=len)
        if not self._bounds or any(is_below(path, named) for named in self._written):
            return None
        raise _leads_out(path, "the path itself", min(self._bounds))

    def at(self, path: str, *, follow: bool = False) -> str:
        """The path as it is given to the system: the link itself, or with `follow` what it leads to. Raises OSError,
        and FileTaskError if a link leads out.
        """
        bound = self.bound(path)
        if bound is None or path == bound:
            return path
        walk = _Walk(bound, path)
        try:
            name = walk.to_name(follow=follow)
            reached = Reached(f"/proc/self/fd/{self._kept(walk)}/{name}")
        finally:
            walk.close()
        reached.shown = path
        return reached

    def flush(self, folders: Iterable[str]) -> None:
        """The names in the folders are on disk when this returns, where the file system can do that."""
        for folder in folders:
            with suppress(OSError):  # its last file may have gone, and the folder after it
                flush_folder(os.path.dirname(self.at(os.path.join(folder, "_"))))

    def make_folders(self, path: str) -> None:
        """As `os.makedirs`, where folders may be there already."""
        bound = self.bound(path)
        os.makedirs(path if bound is None else bound, exist_ok=True)
        if bound is not None and path != bound:
            walk = _Walk(bound, path)
            try:
                walk.make()
            finally:
                walk.close()

    def _kept(self, walk: _Walk) -> int:
        """A descriptor of the folder in which a walk has ended, which stays open."""
        key = (walk.bound, *walk.below)
        descriptor = self._open.pop(key, None)
        if descriptor is None:
            descriptor = os.dup(walk.folder)
        self._open[key] = descriptor  # as the latest one
        if len(self._open) > _MOST_OPEN:
            os.close(self._open.pop(next(iter(self._open))))
        return descriptor


class _Walk:
    """From a folder to a path below it, folder by folder."""

    def __init__(self, bound: str, path: str) -> None:
        self.bound = bound
        self._path = path
        self._names = list(Path(os.path.relpath(path, bound)).parts)
        self._folders = [os.open(bound, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._links = 0
        self.below: list[str] = []

    @property
    def folder(self) -> int:
        """The descriptor of the folder that it is in."""
        return self._folders[-1]

    def close(self) -> None:
        """Closes its folders."""
        while self._folders:
            os.close(self._folders.pop())

    def to_name(self, *, follow: bool) -> str:
        """Goes into the folder of the path, and returns its name there."""
        while self._names:
            name = self._names.pop(0)
            if self._names or name == "..":
                self._enter(name)
            elif not follow or not self._is_link(name):
                return name
            else:
                self._follow(name)
        return "."

    def make(self) -> None:
        """Goes to the path itself, and makes the folders that are missing."""
        while self._names:
            name = self._names.pop(0)
            if name != "..":
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self.folder)
            self._enter(name)

    def _enter(self, name: str) -> None:
        if name == "..":
            if len(self._folders) == 1:
                raise _leads_out(self._path, "a link in it", self.bound)
            os.close(self._folders.pop())
            self.below.pop()
            return
        try:
            self._folders.append(os.open(name, _OPEN_FOLDER, dir_fd=self.folder))
            self.below.append(name)
        except NotADirectoryError:
            if not self._is_link(name):
                raise
            self._follow(name)

    def _is_link(self, name: str) -> bool:
        try:
            os.readlink(name, dir_fd=self.folder)
        except OSError:
            return False
        return True

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(name, dir_fd=self.folder)
        if os.path.isabs(target):
            real = os.readlink(f"/proc/self/fd/{self._folders[0]}")
            around = next((bound for bound in (self.bound, real) if is_below(target, bound)), None)
            if around is None:
                raise _leads_out(self._path, f"a link to {shown_name(target)}", self.bound)
            target = os.path.relpath(target, around)
            while len(self._folders) > 1:
                os.close(self._folders.pop())
            self.below.clear()
        self._names = [*Path(target).parts, *self._names]


def flush_folder(path: str) -> None:
    """The names in a folder are on disk when this returns, where the file system can do that."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_written(folder: Path, patterns: Sequence[str], reach: Reach) -> None:
    """Raises FileTaskError if a pattern leads out of its folder as it is written: nothing is listed there."""
    for pattern in patterns:
        reach.bound(os.path.normpath(folder / pattern))


def _leads_out(path: str, what: str, bound: str) -> FileTaskError:
    return FileTaskError(
        "a value leads out of the folder that the package names",
        at={"file": shown_name(path)},
        found=what,
        expected=f"a path below {bound}",
        hint="Correct the value. If it may lead anywhere, write `outside: true` and run the package with --trust.",
    )
