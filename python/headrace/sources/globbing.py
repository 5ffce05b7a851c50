"""File patterns to file paths: which files, in which order, and a helpful error when there are none."""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from headrace.errors import SourceError
from headrace.model import STREAM_PLACEHOLDER

STANDARD_INPUT = "-"
_DIGITS = re.compile(r"(\d+)")
_LISTED_NAMES = 3
# What makes a pattern one for names that are not known; brackets may belong to a name.
_ANY_NAME = frozenset("*?")
_NO_MAGIC = str.maketrans("", "", "*?[]{}")


@dataclass
class FoundFiles:
    """Absolute paths in natural order, each once, and what the plan should say about them."""

    paths: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def natural_key(path: str) -> list[tuple[int, int, str]]:
    """Sort key under which `x.tbl.2` comes before `x.tbl.10`."""
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in _DIGITS.split(path) if part]


def find_files(folder: str, patterns: Sequence[str], streams: int) -> FoundFiles:
    """Files below `folder` that match any of `patterns`; empty if none does.

    `*`, `?`, `[abc]` and `**` match as in a shell, but a file whose name has the brackets of the pattern is that file;
    `{stream}` stands for 1 to `streams`, each of which must exist. Names that start with a dot never match: they are
    files still being written. The name of a folder stands for the regular files directly in it whose names start
    neither with a dot nor with an underscore, the name of a named pipe for the pipe, which no other pattern matches;
    `-` is standard input and comes first.
    Raises SourceError for a missing or unreadable folder, a missing file of `{stream}`, or a name that is not
    UTF-8.
    """
    named = [pattern for pattern in patterns if pattern != STANDARD_INPUT]
    if named:
        _require_folder(folder)
    found: set[str] = set()
    result = FoundFiles()
    for pattern in named:
        if STREAM_PLACEHOLDER in pattern:
            found.update(_stream_files(folder, pattern, streams))
        else:
            found.update(_matches(folder, pattern, result.notes))
    result.paths = [os.path.join(folder, name) for name in sorted(found, key=natural_key)]
    for path in result.paths:
        _refuse_other_encoding(path)
    _note_two_names(result.paths, result.notes)
    if len(named) < len(patterns):
        result.paths.insert(0, STANDARD_INPUT)
    return result


def is_literal(folder: str, pattern: str) -> bool:
    """Whether a pattern stands for itself: it has no wildcard, or a file has its very name, brackets included."""
    if _ANY_NAME.intersection(pattern):
        return False
    return not glob.has_magic(pattern) or os.path.lexists(os.path.join(folder, pattern))


def names_matching(folder: str, pattern: str) -> Iterator[tuple[str, str | None]]:
    """What matches a pattern with wildcards, relative to `folder`, and `kind_of` it. No name starts with a dot."""
    for name in glob.glob(pattern, root_dir=folder, recursive=True):
        if not os.path.basename(name).startswith("."):
            yield name, kind_of(os.path.join(folder, name))


def what_is_there(folder: str, patterns: Sequence[str]) -> str:
    """What a folder has in place of files that match: how many others, and those with the nearest names."""
    listing = _listing(folder)
    near = _nearest(patterns, listing)
    count = f"{len(listing)} files with other names" if len(listing) > 1 else "one file with another name"
    if not listing:
        count = "no file in the folder"
    if near:
        count += f", such as {', '.join(near)}"
    return count


def no_files(
    folder: str, patterns: Sequence[str], source: str, notes: Sequence[str] = (), *, is_lookup: bool = False
) -> SourceError:
    """The error for patterns that match no file; names the nearest files of the folder, and `notes` of the search."""
    return SourceError(
        f"no file matches {'lookup' if is_lookup else 'source'} `{source}`",
        at={"folder": folder},
        found="\n".join([what_is_there(folder, patterns), *notes]),
        expected=f"files matching {_joined(patterns)}",
        hint="Correct the folder or the pattern"
        + ("." if is_lookup else "; `missing: skip` passes over a source without files."),
    )


def _stream_files(folder: str, pattern: str, streams: int) -> list[str]:
    names = [os.path.normpath(pattern.replace(STREAM_PLACEHOLDER, str(number))) for number in range(1, streams + 1)]
    missing = [name for name in names if not os.path.exists(os.path.join(folder, name))]
    if missing and len(missing) < len(names):
        more = f" and {len(missing) - _LISTED_NAMES} more" if len(missing) > _LISTED_NAMES else ""
        raise SourceError(
            f"{len(missing)} of {streams} files of `{pattern}` {'is' if len(missing) == 1 else 'are'} missing",
            at={"folder": folder},
            found=f"no {', '.join(missing[:_LISTED_NAMES])}{more}",
            expected=f"one file for each stream from 1 to {streams}",
            hint=f"Set `streams` to the number of files, or use `{pattern.replace(STREAM_PLACEHOLDER, '*')}`.",
        )
    if missing:
        return []
    for name in names:
        _refuse_folder(os.path.join(folder, name))
    return names


