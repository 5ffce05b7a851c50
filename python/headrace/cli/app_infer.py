"""The commands that look at files before there is a package. As in `app`, no work happens here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.app_options import JsonOption, QuietOption, only, without_tilde

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="The files.", show_default=False, readable=False)
]
SampleOption = Annotated[
    str | None,
    typer.Option("--sample", metavar="SIZE", help="Read only so much of each file, as 64MB.", show_default=False),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="TEXT", help="The delimiter, instead of finding it.", show_default=False),
]
EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="The encoding, instead of finding it.", show_default=False),
]
HeaderOption = Annotated[
    str | None,
    typer.Option("--header", metavar="[yes|no]", help="Whether the first row names the columns.", show_default=False),
]


def infer(
    files: FilesArgument,
    sample: SampleOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the layout there.", readable=False, show_default=False),
    ] = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = None,
    exact_keys: Annotated[
        bool, typer.Option("--exact-keys", help="Prove which columns, or pairs of them, are keys.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URL", help="Where the table of --against is.", show_default=False),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="[SCHEMA.]TABLE", help="Say what differs from this table.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what files hold: their dialect, columns and types, as a layout.

    Reads all of every file, because a sample proves nothing. What cannot be
    known, such as whether 03/04/2026 is a day in April, is no guess but a
    doubt with its evidence, a comment above its column.

    \b
    Example:
      headrace infer orders_*.csv --out orders.yaml
    """
    from headrace.cli.infer import InferCommand, run_infer

    command = InferCommand(
        tuple(files),
        sample,
        out,
        delimiter,
        encoding,
        _yes_or_no(header),
        exact_keys,
        to,
        against,
        json_output=json,
        quiet=quiet,
    )
    raise typer.Exit(run_infer(command))


def init(
    files: FilesArgument,
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where package and layouts go; made if missing.",
            readable=False,
            callback=without_tilde,
        ),
    ] = Path("."),
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="URL",
            help="The destination, duckdb:FILE or postgresql://...; else a DuckDB file in the folder.",
            show_default=False,
        ),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            "--package", metavar="NAME", help="Name of the package (default: of the folder).", show_default=False
        ),
    ] = None,
    sample: SampleOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    header: HeaderOption = None,
    json: JsonOption = False,
) -> None:
    """Make a package that loads files: a table and a layout of each kind.

    Files with the same columns are one table. Each layout says what was
    doubtful; nothing that is there already is overwritten. Prints what to
    type next.

    \b
    Example:
      headrace init orders_*.csv customers.csv --folder sales
    """
    from headrace.cli.init import InitCommand, run_init

    command = InitCommand(
        tuple(files), folder, to, package, sample, delimiter, encoding, _yes_or_no(header), json_output=json
    )
    raise typer.Exit(run_init(command))


def _yes_or_no(value: str | None) -> bool | None:
    if value is None:
        return None
    only("value for --header", value, ["yes", "no"], "headrace infer")
    return value == "yes"
