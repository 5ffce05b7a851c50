"""`headrace schema`: the JSON Schema of the file formats."""

from __future__ import annotations

from headrace import model
from headrace.cli.console import print_json


def run_schema(of: str) -> int:
    """Print the schema of `package`, `layout` or `environments` files; returns the exit code."""
    schemas = {
        "package": model.package_schema,
        "layout": model.layout_schema,
        "environments": model.environments_schema,
    }
    print_json(schemas[of]())
    return 0
