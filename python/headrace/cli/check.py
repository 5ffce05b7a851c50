"""`headrace check`: is the package well-formed? Nothing but the package, its layouts and the parameters is read."""

from __future__ import annotations

import os
from pathlib import Path

from headrace import model
from headrace.cli import units
from headrace.cli.console import print_json, result_width
from headrace.cli.text_table import TextColumn, render_table
from headrace.run.tasks import data_flows


def run_check(path: Path, sets: list[str], connections: list[str], *, json_output: bool) -> int:
    """Check and print what was found; problems are raised as one PackageError. Returns the exit code."""
    package = model.load_package(path, sets=sets, connections=connections, streams=None, environ=os.environ)
    if json_output:
        print_json({"status": "success", **model.describe(package)})
    else:
        print(render_check(package, width=result_width()), flush=True)
    return 0


def render_check(package: model.BoundPackage, *, width: int) -> str:
    """What was found, for people."""
    flows = list(data_flows(package.tasks))
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
            flow.id,
            f"{flow.destination.connection.name}.{flow.destination.table}",
            str(len(flow.source.layout.columns)),
            flow.destination.target,
            flow.destination.load,
            "yes" if when else "no",
        ]
        for flow, when in flows
    ]
    parts = [f"package {package.name} is well-formed: {units.plural(len(flows), 'task')}"]
    if rows:
        parts.append(render_table(columns, rows, width=width))
    described = model.describe(package)
    parts.append(_named_values("parameters", described["parameters"]))
    parts.append(_named_values("connections", described["connections"]))
    return "\n\n".join(part for part in parts if part)


def _named_values(heading: str, values: object) -> str:
    """A heading and one line per value, lists as --set takes them; empty without values."""
    if not isinstance(values, dict) or not values:
        return ""
    return "\n".join([f"{heading}:", *(f"  {name} = {_shown(value)}" for name, value in values.items())])


def _shown(value: object) -> str:
    if isinstance(value, dict):  # a connection
        return f"{value['type']}:{value.get('path', '')}"
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
