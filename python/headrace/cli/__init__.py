"""The command line. `main` is the entry point of the command `headrace`.

Commands are declared in `app.py`, which imports nothing heavy, so that `headrace --help` answers at once;
a command's work is in the module of its name and is imported when the command runs.
Results go to stdout, talk (progress, notices, errors) to stderr. Exit codes: `headrace.errors`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments` (default: those of the process) and end the process with its exit code."""
    from headrace.cli.app import app
    from headrace.cli.failures import run_app

    sys.exit(run_app(app, list(sys.argv[1:] if arguments is None else arguments)))
