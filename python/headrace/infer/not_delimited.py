"""Texts that are no delimited files: named and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.errors import SourceError
from headrace.infer.wording import count, either

_BOXES: Final = re.compile(r"[\u2500-\u257f]")
_RULE: Final = re.compile(r"\+[-=+]{2,}\+?")
# As psql, SQL*Plus and others print tables.
_RULE_BELOW_NAMES: Final = re.compile(
    r"[-=]+(\+[-=]+)+|[-=]{3,}( +[-=]{3,})+|[-=]{2,}( +\| +[-=]{2,})+|\|[-=]{3,}([|+-][-=]*)*\|"
)
# Of characters that no text has.
_MOST_CONTROLS: Final = 0.02
_CONTROLS: Final = re.compile(r"[\x02-\x08\x0e-\x1a\x7f-\x84\x86-\x9f]")
_SQL: Final = re.compile(
    r"(INSERT\s+INTO|CREATE\s+(TABLE|DATABASE|SCHEMA)|DROP\s+TABLE|SET\s+\w+\s*=)\s", re.IGNORECASE
)
_MOST_STRETCHES: Final = 10
# Behind a brace a name in quotes, nothing, or the end of the line: no GUID.
_OBJECT: Final = re.compile(r'\{\s*(["}]|$)')
_OTHER_PROGRAM: Final = "Export it as delimited text first."
# Fewer may look alike by chance.
_FEWEST_LINES: Final = 3
_RULE_BETWEEN_BARS: Final = re.compile(r"\|?[-: ]*-[-: ]*(\|[-: ]*-[-: ]*)+\|?")


def refuse_other_formats(look: Mapping[str, Any]) -> None:
    """Raise SourceError for a file that the core saw no delimited text in."""
    lines = [line.strip() for line in look["head_lines"] if line.strip()]
    if not look["size_bytes"] or (look["is_whole"] and not lines):
        raise _refusal(
            look, "a file holds no rows", "no byte" if not look["size_bytes"] else "blank lines only", "Leave it out."
        )
    if not lines:
        return  # what is not blank stands behind the sample
    first = lines[0]
    if sum("\0" in line for line in lines) > len(lines) / 2:
        raise _refusal(look, "a file is no delimited text", "binary data: NUL bytes", _OTHER_PROGRAM)
    text = "".join(lines)
    if len(_CONTROLS.findall(text)) > _MOST_CONTROLS * len(text):
        raise _refusal(look, "a file is no delimited text", "binary data: control characters", _OTHER_PROGRAM)
    is_list = first == "[" or first.startswith(("[{", "[[", '["')) or (first.startswith("[") and _is_json(first))
    if _OBJECT.match(first) or is_list:
        raise _refusal(look, "a file is no delimited text", "JSON", _OTHER_PROGRAM)
    if any(re.match(r"<!doctype html|<html", line, re.IGNORECASE) for line in lines[:3]):
        raise _refusal(look, "a file is no delimited text", "HTML", "Save the table itself as delimited text.")
    if re.match(r"<\?xml|<!--|<[A-Za-z][^|;,\t]*>$|<[A-Za-z].*(</|/>)", first):
        raise _refusal(look, "a file is no delimited text", "XML", _OTHER_PROGRAM)
    statement = next((line for line in lines if not line.startswith(("--", "/*"))), "")
    if _SQL.match(statement):
        raise _refusal(look, "a file is no delimited text", "SQL statements", _OTHER_PROGRAM)
    if any(_BOXES.search(line) for line in lines) or any(
        _RULE.fullmatch(line) or _RULE_BELOW_NAMES.fullmatch(line) for line in lines
    ):
        raise _refusal(
            look,
            "a file is a printed table",
            "lines that draw a frame",
            "Export it as delimited text, without a frame.",
        )
    bars = [line for line in lines if line.startswith("|") and line.endswith("|")]
    if len(bars) == len(lines) and any(_RULE_BETWEEN_BARS.fullmatch(line) for line in lines[:3]):
        raise _refusal(
            look,
            "a file is a printed table",
            "bars and lines around values",
            "Export it as delimited text, without a frame.",
        )


def refuse_fixed_width(look: Mapping[str, Any]) -> None:
    """Raise SourceError for lines without delimiter that are equally long, with blanks in the same places of all."""
    lines = [line for line in look["head_lines"] if line.strip()]
    if not look["is_whole"] and lines:
        lines.pop()  # perhaps cut
    if len(lines) < _FEWEST_LINES or len({len(line) for line in lines}) > 1 or len(set(lines)) == 1:
        return  # one text again and again tells nothing of places
    blank = [all(line[place] == " " for line in lines) for place in range(len(lines[0]))]
    text = [any(line[place] != " " for line in lines) for place in range(len(lines[0]))]
    first, last = text.index(True), len(text) - text[::-1].index(True)
    if any(blank[first:last]):
        raise SourceError(
            "a file has columns of fixed width, which cannot be inferred",
            at={"file": look["path"]},
            found=f"lines of {len(lines[0])} characters; values seem to stand at {_stretches(blank)}",
            expected="delimited text",
            hint="Write its layout by hand: `shape: fixed_width`, with `width` of each column.",
        )


def _stretches(blank: Sequence[bool]) -> str:
    """`1 to 4, 6 to 10 and 17 to 19`: places from 1 that are not blank in all lines."""
    runs = re.finditer("x+", "".join(" " if is_blank else "x" for is_blank in blank))
    texts = [f"{run.start() + 1} to {run.end()}" for run in runs]
    more = len(texts) - _MOST_STRETCHES
    return either(texts, "and") if more <= 0 else f"{', '.join(texts[:_MOST_STRETCHES])} and {count(more)} more places"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _refusal(look: Mapping[str, Any], what: str, found: str, hint: str) -> SourceError:
    return SourceError(what, at={"file": look["path"]}, found=found, expected="delimited text", hint=hint)
