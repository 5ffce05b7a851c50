"""The commands for rejected rows. As in `app`, no work happens here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.app_options import (
    DEFAULT_RUNS_FOLDER,
    ConnectionOption,
    JsonOption,
    QuietOption,
    RunsFolderOption,
    SetOption,
    TrustOption,
    without_tilde,
)


def rejects(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last`.")
    ] = "last",
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Only rejects of this table.", show_default=False)
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="RULE", help="Only those that break it: bad_date or HR305.", show_default=False),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Only those of this column.", show_default=False)
    ] = None,
    first: Annotated[int, typer.Option("--first", metavar="N", min=0, help="Rejects shown of each table.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write them to FILE.jsonl or FILE.parquet.",
            show_default=False,
            readable=False,
            callback=without_tilde,
        ),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(
            "--copy",
            metavar="FILE",
            help="Write their original bytes, to be repaired.",
            show_default=False,
            readable=False,
            callback=without_tilde,
        ),
    ] = None,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    json: JsonOption = False,
) -> None:
    """Say which rows a run has rejected, and why.

    Prints for each table how many rows break which rule in which column,
    and the first of them. --out writes all of them, one JSON object or one
    row of Parquet each. --copy writes the rows of one table as they stand
    in the source files and are open still; their numbers go to
    FILE.numbers beside them. What replays have loaded or dropped since is
    asked in the destinations.

    \b
    Example:
      headrace rejects last --rule bad_date --copy repair.csv
    """
    from headrace.cli.rejects import RejectsOptions, run_rejects

    options = RejectsOptions(
        run, table, rule, column, first, out, copy, sets or [], connections or [], runs_folder, json_output=json
    )
    raise typer.Exit(run_rejects(options))


def replay(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Beginning of a run id, path of a run folder, or `last` successful one.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The repaired rows, each with the encoding, row end and order of columns of its source.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Of this table, if several have rejects.", show_default=False),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option("--rows", metavar="LIST", help="Which rejects the rows are: 1-3,7.", show_default=False),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option("--drop", metavar="LIST", help="Rejects that are given up, without a row.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=0, help="Fail if more rows are rejected again.", show_default=False),
    ] = None,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    trust: TrustOption = False,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Load repaired rejects of a run, each of them once.

    FILE is a copy of rejects (headrace rejects --copy) whose rows were
    repaired; a row that was emptied is dropped. Without FILE.numbers beside
    it, and without --rows, it is all rejects of the task. The rows are
    appended to the table of the run, in one transaction with a note of
    which rejects they are: what was loaded or dropped is refused. Options
    that held a secret have to be given again.

    \b
    Example:
      headrace rejects last --copy repair.csv
      headrace replay last repair.csv
    """
    from headrace.cli.replay import ReplayCommand, run_replay
    from headrace.run import ReplayOptions

    options = ReplayOptions(file, table, rows, drop, limit)
    raise typer.Exit(
        run_replay(
            ReplayCommand(
                run, options, sets or [], connections or [], runs_folder, json_output=json, quiet=quiet, trusted=trust
            )
        )
    )
