"""PyYAML's syntax errors in the words of this project: what is wrong, where, and what to do."""

from __future__ import annotations

import re

import yaml

from headrace.model.suggest import quote
from headrace.model.yaml_nodes import Mark, YamlSyntaxError

_RESERVED = "a text starts with a character that YAML reserves"

# (pattern of PyYAML's wording, what, hint); the first that matches wins.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (r"found character '\\t'", "a tab is used for indentation", "Indent with blanks; YAML does not allow tabs."),
    (
        r"mapping values are not allowed here",
        "a `:` stands where no key can be",
        "Check the indentation of this line; quote a text that contains `: `.",
    ),
    (r"could not find expected ':'", "a key has no `:` after it", "Write `key: value`; check the lines just below."),
    (
        r"expected ',' or '\]'",
        "a list is not closed",
        "Close the list with `]`, separate its values with `,`, and quote any `${...}` inside it.",
    ),
    (
        r"expected ',' or '\}'",
        "a mapping in braces is not closed",
        "Close it with `}`, separate its entries with `,`, and quote any `${...}` inside it.",
    ),
    (
        r"expected <block end>, but found '(<scalar>|\{|\[|<anchor>|<alias>)'",
        "there is text after the end of a value",
        "Quote the whole value; if it is a key, indent it as its neighbours.",
    ),
    (
        r"expected <block end>",
        "the indentation does not fit the lines above",
        "Indent this line as its neighbours of the same level.",
    ),
    (r"unexpected end of stream", "a quoted text is not closed", "Close the quotation mark."),
    (r"found character '[@`%]' that cannot start", _RESERVED, "Quote the text."),
    (
        r"expected alphabetic or numeric character",
        _RESERVED,
        'Quote a text that starts with `*` or `&`, as in "*.tbl".',
    ),
    (
        r"unknown escape character",
        "a double-quoted text holds an unknown escape",
        "Write the backslash twice, or use single quotes.",
    ),
    (
        r"special characters are not allowed|unacceptable character",
        "the file holds a control character",
        'Remove it; in a double-quoted text write it as an escape, such as "\\x01".',
    ),
)
# With these PyYAML names the place where it noticed; the place where the construct starts is what helps.
_AT_START = re.compile(r"unexpected end of stream|could not find expected ':'")
_UNCLOSED = re.compile(r"expected ',' or '([\]}])'")
_LARGEST_CODE_POINT = 0x10FFFF


def describe_yaml_error(error: yaml.YAMLError, content: bytes) -> YamlSyntaxError:
    """The same error with a place, the text found there and a hint."""
    text = content.decode("utf-8-sig", errors="replace")
    wording, mark, start = _wording_and_marks(error, text)
    if start is not None and _AT_START.search(wording):
        mark = start
    unclosed = _UNCLOSED.search(wording)
    expected = None
    if unclosed and start is not None:
        expected = f"`{unclosed[1]}` for the one opened in line {start.line}, column {start.column}"
    found = _line_at(text, mark)
    if unclosed and _full_line_at(text, mark)[mark.column - 2 : mark.column] == "${":
        return YamlSyntaxError(
            mark,
            "a reference inside braces or brackets is not quoted",
            found=found,
            expected="the text in quotation marks",
            hint='Quote it, as in {path: "${data}"}.',
        )
    for pattern, what, hint in _KNOWN:
        if re.search(pattern, wording):
            return YamlSyntaxError(mark, what, found=found, expected=expected, hint=hint)
    what = f"the file is not valid YAML: {wording}"
    return YamlSyntaxError(mark, what, found=found, hint="Check this line and the line above it.")


def describe_escape_error(content: bytes) -> YamlSyntaxError:
    r"""The error for a `\U` escape beyond Unicode, which PyYAML passes to chr() unchecked and without a place."""
    text = content.decode("utf-8-sig", errors="replace")
    mark = Mark(1, 1)
    for escape in re.finditer(r"\\U([0-9A-Fa-f]{8})", text):
        if int(escape[1], 16) > _LARGEST_CODE_POINT:
            mark = _mark_at(text, escape.start())
            break
    return YamlSyntaxError(
        mark,
        "a double-quoted text holds an escape that is no Unicode character",
        found=_line_at(text, mark),
        expected="\\U00000000 to \\U0010FFFF",
        hint="Write the backslash twice, or use single quotes.",
    )


def _wording_and_marks(error: yaml.YAMLError, text: str) -> tuple[str, Mark, Mark | None]:
    """What PyYAML says, where it noticed, and where the construct starts if it says so."""
    if isinstance(error, yaml.MarkedYAMLError):
        place = error.problem_mark or error.context_mark
        start = error.context_mark
        wording = str(error.problem or error.context or "syntax error")
        return (
            wording,
            Mark(1, 1) if place is None else Mark(place.line + 1, place.column + 1),
            None if start is None else Mark(start.line + 1, start.column + 1),
        )
    # A ReaderError counts characters from the start of the text (0-based).
    position = getattr(error, "position", 0)
    wording = str(getattr(error, "reason", "syntax error"))
    return wording, _mark_at(text, position if isinstance(position, int) else 0), None


def _mark_at(text: str, position: int) -> Mark:
    before = text[:position]
    return Mark(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _line_at(text: str, mark: Mark) -> str:
    line = _full_line_at(text, mark).strip()
    return quote(line) if line else "the end of the file"


def _full_line_at(text: str, mark: Mark) -> str:
    # The line breaks that YAML knows; str.splitlines would also split at form feeds and others.
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    return lines[mark.line - 1] if mark.line <= len(lines) else ""