def _matches(folder: str, pattern: str, notes: list[str]) -> list[str]:
    if is_literal(folder, pattern) and os.path.lexists(os.path.join(folder, pattern)):
        return _named(folder, pattern, notes)
    _require_subfolder(folder, pattern)
    names = []
    for name, kind in names_matching(folder, pattern):
        path = os.path.join(folder, name)
        if kind == "named pipe":
            raise SourceError(
                f"the pattern `{pattern}` matches a named pipe",
                at={"file": shown_name(path)},
                expected="files: a pipe is read only if it is named literally",
                hint="Name the pipe in `files`, or use a pattern that does not match it.",
            )
        if kind != "folder":
            names.append(os.path.normpath(name))
        elif "**" not in pattern:
            notes.append(f"{shown_name(path)} matches `{pattern}` but is a folder; it is not read")
    return names


def _named(folder: str, name: str, notes: list[str]) -> list[str]:
    """What a name without wildcards stands for: itself, or the files of a folder."""
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        return [] if os.path.basename(name).startswith(".") else [os.path.normpath(name)]
    _require_folder(path)
    names = []
    for inner in sorted(os.listdir(path)):
        kind = kind_of(os.path.join(path, inner))
        if inner.startswith((".", "_")):
            continue
        if kind is None:
            names.append(os.path.normpath(os.path.join(name, inner)))
        else:
            notes.append(f"{shown_name(os.path.join(path, inner))} is a {kind}; it is not read")
    return names


def kind_of(path: str) -> str | None:
    """What is no file that can be read from its start to its end; None for files, and for what the core refuses."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None
    kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket"}
    kinds |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "device")
    return kinds.get(stat.S_IFMT(mode))


def _note_two_names(paths: Sequence[str], notes: list[str]) -> None:
    """Links: the rows of one file are loaded once for each of its names."""
    first: dict[tuple[int, int], str] = {}
    again: list[str] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        known = first.setdefault((status.st_dev, status.st_ino), path)
        if known != path:
            again.append(f"{shown_name(path)} is another name of {shown_name(known)}")
    if again:
        more = f", and so for {len(again) - 1} more" if len(again) > 1 else ""
        notes.append(f"{again[0]}: its rows are loaded twice{more}")


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise SourceError(
            "a source file is a folder",
            at={"file": path},
            expected="a file for each stream",
            hint=f"To load the files in it, use the pattern `{os.path.basename(path)}/*`.",
        )


def _require_folder(folder: str) -> None:
    """Raises SourceError unless the folder can be listed: a search would take one it cannot read for an empty one."""
    try:
        os.scandir(folder).close()
    except FileNotFoundError as error:
        raise _missing_folder(folder) from error
    except NotADirectoryError as error:
        raise SourceError(
            "the folder of the source files is a file",
            at={"folder": folder},
            hint="Give the folder as the connection's path and the file as its pattern.",
        ) from error
    except OSError as error:
        raise SourceError(
            "cannot read the folder of the source files",
            at={"folder": folder},
            found=error.strerror,
            hint="Get the right to list the folder, or correct the path of the connection.",
        ) from error


def _require_subfolder(folder: str, pattern: str) -> None:
    """The same for the folders that the pattern names literally; one that does not exist has no files."""
    fixed = itertools.takewhile(lambda part: not glob.has_magic(part), Path(os.path.dirname(pattern)).parts)
    path = os.path.join(folder, *fixed)
    if path != folder and os.path.isdir(path):
        _require_folder(path)


def _refuse_other_encoding(path: str) -> None:
    if shown_name(path) != path:
        raise SourceError(
            "the name of a source file is not UTF-8",
            at={"file": shown_name(path)},
            hint="Rename the file, or use a pattern that does not match it.",
        )


def shown_name(name: str) -> str:
    """The name with bytes that are not UTF-8 written as \\xff."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _missing_folder(folder: str) -> SourceError:
    path = Path(folder)
    parent = next((item for item in path.parents if item.is_dir()), None)
    near = get_close_matches(path.name, _folders(path.parent), n=1) if parent == path.parent else []
    hint = f"Did you mean {path.parent / near[0]}?" if near else "Correct the path of the connection."
    return SourceError(
        "the folder of the source files does not exist",
        at={"folder": folder},
        found=None if parent is None else f"{parent} exists",
        hint=hint,
    )


def _folders(parent: Path) -> list[str]:
    try:
        return [item.name for item in parent.iterdir() if item.is_dir()]
    except OSError:
        return []


def _listing(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(shown_name(item.name) for item in entries if not item.name.startswith(".") and item.is_file())
    except OSError:
        return []


def _nearest(patterns: Sequence[str], listing: Sequence[str]) -> list[str]:
    near: list[str] = []
    for pattern in patterns:
        plain = os.path.basename(pattern).translate(_NO_MAGIC)
        near += get_close_matches(plain, listing, n=_LISTED_NAMES, cutoff=0.65)
    return sorted(dict.fromkeys(near), key=natural_key)[:_LISTED_NAMES]


def _joined(patterns: Sequence[str]) -> str:
    return " or ".join(f"`{pattern}`" for pattern in patterns)
