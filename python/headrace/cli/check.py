"""`headrace check`: is the package well-formed? Nothing but the package, its layouts and the parameters is read.

With `--connect` the destinations are opened too, to look at them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import headrace.run as run
from headrace import model, units
from headrace.cli.check_connect import describe_destination, is_ready, render_destination
from headrace.cli.console import print_json, print_result, result_width, say
from headrace.cli.control_flow import (
    control_heading,
    count_tasks,
    render_control,
    says_nothing_more,
    trust_lines,
)
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import HeadraceError, TargetError, on_one_line
from headrace.model.url_logins import REPLACEMENT

Document = Mapping[str, Any]
_SHOWN_FLOWS: Final = 60
_FLOWS: Final = (
    TextColumn("task", words=True),
    TextColumn("table", words=True),
    TextColumn("columns"),
    TextColumn("target", words=True),
    TextColumn("load", words=True, drop_when_narrow=1),
    TextColumn("runs", words=True),
)


def run_check(
    path: Path,
    sets: list[str],
    connections: list[str],
    *,
    json_output: bool,
    connect: bool = False,
    environment: str | None = None,
    trusted: bool = False,
) -> int:
    """Check and print what was found; problems are raised as one PackageError. Returns the exit code."""
    package = model.load_package(path, sets=sets, connections=connections, environment=environment, environ=os.environ)
    package = run.with_trust(package, trusted, os.environ)
    described = model.describe(package)
    destinations = list(run.inspect_destinations(package)) if connect else []
    error = _not_ready(destinations)
    if json_output:
        status = {"status": "success"} if error is None else {"status": "failed", "error": error.to_dict()}
        found = {"destinations": [describe_destination(item) for item in destinations]} if connect else {}
        print_json({**status, **described, **found})
    else:
        width = result_width()
        parts = [render_check(described, width=width)]
        print_result("\n\n".join([*parts, *(render_destination(item, width=width) for item in destinations)]))
    if error is None:
        return 0
    for shown in [item.error for item in destinations if item.error is not None] or [error]:
        say(shown.render())
    return error.exit_code


def _not_ready(destinations: Sequence[run.Destination]) -> HeadraceError | None:
    """The first reason why a destination cannot be loaded into."""
    failed = next((item for item in destinations if not is_ready(item)), None)
    if failed is None:
        return None
    return failed.error or TargetError(
        f"connection {failed.connection} cannot be loaded into",
        found="\n".join(failed.problems),
        hint="Mend that, and check again.",
    )


def _columns(flow: Document) -> int:
    """Those that are read, made and added; of a join, a union or a query those that come out; outputs have those that
    came.
    """
    layout = flow["source"]["layout"]
    together = flow.get("join") or flow.get("union")
    if together:
        columns = len(together["columns"])
    else:
        columns = len(layout["columns"]) + len(layout.get("made", []))
    for transform in flow.get("transforms", ()):
        if "in_front_of" in transform:
            continue
        if transform["kind"] in ("sql", "union"):
            columns = len(transform["columns"] or ())
        elif transform["kind"] == "lookup" and transform["name"] in transform.get("taken", [transform["name"]]):
            columns += len(transform["added"])
    return columns


def render_check(package: Document, *, width: int) -> str:
    """What was found, for people. Made from the description alone, which holds no secrets."""
    flows: Sequence[Document] = package["data_flows"]
    rows = [
        [
            on_one_line(flow["task"]),
            on_one_line(f"{flow['destination']['connection']}.{flow['destination']['table']}"),
            str(_columns(flow)),
            flow["destination"]["target"],
            flow["destination"]["load"],
            "yes" if flow["when"] else "no",
        ]
        for flow in flows[:_SHOWN_FLOWS]
    ]
    parts = [f"package {package['package']} is well-formed: {units.plural(count_tasks(package), 'task')}"]
    if not says_nothing_more(package, {flow.get("flow_of") or flow["task"] for flow in flows}):
        parts.append("\n".join([control_heading(package, width=width), *render_control(package, width=width)]))
    if rows:
        more = len(flows) - _SHOWN_FLOWS
        table = render_table(_FLOWS, rows, width=width)
        parts.append(f"{table}\nand {units.plural(more, 'more data flow')}: --json has them" if more > 0 else table)
    parts.append("\n".join(trust_lines(package, width=width)))
    parts.append(_named_values("parameters", package["parameters"]))
    parts.append(_named_values("connections", package["connections"]))
    return "\n\n".join(part for part in parts if part)


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
