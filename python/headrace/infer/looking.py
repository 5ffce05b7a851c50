"""A look at files: the dialect of each, from its beginning and its end."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.errors import SourceError
from headrace.infer.checking import MAXIMUM_ROW_BYTES
from headrace.infer.dialect import Choice, Given, choose_dialect
from headrace.infer.not_delimited import refuse_other_formats
from headrace.infer.wording import count

# What the look reads from the front of a file.
LOOK_BYTES: Final = 1_000_000
# What it reads where no row ends in that: the last holds the longest row with its end.
_FURTHER_LOOKS: Final = (8_000_000, MAXIMUM_ROW_BYTES + 2)

NeverCancelled: Final[Callable[[], bool]] = lambda: False  # noqa: E731


def look_at(
    paths: Sequence[Path], given: Given, is_cancelled: Callable[[], bool] = NeverCancelled
) -> list[tuple[Choice, Mapping[str, Any]]]:
    """The dialect of each file, and what was seen of it."""
    seen: set[Path] = set()
    for path in paths:
        _refuse_stream(path)
        _refuse_wide_characters(path)
        if path.resolve() in seen:
            raise SourceError("a file is given twice", at={"file": str(path)}, hint="Name each file once.")
        seen.add(path.resolve())
    found: list[tuple[Choice, Mapping[str, Any]]] = []
    for path, first in zip(paths, core_look(paths, given, is_cancelled, LOOK_BYTES), strict=True):
        own = _with_a_row(path, first, given, is_cancelled)
        found.append((choose_dialect(own, given), own))
    return found


def core_look(
    paths: Sequence[Path], given: Given, is_cancelled: Callable[[], bool], sample_bytes: int, from_byte: int = 0
) -> list[dict[str, Any]]:
    """What the core sees of each file by the dialects that it may have."""
    spec: dict[str, Any] = {
        "files": [str(path.absolute()) for path in paths],
        "sample_bytes": sample_bytes,
        "from_byte": from_byte,
        "candidates": given.candidates(),
    }
    if given.encoding is not None:
        spec["encoding"] = given.encoding
    if given.ends_with_cr is not None:
        spec["ends_with_cr"] = given.ends_with_cr
    return list(core.look(spec, is_cancelled)["files"])


def _with_a_row(path: Path, first: dict[str, Any], given: Given, is_cancelled: Callable[[], bool]) -> dict[str, Any]:
    """A look that holds a row, or all of the file. Raises SourceError for what is no delimited text, and where no row
    ends as far as one may reach.
    """
    own = first
    for sample_bytes in _FURTHER_LOOKS:
        if own["is_whole"] or _holds_a_row(own):
            return own
        refuse_other_formats(own)
        own = core_look([path], given, is_cancelled, sample_bytes)[0]
    if not own["is_whole"] and not _holds_a_row(own):
        what = "no row end" if own["head_lines"] else "blank lines only"
        raise SourceError(
            "a file holds no row that could be loaded",
            at={"file": str(path)},
            found=f"{what} in the first {count(_FURTHER_LOOKS[-1], 'byte')}",
            expected="delimited text in rows that end with line feeds or carriage returns",
            hint="Write its layout by hand if rows end otherwise.",
        )
    return own


def _holds_a_row(look: Mapping[str, Any]) -> bool:
    return any(shape is not None and shape["rows"] for shape in look["candidates"])


def _refuse_stream(path: Path) -> None:
    """Files are read twice."""
    try:
        is_stream = str(path) == "-" or stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return  # the core says why it cannot be read
    if is_stream:
        raise SourceError(
            "a pipe cannot be inferred: it can be read only once",
            at={"file": str(path)},
            expected="a file",
            hint="Write it to a file first.",
        )


def _refuse_wide_characters(path: Path) -> None:
    """Raise SourceError for text in UTF-32, by its mark."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return
    if head in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        raise SourceError(
            "a file is in an encoding that is not read",
            at={"file": str(path)},
            found="the byte order mark of UTF-32",
            expected="UTF-8, UTF-16, or a code page",
            hint="Write it as UTF-8 first, for example with `iconv -f UTF-32 -t UTF-8`.",
        )
