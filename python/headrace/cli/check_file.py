"""`headrace check --file`: what a load of files by a layout would reject."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import units
from headrace.cli.console import print_json, print_result, result_width
from headrace.cli.signals import cancel_on_signals
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import EXIT_FAILED, on_one_line
from headrace.infer import check_files
from headrace.infer.wording import shown
from headrace.model.layout_text import load_layout


@dataclass(frozen=True)
class CheckFileCommand:
    """The command line of `headrace check --file`."""

    files: tuple[Path, ...]
    layout: Path
    streams: int | None
    json_output: bool


def run_check_file(command: CheckFileCommand) -> int:
    """Check and print what was found. Returns the exit code: 1 if a row would be rejected."""
    layout = load_layout(command.layout)
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        report = check_files(command.files, layout, command.streams or os.cpu_count() or 1, cancel.is_set)
    document = check_document(command.files, report)
    if command.json_output:
        print_json(document)
    else:
        print_result(render_check_file(document, width=result_width()))
    return EXIT_FAILED if document["rejected"] else 0


def check_document(files: Sequence[Path], report: Mapping[str, Any]) -> dict[str, Any]:
    """What was found, as data."""
    rejects = report["rejects"]
    return {
        "status": "failed" if rejects["count"] else "success",
        "files": [str(path) for path in files],
        "rows": sum(one["rows"] for one in report["slices"]),
        "rejected": rejects["count"],
        "by_rule": rejects["by_rule"],
        "by_column": rejects["by_column"],
    }


def render_check_file(document: Mapping[str, Any], *, width: int) -> str:
    """What was found, for people."""
    rows, rejected = document["rows"], document["rejected"]
    of_files = f"{units.plural(len(document['files']), 'file')}, {units.plural(rows, 'row')}"
    if not rejected:
        return f"{of_files}: all fit the layout"
    columns = [
        TextColumn("rule", words=True),
        TextColumn("code", words=True, drop_when_narrow=1),
        TextColumn("column", words=True),
        TextColumn("rows"),
        TextColumn("first", words=True),
    ]
    lines = [
        [
            kind["rule"],
            kind["code"],
            "-" if kind["column"] is None else on_one_line(kind["column"]),
            units.count(kind["count"]),
            _first(kind["first"][0]),
        ]
        for kind in document["by_column"]
    ]
    share = f"{100 * rejected / rows:.2f} %"
    return f"{of_files}: {units.count(rejected)} rejected ({share})\n\n{render_table(columns, lines, width=width)}"


def _first(reject: Mapping[str, Any]) -> str:
    name = on_one_line(Path(reject["file"]).name)
    return f"{name}, row {units.count(reject['row'])}: {shown(reject['value'])}"
