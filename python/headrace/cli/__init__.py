"""The command line. `main` is the entry point of the command `headrace`.

Commands are declared in `app.py`, which imports nothing heavy, so that `headrace --help` answers at once;
a command's work is in the module of its name and is imported when the command runs.
Results go to stdout, talk (progress, notices, errors) to stderr. Exit codes: `headrace.errors`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from headrace import own_process
from headrace.cli import signals

# New objects, less those freed, before the young ones are looked through; Python's own 700 suits small programs.
_OBJECTS_BEFORE_COLLECTION = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments` (default: those of the process) and end the process with its exit code, at
    once: nothing of a caller runs behind it.
    """
    # Importing makes tens of thousands of objects that stay: the collector would look through them again and again.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    own_process.claim()
    words = list(sys.argv[1:] if arguments is None else arguments)
    signals.end_on_signals(json_output=asks_for_json(words))
    _open_standard_files()
    from headrace.cli.app import app
    from headrace.cli.console import prepare_streams, release_streams
    from headrace.cli.failures import run_app

    prepare_streams()
    exit_code = run_app(app, words)
    signals.ignore_signals()
    release_streams()
    # Everything is closed and flushed. Freeing each object as well would take longer than a small load.
    os._exit(exit_code)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether the caller reads a JSON document from stdout; also when the rest of the command line is wrong."""
    return any(word == "--json" or word.startswith("--json=") for word in arguments)


def _open_standard_files() -> None:
    """A standard file that the caller closed is opened on nothing: otherwise the next file that is opened, such as a
    database, would get its number, and whatever is printed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
