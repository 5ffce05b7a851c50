"""`headrace schema`: the JSON Schema of the file formats."""

from __future__ import annotations

from headrace import model
from headrace.cli.console import print_json


def run_schema(of: str) -> int:
    """Print the schema of `package` or `layout` files; returns the exit code."""
    print_json(model.package_schema() if of == "package" else model.layout_schema())
    return 0
