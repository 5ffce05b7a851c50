"""The commands that measure. As in `app`, no work happens here."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.app_options import JsonOption, QuietOption

BENCH_HELP = """Measure tables that you have loaded.

    These commands measure your data in your database. How Headrace itself
    compares with others is measured by `make bench` of its repository.

    \b
    Example:
      headrace bench scan duckdb:tpch.duckdb lineitem lineitem_hashed
    """


def scan(
    connection: Annotated[
        str,
        typer.Argument(
            metavar="CONNECTION",
            help="duckdb:FILE or postgresql://...; ${env:X} stands for a variable.",
            show_default=False,
        ),
    ],
    whole: Annotated[str, typer.Argument(metavar="TABLE", help="The table that is not divided.", show_default=False)],
    divided: Annotated[
        str,
        typer.Argument(metavar="DIVIDED", help="The same rows in a table with partitions.", show_default=False),
    ],
    repetitions: Annotated[
        int, typer.Option("--repetitions", metavar="N", min=1, help="How often each query runs on each table.")
    ] = 9,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="NAME", help="The numbers that are summed up.", show_default=False),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="NAME", help="The column that is grouped by.", show_default=False),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="QUERY", help="One more query, with {table} for the table. Repeatable."),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory that DuckDB may use.")] = "1GB",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare scans of a table with scans of the same rows, divided.

    Runs queries on both tables in turns: count, sum, group by, the rows of
    one key, a range of keys, and your own. Both must give the same answer.
    Prints the medians, how many times faster the divided table is, with its
    spread, the CPU time where it is known (DuckDB), and how evenly rows and
    bytes are spread over the partitions. Changes nothing: the session only
    reads.

    The divided table has partitions; in DuckDB it is a view over a table for
    each of them, as `load: view` makes it.

    \b
    Example:
      headrace bench scan duckdb:tpch.duckdb lineitem lineitem_hashed
      headrace bench scan '${env:WAREHOUSE_URL}' orders orders_hashed \\
        --sql 'SELECT max(o_orderdate) FROM {table}'
    """
    from headrace.cli.bench_scan import BenchScanOptions, run_bench_scan
    from headrace.scan.comparison import ScanRequest
    from headrace.scan.queries import Chosen

    request = ScanRequest(whole, divided, repetitions, Chosen(column, group, tuple(texts or ())))
    raise typer.Exit(run_bench_scan(BenchScanOptions(connection, request, memory, json, quiet)))
