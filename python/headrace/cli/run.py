"""`headrace run`: execute a package, show how it goes, print the accounts."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import diagnose, model, run
from headrace.cli.accounts import render_summary
from headrace.cli.console import print_json, result_width, say
from headrace.cli.failures import internal_error
from headrace.cli.progress import open_progress
from headrace.cli.signals import cancel_on_signals
from headrace.errors import HeadraceError


@dataclass(frozen=True)
class RunOptions:
    """The command line of `headrace run`."""

    package: Path
    sets: list[str]
    connections: list[str]
    streams: int | None
    runs_folder: Path
    json_output: bool
    quiet: bool


def run_run(options: RunOptions) -> int:
    """Run and report; returns the exit code."""
    package = model.load_package(
        options.package,
        sets=options.sets,
        connections=options.connections,
        streams=options.streams,
        environ=os.environ,
    )
    summary = execute_shown(package, options.runs_folder, quiet=options.quiet)
    if options.json_output:
        print_json(summary.to_dict())
    else:
        print(render_summary(summary.to_dict(), width=result_width()), flush=True)
    return report_status(summary)


def execute_shown(package: model.BoundPackage, runs_folder: Path, *, quiet: bool) -> run.Summary:
    """Execute a package with progress on stderr; the first Ctrl-C cancels it. Returns the summary.

    A defect inside the run becomes an InternalError whose traceback is saved in the run folder.
    """
    cancel = threading.Event()
    run_folders: list[Path] = []
    with open_progress(quiet=quiet) as progress, cancel_on_signals(cancel, progress.stopping):

        def listen(event: Mapping[str, Any]) -> None:
            if event["event"] == "run_started":
                run_folders.append(Path(event["run_folder"]))
            progress.listen(event)

        try:
            return run.execute(package, runs_dir=runs_folder, listener=listen, cancel=cancel, judge=diagnose.judge)
        except HeadraceError:
            raise
        except Exception as error:
            if not run_folders:
                raise
            raise internal_error(error, run_folders[0]) from error


def report_status(summary: run.Summary) -> int:
    """Print the error of a run that did not succeed; returns the exit code."""
    if summary.failure is not None:
        say(summary.failure.render())
    return summary.exit_code
