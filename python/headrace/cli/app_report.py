"""The command that draws runs. As in `app`, no work happens here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.app_options import DEFAULT_RUNS_FOLDER, JsonOption, RunsFolderOption, without_tilde


def report(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last`.")
    ] = "last",
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RUN", help="Compare with this earlier run.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write it there, not to report.html in the run folder.",
            show_default=False,
            readable=False,
            callback=without_tilde,
        ),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    json: JsonOption = False,
) -> None:
    """Draw a run: what limited it, and what everything did when.

    Writes one HTML file that needs nothing else: verdict with evidence and
    remedy, accounts, throughput, streams and writers over time, limits,
    waits of the destination, machine, rejects, configuration. It is drawn
    from the run folder alone, also while the run goes on; what is missing
    or damaged there is said. Values of rejected rows are not in it.

    \b
    Example:
      headrace report last --against 20261120-1015 --open
    """
    from headrace.cli.report import ReportOptions, run_report

    raise typer.Exit(run_report(ReportOptions(run, against, output, open_it, runs_folder, json)))
