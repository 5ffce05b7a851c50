"""Writes cli.md, the reference of the command line, from the program itself: `make docs`.

`--check` writes nothing and fails if the file is not current; the tests call `reference()` for that.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import typer

from headrace.cli.app import app
from headrace.errors import (
    EXIT_CANCELLED,
    EXIT_COMMAND_LINE,
    EXIT_FAILED,
    EXIT_PACKAGE_INVALID,
    EXIT_PACKAGE_NOT_FOUND,
)

OUTPUT = Path(__file__).with_name("cli.md")

_HEAD = f"""# Command line

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

Results go to stdout, progress and errors to stderr. With `--json` a command prints exactly one JSON document on stdout,
also when it fails. `NO_COLOR` and the width of the terminal are respected; without a terminal progress is plain lines.

| exit code | meaning |
| ---: | --- |
| 0 | success |
| {EXIT_FAILED} | failed |
| {EXIT_CANCELLED} | cancelled |
| {EXIT_PACKAGE_NOT_FOUND} | package not found |
| {EXIT_PACKAGE_INVALID} | package cannot be loaded |
| {EXIT_COMMAND_LINE} | command line wrong |

An error always has this shape, and only lines that apply:

```
error: what failed on what
  at: file, row 12, byte 345
  found: what was there
  expected: what should have been there

hint: one action
```
"""


def reference() -> str:
    """The whole page."""
    os.environ["COLUMNS"] = "80"
    sections = [_HEAD, *_sections(typer.main.get_command(app), "headrace", None)]
    return "\n".join(sections)


def _sections(command: Any, path: str, parent: Any) -> list[str]:
    """The section of a command and those of its subcommands. `Any`: typer's command classes are not public."""
    with command.make_context(path.rsplit(" ", 1)[-1], [], parent=parent, resilient_parsing=True) as context:
        own = f"## `{path}`\n\n```\n{context.get_help()}\n```\n"
        children = [
            section
            for name in getattr(command, "commands", {})
            for section in _sections(command.commands[name], f"{path} {name}", context)
        ]
    return [own, *children]


def main() -> None:
    """Write the page, or compare it."""
    text = reference()
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text(encoding="utf-8") != text:
            sys.exit("docs/reference/cli.md is not current: run `make docs`")
    else:
        OUTPUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
