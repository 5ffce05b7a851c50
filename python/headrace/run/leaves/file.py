"""Tasks of kind `file`: copy, move, delete, make and archive. Exactly once, also over several attempts."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.errors import FileTaskError
from headrace.model import FilesConnection
from headrace.model.spec_leaves import FileTaskSpec
from headrace.model.written_folder import texts_with_values
from headrace.run.leaves import file_matches, file_placing
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.file_failures import exists_already, failure, failures_of
from headrace.run.leaves.file_notes import Identity, Notes, Step, step_for
from headrace.run.leaves.file_reach import Reach, check_written, flush_folder

_SHOWN_NOTES: Final = 10
_PACKED_SUFFIXES: Final = frozenset({".gz", ".zst", ".bz2", ".xz", ".zip"})


class FileLeaf:
    """Does what the task says with one file after the other, in the order of their names."""

    def run(self, settings: FileTaskSpec, context: LeafContext) -> LeafResult:
        """Raises FileTaskError. What was done before an error stays done; the next attempt goes on behind it."""
        return _Work(settings, context).run()

    def describe(self, settings: FileTaskSpec) -> Sequence[str]:
        """What is done with what."""
        paths = ", ".join(settings.paths_of(settings.operation) or [])
        to = f" to {settings.to}" if settings.to is not None else ""
        how = " by gzip" if settings.compression == "gzip" else ""
        verbs = {"create": "makes the folder", "copy": "copies"}
        return [f"{verbs.get(settings.operation, settings.operation + 's')} {paths}{to}{how}"]


class _Work:
    """One attempt of one task."""

    def __init__(self, settings: FileTaskSpec, context: LeafContext) -> None:
        self._settings = settings
        self._context = context
        self._operation = settings.operation
        self._folder = _base_folder(settings, context)
        self._is_copy = self._operation == "copy"
        self._from = self._reach(self._operation, settings.paths_of(self._operation) or [])
        self._to = self._reach("to", [] if settings.to is None else [settings.to])
        texts = [str(self._folder), settings.to or "", *(settings.paths_of(self._operation) or [])]
        self._notes = Notes(context.memory, texts, context.package.secrets)
        self._bytes = 0

    def _reach(self, setting: str, values: list[str]) -> Reach:
        """What the values of a setting may lead to. One that a program has made is as it is written."""
        raw = self._context.task.own.get(setting, values)
        texts = [text for text, _ in texts_with_values(raw, values)]
        return Reach(self._folder, texts, is_free=self._settings.outside)

    def run(self) -> LeafResult:
        with self._from, self._to:
            return self._done()

    def _done(self) -> LeafResult:
        if self._operation == "create":
            return self._create()
        steps = self._notes.steps
        if steps is None:
            steps = list(self._listed())
            self._refuse_conflicts(steps)
            self._check()
            if steps:
                self._notes.begin(steps)
        for number, step in enumerate(steps):
            self._check()
            self._do(number, step)
        self._from.flush({os.path.dirname(step.source) for step in steps})
        self._to.flush({os.path.dirname(step.destination) for step in steps if step.destination is not None})
        return LeafResult(details={"files": len(steps), "bytes": self._bytes})

    def _create(self) -> LeafResult:
        paths = self._settings.paths_of("create") or []
        for path in paths:
            self._make_folder(os.path.normpath(self._folder / path), self._from)
        return LeafResult(details={"folders": len(paths)})

    def _check(self) -> None:
        self._context.cancellation.check(f"task {self._context.instance}")

    # What is to be done

    def _listed(self) -> Iterator[Step]:
        """The steps. A second listing would find other files, as this task changes them: it is asked for once."""
        to = self._settings.to
        place = None if to is None else os.path.normpath(self._folder / to)
        check_written(self._folder, self._settings.paths_of(self._operation) or [], self._from)
        if place is not None:
            self._to.bound(place)
        matches = file_matches.find(
            self._folder,
            self._settings.paths_of(self._operation) or [],
            missing=self._settings.missing,
            takes_folders=self._operation == "delete",
            leave_out=lambda path: self._why_not(path, place),
        )
        for note in matches.notes[:_SHOWN_NOTES]:
            self._context.notice(self._context.redact(note))
        if place is not None and to is not None:
            is_folder = to.endswith("/") or self._operation == "archive" or matches.are_many or self._is_folder(place)
            if matches.paths:
                self._make_folder(place if is_folder else os.path.dirname(place), self._to)
        taken: set[str] = set()
        for path in matches.paths:
            destination = None
            if place is not None:
                destination = os.path.join(place, os.path.basename(path)) if is_folder else place
                if self._operation == "archive":
                    destination = self._free_name(destination, taken)
                taken.add(destination)
            with failures_of(f"{self._operation} a file", path):
                reached = self._from.at(path, follow=self._is_copy)
                yield step_for(path, destination, reached, follow_links=self._is_copy)

    def _why_not(self, path: str, place: str | None) -> str | None:
        """A pattern may match what is in the destination already, such as `**/*.csv` what was archived before."""
        if place is not None and self._is_folder(place) and os.path.realpath(os.path.dirname(path)) == _real(place):
            return "is in the destination already"
        return None

    def _free_name(self, destination: str, taken: set[str]) -> str:
        """The name, or one with the run id in it if that is taken."""
        folder, name = os.path.split(destination)
        end = ".gz" if self._settings.compression == "gzip" else ""
        for number in itertools.count():
            candidate = os.path.join(folder, _with_mark(name, self._mark(number)) + end)
            if candidate not in taken and not os.path.lexists(self._to.at(candidate)):
                return candidate
        raise AssertionError

    def _mark(self, number: int) -> str:
        return {0: "", 1: self._context.run_id}.get(number, f"{self._context.run_id}-{number}")

    def _refuse_conflicts(self, steps: Sequence[Step]) -> None:
        """What can be known to fail, before anything is changed."""
        taken: dict[str, str] = {}
        for step in steps:
            if step.destination is None:
                continue
            name = os.path.basename(step.source)
            action = f"{self._operation} {name}"
            if step.destination in taken:
                raise FileTaskError(
                    f"cannot {action}: two files would get the same name",
                    at={"file": step.destination},
                    found=f"{taken[step.destination]} and {step.source}",
                    hint="Use a task for each folder, or a pattern that matches one of them.",
                )
            taken[step.destination] = step.source
            if self._operation == "archive":
                if self._settings.compression == "gzip" and os.path.islink(self._from.at(step.source)):
                    raise FileTaskError(
                        "a link cannot be compressed", at={"file": step.source}, hint="Name the file that it leads to."
                    )
                continue
            self._refuse_destination(step, action)

    def _refuse_destination(self, step: Step, action: str) -> None:
        assert step.destination is not None
        with failures_of(action, step.destination):
            destination = self._to.at(step.destination)
            found = Identity.of(destination, follow_links=self._is_copy)
        if found is None and not os.path.lexists(destination):
            return
        with suppress(OSError):
            if os.path.samefile(self._from.at(step.source), destination) and found == step.identity:
                raise FileTaskError(
                    f"cannot {action}: source and destination are the same file",
                    at={"file": step.source},
                    found=f"`to` leads to {step.destination}",
                    hint="Correct `to`.",
                )
        is_folder = os.path.isdir(destination) and not os.path.islink(destination)
        if is_folder or not self._settings.overwrite:
            raise exists_already(action, destination)

    # Doing it

    def _do(self, number: int, step: Step) -> None:
        action = f"{self._operation} {os.path.basename(step.source)}"
        with failures_of(action, step.source):
            there = self._there(step.source)
        if self._operation == "delete":
            self._delete(step, there, action)
            return
        destination = self._notes.destination_of(number, step)
        assert destination is not None
        if self._is_done(number, step, destination):
            # Killed between the copy's name and the end of the file itself; or of the copy's other name.
            if self._notes.copy_of(number) is not None:
                self._remove_temporary(number, destination)
            if not self._is_copy and there == step.identity:
                with failures_of(action, step.source):
                    os.unlink(self._from.at(step.source))
            self._bytes += step.identity.size
            return
        if there != step.identity:
            raise _not_as_listed(step, there, action)
        self._put(number, step, destination, action)
        self._bytes += step.identity.size

    def _delete(self, step: Step, there: Identity | None, action: str) -> None:
        if there is None:
            return  # that is what was wanted
        if step.is_folder:
            with failures_of(action, step.source):
                os.rmdir(self._from.at(step.source))
        elif there != step.identity:
            self._context.warn(
                self._context.redact(f"{step.source} is kept: it is not the file any more that was to be deleted")
            )
        else:
            with failures_of(action, step.source):
                os.unlink(self._from.at(step.source))
            self._bytes += step.identity.size

    def _there(self, source: str) -> Identity | None:
        """The file as it is now; None if it, or its folder, is gone."""
        try:
            return Identity.of(self._from.at(source, follow=self._is_copy), follow_links=self._is_copy)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _is_done(self, number: int, step: Step, destination: str) -> bool:
        """Whether an earlier attempt has put the file there: the copy that it has noted, or the file itself."""
        expected = {self._notes.copy_of(number)} - {None}
        if not self._is_copy:
            expected.add(step.identity)
        with failures_of("look at a file", destination):
            return Identity.of(self._to.at(destination)) in expected

    def _put(self, number: int, step: Step, destination: str, action: str) -> None:
        """Places the file, or a copy of it, under a name that is free, or as `overwrite` says."""
        is_compressed, name = self._settings.compression == "gzip", os.path.basename(step.source)
        if not self._is_copy and not is_compressed:
            try:
                self._place(number, name, self._from.at(step.source), destination, action)
                return
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise failure(action, destination, error) from error
        with failures_of(action, step.source):
            source = self._from.at(step.source, follow=self._is_copy)
            temporary = self._to.at(self._temporary(number, destination))
        self._remove_temporary(number, destination)
        if os.path.islink(source) and not self._is_copy:
            with failures_of(action, temporary):
                os.symlink(os.readlink(source), temporary)
        else:
            file_placing.copy(source, temporary, compress=is_compressed, check=self._check)
        try:
            with failures_of(action, temporary):
                copy = Identity.of(temporary)
            assert copy is not None
            self._notes.made(number, copy)
            with failures_of(action, destination):
                destination = self._place(number, name, temporary, destination, action)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if not self._is_copy:
            # The copy's name has to be on disk before the file may go.
            flush_folder(os.path.dirname(self._to.at(destination)))
            with failures_of(action, step.source):
                os.unlink(self._from.at(step.source))

    def _place(self, number: int, name: str, source: str, destination: str, action: str) -> str:
        """Gives the file its name; the next free one for an archive. Raises OSError."""
        while True:
            try:
                file_placing.place(source, self._to.at(destination), overwrite=self._settings.overwrite)
                return destination
            except FileExistsError as error:
                if self._operation != "archive":
                    raise exists_already(action, destination) from error
            # Somebody was quicker.
            destination = self._free_name(os.path.join(os.path.dirname(destination), name), set())
            self._notes.renamed(number, destination)

    def _remove_temporary(self, number: int, destination: str) -> None:
        temporary = self._temporary(number, destination)
        with failures_of("remove what an earlier attempt has left", temporary), suppress(FileNotFoundError):
            os.unlink(self._to.at(temporary))

    def _temporary(self, number: int, destination: str) -> str:
        """A name that no pattern matches, of the same length for every file, and the same in every attempt."""
        text = f"{self._context.instance}\0{number}"
        mark = hashlib.sha256(text.encode("utf-8", errors="surrogateescape")).hexdigest()[:12]
        return os.path.join(os.path.dirname(destination), f".headrace-{self._context.run_id}-{mark}")

    def _is_folder(self, place: str) -> bool:
        with suppress(OSError):
            return os.path.isdir(self._to.at(place, follow=True))
        return False

    def _make_folder(self, path: str, reach: Reach) -> None:
        try:
            reach.make_folders(path)
        except FileExistsError as error:
            raise FileTaskError(
                "a file stands where a folder is to be made",
                at={"file": path},
                hint="Rename the file, or choose another name for the folder.",
            ) from error
        except OSError as error:
            raise failure("make a folder", path, error) from error


def _base_folder(settings: FileTaskSpec, context: LeafContext) -> Path:
    if settings.connection is None:
        return Path(os.path.abspath(context.folder))
    connection = context.connection(settings.connection)
    if not isinstance(connection, FilesConnection):
        raise FileTaskError(
            f"the connection `{connection.name}` has no files",
            found=f"type {connection.type}",
            expected="a connection of type files",
            hint="Correct `connection`, or leave it out.",
        )
    return connection.path


def _real(path: str) -> str:
    return os.path.realpath(path)


def _with_mark(name: str, mark: str) -> str:
    """`orders.csv` as `orders.MARK.csv`: patterns for the name's end still match it."""
    if not mark:
        return name
    stem, suffix = os.path.splitext(name)
    if suffix in _PACKED_SUFFIXES:
        stem, inner = os.path.splitext(stem)
        suffix = inner + suffix
    return f"{stem}.{mark}{suffix}"


def _not_as_listed(step: Step, there: Identity | None, action: str) -> FileTaskError:
    return FileTaskError(
        f"cannot {action}: the file {'is gone' if there is None else 'has changed'} since the task began",
        at={"file": step.source},
        found=None if there is None else f"{there.size:,} bytes, {step.identity.size:,} when it was listed",
        hint="Find out who else works on these files; a new run lists them anew.",
    )
