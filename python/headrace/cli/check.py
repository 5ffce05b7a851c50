"""`headrace check`: is the package well-formed? Nothing but the package, its layouts and the parameters is read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace import model
from headrace.cli import units
from headrace.cli.console import print_json, print_result, result_width
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import on_one_line
from headrace.model.redaction import REPLACEMENT

Document = Mapping[str, Any]


def run_check(path: Path, sets: list[str], connections: list[str], *, json_output: bool) -> int:
    """Check and print what was found; problems are raised as one PackageError. Returns the exit code."""
    package = model.load_package(path, sets=sets, connections=connections, streams=None, environ=os.environ)
    described = model.describe(package)
    if json_output:
        print_json({"status": "success", **described})
    else:
        print_result(render_check(described, width=result_width()))
    return 0


def render_check(package: Document, *, width: int) -> str:
    """What was found, for people. Made from the description alone, which holds no secrets."""
    flows = list(_data_flows(package["tasks"], enclosing_when=True))
    columns = [
        TextColumn("task", words=True),
        TextColumn("table", words=True),
        TextColumn("columns"),
        TextColumn("target", words=True),
        TextColumn("load", words=True, drop_when_narrow=1),
        TextColumn("runs", words=True),
    ]
    rows = [
        [
            on_one_line(flow["task"]),
            on_one_line(f"{flow['destination']['connection']}.{flow['destination']['table']}"),
            str(len(flow["source"]["layout"]["columns"])),
            flow["destination"]["target"],
            flow["destination"]["load"],
            "yes" if when else "no",
        ]
        for flow, when in flows
    ]
    parts = [f"package {package['package']} is well-formed: {units.plural(len(flows), 'task')}"]
    if rows:
        parts.append(render_table(columns, rows, width=width))
    parts.append(_named_values("parameters", package["parameters"]))
    parts.append(_named_values("connections", package["connections"]))
    return "\n\n".join(part for part in parts if part)


def _data_flows(tasks: Iterable[Document], *, enclosing_when: bool) -> Iterator[tuple[Document, bool]]:
    """Each data flow, and whether it and every foreach around it is switched on."""
    for task in tasks:
        when = enclosing_when and task["when"]
        if "iterations" not in task:
            yield task, when
        for iteration in task.get("iterations", ()):
            yield from _data_flows(iteration["tasks"], enclosing_when=when)


def _named_values(heading: str, values: Document) -> str:
    """A heading and one line per value; empty without values."""
    if not values:
        return ""
    return "\n".join([f"{heading}:", *(f"  {name} = {_shown(value)}" for name, value in values.items())])


def _shown(value: object) -> str:
    """A value as it is written behind --set or --connection; one that is not set cannot be."""
    if value is None:
        return "(not set)"
    if isinstance(value, dict):
        text = _connection(value)
    else:
        text = ",".join(map(_text, value)) if isinstance(value, list) else _text(value)
    return text if REPLACEMENT in text else shlex.quote(on_one_line(text))


def _connection(value: Document) -> str:
    if "path" in value or "host" not in value:
        return f"{value['type']}:{value.get('path', '')}"
    keys = {"host": "host", "port": "port", "dbname": "database", "user": "user", "sslmode": "sslmode"}
    return f"{value['type']}:{' '.join(f'{keyword}={_quoted(value[key])}' for keyword, key in keys.items())}"


def _quoted(text: str) -> str:
    """A value of a connection string."""
    if text and not any(character in " \t\n'\\" for character in text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
