"""The command line. `main` is the entry point of the command `headrace`.

Commands are declared in `app.py`, which imports nothing heavy, so that `headrace --help` answers at once;
a command's work is in the module of its name and is imported when the command runs.
Results go to stdout, talk (progress, notices, errors) to stderr. Exit codes: `headrace.errors`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from headrace.errors import EXIT_CANCELLED


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments` (default: those of the process) and end the process with its exit code."""
    # Nothing is started before the imports are done, nor after the command has ended: Ctrl-C there needs no clean-up,
    # and must neither show a traceback nor change the exit code of a finished run.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(EXIT_CANCELLED))
    from headrace.cli.app import app
    from headrace.cli.failures import run_app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    exit_code = run_app(app, list(sys.argv[1:] if arguments is None else arguments))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(exit_code)
