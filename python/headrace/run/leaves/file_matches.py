"""The files that a file task is about: names, and patterns as those of file sources."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.errors import FileTaskError
from headrace.run.leaves.file_failures import failures_of
from headrace.sources.globbing import is_literal, kind_of, names_matching, natural_key, shown_name, what_is_there

_LISTED_NOTES: Final = 3


@dataclass
class Matches:
    """Absolute paths, each once, in natural order; and what was left out, and why. `are_many`: not one plain name."""

    paths: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    are_many: bool = False


def find(
    folder: Path, patterns: Sequence[str], *, missing: str, takes_folders: bool, leave_out: Callable[[str], str | None]
) -> Matches:
    """The files. A name without wildcards is itself, also if it is a link, or starts with a dot. Patterns match no
    folders and nothing behind a link to a folder. `leave_out`: why a file that a pattern matches is none.

    Raises FileTaskError: no such file (unless `missing` is `skip`), no file at all.
    """
    _require_folder(folder)
    matches = Matches(are_many=len(patterns) > 1 or not all(is_literal(str(folder), pattern) for pattern in patterns))
    found: dict[str, None] = {}
    for pattern in patterns:
        if is_literal(str(folder), pattern):
            paths = _named(folder, pattern, takes_folders)
        else:
            paths = _matching(folder, pattern, leave_out, matches.notes)
        if not paths and missing == "error":
            raise _none(folder, pattern, matches.notes)
        found.update(dict.fromkeys(paths))
    matches.paths = sorted(found, key=natural_key)
    return matches


def _require_folder(folder: Path) -> None:
    with failures_of("read the folder of the files", str(folder)):
        os.scandir(folder).close()


def _named(folder: Path, name: str, takes_folders: bool) -> list[str]:
    path = os.path.normpath(folder / name)
    if not os.path.lexists(path):
        return []
    kind = None if os.path.islink(path) else kind_of(path)
    if kind is None or (kind == "folder" and takes_folders):
        return [_readable(path)]
    if kind == "folder":
        raise FileTaskError(
            "a folder stands where files are expected",
            at={"file": path},
            hint=f"Name the files in it by a pattern, such as `{name.rstrip('/')}/*`.",
        )
    raise FileTaskError(f"a {kind} is no file", at={"file": path}, expected="a file")


def _matching(folder: Path, pattern: str, leave_out: Callable[[str], str | None], notes: list[str]) -> list[str]:
    literal_parts = len(_literal_parts(pattern))
    paths = []
    for name, kind in names_matching(str(folder), pattern):
        path = os.path.normpath(folder / name)
        is_link = os.path.islink(path)
        reason = None
        if kind is not None and not (is_link and kind != "folder"):
            reason = None if kind == "folder" and "**" in pattern else f"is a {kind}"
            if reason is None:
                continue
        elif _is_behind_a_link(folder, Path(name).parts, literal_parts):
            reason = "is behind a link to a folder"
        else:
            reason = leave_out(path)
        if reason is None:
            paths.append(_readable(path))
        else:
            notes.append(f"{shown_name(path)} matches `{pattern}` but {reason}: it is left out")
    return paths


def _literal_parts(pattern: str) -> Sequence[str]:
    """The folders with which the pattern begins."""
    return list(itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))


def _is_behind_a_link(folder: Path, parts: Sequence[str], literal_parts: int) -> bool:
    """Folders that the pattern names are what its author means, whatever they are; those that it finds are not."""
    return any(os.path.islink(folder.joinpath(*parts[:end])) for end in range(literal_parts + 1, len(parts)))


def _readable(path: str) -> str:
    if shown_name(path) != path:
        raise FileTaskError(
            "the name of a file is not UTF-8",
            at={"file": shown_name(path)},
            hint="Rename the file, or use a pattern that does not match it.",
        )
    return path


def _none(folder: Path, pattern: str, notes: Sequence[str]) -> FileTaskError:
    is_name = is_literal(str(folder), pattern)
    parts = Path(pattern).parts[:-1] if is_name else _literal_parts(pattern)
    where = os.path.normpath(folder.joinpath(*parts))
    found = what_is_there(where, [pattern]) if os.path.isdir(where) else f"there is no folder {where}"
    return FileTaskError(
        "there is no such file" if is_name else "no file matches a pattern of the task",
        at={"file": os.path.normpath(folder / pattern)} if is_name else {"folder": str(folder)},
        found="\n".join([found, *notes[:_LISTED_NOTES]]),
        expected=None if is_name else f"files matching `{pattern}`",
        hint="Correct the path; `missing: skip` passes over files that do not exist.",
    )
