"""Terminals and JSON documents. rich honours NO_COLOR and the width of the terminal by itself."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

# Used when stdout is not a terminal, so that files look the same wherever they are made.
DEFAULT_WIDTH: Final = 80


def talk_console() -> Console:
    """A console on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def result_width() -> int:
    """Characters per line of results on stdout."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if sys.stdout.isatty() else DEFAULT_WIDTH


def print_json(document: Mapping[str, Any]) -> None:
    """The one JSON document of a command."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """One line of talk."""
    print(text, file=sys.stderr, flush=True)


def shown_path(path: str | Path) -> str:
    """A path as one would type it here: relative if it is below the current folder."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(path)
