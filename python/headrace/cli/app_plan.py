"""The command that says what a run would do, or draws it. As in `app`, no work happens here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.app_options import (
    DEFAULT_RUNS_FOLDER,
    ConnectionOption,
    EnvironmentOption,
    FromOption,
    JsonOption,
    OnlyOption,
    PackageArgument,
    SetOption,
    SkipOption,
    StreamsOption,
    TrustOption,
    names,
    only,
    without_tilde,
)


def plan(
    package: PackageArgument,
    sets: SetOption = None,
    connections: ConnectionOption = None,
    environment: EnvironmentOption = None,
    streams: StreamsOption = None,
    chosen: OnlyOption = None,
    start: FromOption = None,
    skip: SkipOption = None,
    trust: TrustOption = False,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="[mermaid|svg]",
            help="Draw the tasks and data flows instead; only the package is read.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the graph there, not to stdout.",
            show_default=False,
            readable=False,
            callback=without_tilde,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what a run would do, without doing it.

    Prints the tasks in the order in which they run: conditions, loops,
    handlers, retries, what each does, and whether a resumed run may repeat
    it. Then looks at the files and at the target tables and prints, for each
    table: files, slices, how the rows travel and become visible, the
    statements, and how the memory is split. Data flows whose files or tables
    another task may change before are planned when they start.

    With --graph it draws the package, as text for Mermaid or as an SVG file
    that needs nothing else: containers, loops and handlers as boxes, what
    follows what and when, and of each data flow sources, destinations and
    rejects. No file and no database is looked at.

    \b
    Example:
      headrace plan examples/tpch/load.yaml --set data=data
      headrace plan nightly.yaml --graph svg --output nightly.svg
    """
    if graph is not None:
        only("format", graph, ["mermaid", "svg"], "headrace plan")
    elif output is not None:
        raise _output_without_graph()
    from headrace.cli.plan import run_plan
    from headrace.cli.run import RunOptions

    options = RunOptions(
        package,
        sets or [],
        connections or [],
        streams,
        DEFAULT_RUNS_FOLDER,
        json_output=json,
        quiet=True,
        environment=environment,
        only=names(chosen),
        start=start,
        skip=names(skip),
        trusted=trust,
    )
    if graph is not None:
        from headrace.cli.plan_graph import run_plan_graph

        raise typer.Exit(run_plan_graph(options, graph, output))
    raise typer.Exit(run_plan(options))


def _output_without_graph() -> Exception:
    from headrace.errors import CommandLineError

    return CommandLineError(
        "`headrace plan --output` needs a graph to write",
        expected="--graph mermaid or --graph svg beside --output",
        hint="Add --graph svg; a plan without a graph is printed: `headrace plan ... > FILE`.",
    )
