"""Cases of public test suites, and the layout that says what the options of each case say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SUITES: Final = ("csv_spectrum", "commons_csv", "go", "rust_csv_core", "cpython", "papaparse")
_FOLDER: Final = Path(__file__).parent / "suites"
_BLANKS_BEFORE: Final = {"trim": "left", "blanks_around_qualifier": True}
Row = list[str]


@dataclass(frozen=True)
class Case:
    """One case. `error`: what the suite says is wrong with the text; `rows` are those that it has read all the same."""

    suite: str
    name: str
    text: bytes
    options: Mapping[str, Any]
    rows: list[Row]
    error: str | None

    @property
    def key(self) -> str:
        """Names it among all."""
        return f"{self.suite}: {self.name}"

    def layout(self) -> dict[str, Any]:
        """The layout in the words of a package."""
        own = _OPTIONS[self.suite](self.options)
        if b"\r" in self.text and b"\n" not in self.text and self.suite in ("rust_csv_core", "papaparse"):
            own.setdefault("row_end", "cr")  # both take each of CR, LF and CRLF; a layout has to say CR
        width = own.pop("width", 0) or max(map(len, self.rows), default=1) or 1
        if own.pop("first_row_decides", False):
            width = len(self.rows[0]) if self.rows else 1
        elif any(len(row) != width for row in self.rows) and self.error is None:
            own["short_rows"] = "fill"
        columns = [{"name": f"c{number}", "type": "string"} for number in range(1, width + 1)]
        layout = {"delimiter": ",", "qualifier": '"', "empty": "text", **own, "columns": columns}
        if self.suite not in ("go", "commons_csv") and self.error is None and layout["qualifier"] is not None:
            layout["stray_qualifiers"] = "keep"
        return layout


def cases() -> list[Case]:
    """All cases, suite after suite."""
    return [
        Case(suite, case["name"], _text(case), case["options"], _joined(case["rows"]), case.get("error"))
        for suite in SUITES
        for case in json.loads((_FOLDER / f"{suite}.json").read_text(encoding="utf-8"))["cases"]
    ]


def _text(case: Mapping[str, Any]) -> bytes:
    if "input_hex" in case:
        return bytes.fromhex(case["input_hex"])
    return _piece(case["input"]).encode()


def _joined(rows: list[list[Any]]) -> list[Row]:
    return [[_piece(value) for value in row] for row in rows]


def _piece(value: Any) -> str:
    """A text; a long one is written as pieces with how often each stands there."""
    return "".join(text * count for text, count in value) if isinstance(value, list) else str(value)


def _go(options: Mapping[str, Any]) -> dict[str, Any]:
    layout: dict[str, Any] = {}
    if "Comma" in options:
        layout["delimiter"] = options["Comma"]
    if "Comment" in options:
        layout["comment"] = options["Comment"]
    if options.get("TrimLeadingSpace"):
        layout.update(_BLANKS_BEFORE)
    fields = options.get("FieldsPerRecord")
    if fields is not None:
        layout.update({"first_row_decides": True} if fields == 0 else {"width": fields})
    if options.get("LazyQuotes"):
        layout["stray_qualifiers"] = "lenient"
    return layout


def _commons(options: Mapping[str, str]) -> dict[str, Any]:
    layout: dict[str, Any] = {}
    if "CommentStart" in options:
        layout["comment"] = options["CommentStart"]
    if options.get("IgnoreSpaces") == "true":
        layout.update({"trim": "both", "blanks_around_qualifier": True})
    if options.get("IgnoreEmpty") != "true":
        layout.update({"blank_rows": "keep", "short_rows": "fill"})
    return layout


def _papaparse(options: Mapping[str, Any]) -> dict[str, Any]:
    layout: dict[str, Any] = {}
    comments = options.get("comments")
    if comments is not None:
        layout["comment"] = "#" if comments is True else str(comments)
    if "delimiter" in options:
        layout["delimiter"] = options["delimiter"]
    if "newline" in options:
        layout["row_end"] = {"\n": "lf", "\r": "cr", "\r\n": "crlf"}[options["newline"]]
    return layout  # fastMode is an optimization; header, transformHeader and preview are no layouts


def _rust(options: Mapping[str, str]) -> dict[str, Any]:
    names = {"delimiter": "delimiter", "quote": "qualifier", "comment": "comment", "terminator": "row_end"}
    found = {name: re.search(r"b'(\\?.)'", text) for name, text in options.items()}
    byte = {name: match[1].replace("\\t", "\t").replace("\\n", "\n") for name, match in found.items() if match}
    layout: dict[str, Any] = {names[name]: text for name, text in byte.items() if name in names}
    if "escape" in byte:
        layout["escape"] = byte["escape"].replace("\\\\", "\\")
    if "ascii" in options:
        layout.update({"delimiter": "\x1f", "row_end": "\x1e"})
    return {**layout, "qualifier": None} if options.get("quoting") == "false" else layout


def _cpython(options: Mapping[str, Any]) -> dict[str, Any]:
    layout: dict[str, Any] = {}
    if "delimiter" in options:
        layout["delimiter"] = options["delimiter"]
    if "quotechar" in options:
        layout["qualifier"] = options["quotechar"]
    if options.get("quoting") == "QUOTE_NONE":
        layout["qualifier"] = None
    if options.get("escapechar") is not None:
        layout["escape"] = options["escapechar"]
    if options.get("skipinitialspace"):
        layout.update(_BLANKS_BEFORE)
    return layout  # doublequote: always; strict: always


_OPTIONS: Final[dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "csv_spectrum": lambda _options: {},
    "commons_csv": _commons,
    "go": _go,
    "papaparse": _papaparse,
    "rust_csv_core": _rust,
    "cpython": _cpython,
}
