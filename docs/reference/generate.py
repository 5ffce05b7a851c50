"""Writes the pages of the reference that are made from the program itself: `make docs`.

`--check` writes nothing and fails if a page is not current; the tests call `generated()` for that. The page of the
command line is made here, the others in `pages/`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.reference.pages import errors, events, limits, python, tasks  # noqa: E402 it is found only now
from headrace.cli.app import app  # noqa: E402
from headrace.errors import (  # noqa: E402
    EXIT_CANCELLED,
    EXIT_COMMAND_LINE,
    EXIT_FAILED,
    EXIT_PACKAGE_INVALID,
    EXIT_PACKAGE_NOT_FOUND,
)

FOLDER = Path(__file__).parent

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


def generated() -> dict[str, str]:
    """All pages, by the name of their file."""
    return {
        "cli.md": reference(),
        "tasks.md": tasks.page(),
        "events.md": events.page(),
        "limits.md": limits.page(),
        "errors.md": errors.page(),
        "python.md": python.page(),
    }


def main() -> None:
    """Write the pages, or compare them."""
    for name, text in generated().items():
        path = FOLDER / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"docs/reference/{name} is not current: run `make docs`")


if __name__ == "__main__":
    main()
