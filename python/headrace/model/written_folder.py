"""The folder that a text of a package names literally, and which the values put into the text must not leave.

`archive/${day}/${name}` names `archive`: whatever `day` and `name` are, the path is below it. A text that begins with a
reference names none of its own: then it is the folder at which its paths start.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from headrace.model.references import ReferenceSyntaxError, parse_text

# Settings of data flows and other tasks whose texts are paths; those of file tasks are looked at when they run.
_PATHS: Final = frozenset({"files", "file", "out"})
# Of these a value without a folder in front of it is the folder, wherever it is.
_FOLDERS: Final = frozenset({"out"})


def is_written(raw: object) -> bool:
    """Whether the text stands in the package as it is: nothing is put into it."""
    return isinstance(raw, str) and all(isinstance(part, str) for part in _parts(raw))


def written_folder(raw: object) -> str:
    """The folder that a text names literally, in front of references and wildcards; empty if it names none."""
    if not isinstance(raw, str):
        return ""
    first = next(iter(_parts(raw)), "")
    folder = os.path.dirname(first) if isinstance(first, str) else ""
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), Path(folder).parts)
    return os.path.join(*parts) if (parts := list(plain)) else ""


def leads_out(raw: object, path: str) -> bool:
    """Whether the values in a text have led its path out of the folder that it names. Links are not looked at."""
    return not is_written(raw) and not is_below(path, written_folder(raw))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it, as both are written; relative ones start at the same place."""
    whole, part = os.path.normpath(folder or "."), os.path.normpath(path)
    if whole == ".":
        return not os.path.isabs(part) and part.split(os.sep)[0] != ".."
    return part == whole or part.startswith(whole.rstrip(os.sep) + os.sep)


def texts_with_values(raw: object, values: list[str]) -> Iterator[tuple[object, str]]:
    """Each value of a setting that takes one text or a list of them, with the text that it comes from: all values of a
    list that is put in as a whole, and of an expression, come from that.
    """
    for number, value in enumerate(values):
        yield (raw[number] if isinstance(raw, list) and len(raw) == len(values) else raw), value


def paths_of(written: object, values: object) -> Iterator[tuple[tuple[str | int, ...], object, str]]:
    """The paths of a task's settings, as they are written and with their values: where, the text, and the path."""
    if not isinstance(written, Mapping) or not isinstance(values, Mapping):
        return
    for key, raw in written.items():
        value = values.get(key)
        if key in _PATHS and isinstance(value, (str, list)):
            texts = [value] if isinstance(value, str) else [item for item in value if isinstance(item, str)]
            found = texts_with_values(raw, texts)
            yield from (((key,), text, path) for text, path in found if key not in _FOLDERS or written_folder(text))
        else:
            yield from (((key, *place), text, path) for place, text, path in paths_of(raw, value))


def _parts(text: str) -> list[object]:
    try:
        return list(parse_text(text))
    except ReferenceSyntaxError:  # it is a problem of its own
        return [text]
