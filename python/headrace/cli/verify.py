"""`headrace verify`: reads the sources of a run again and compares them with its tables."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import headrace.run as run
from headrace import units
from headrace.cli.console import print_json, print_result, result_width, say
from headrace.cli.run import load_requested, request_again
from headrace.cli.signals import cancel_on_signals
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import DifferenceError, HeadraceError, on_one_line
from headrace.run import TableVerdict

_TABLES = (
    TextColumn("table", words=True),
    TextColumn("rows"),
    TextColumn("rejected", drop_when_narrow=2),
    TextColumn("columns", drop_when_narrow=1),
    TextColumn("compared"),
    TextColumn("result", words=True),
)
_DIFFERENCES = (
    TextColumn("column", words=True),
    TextColumn("value", words=True),
    TextColumn("source"),
    TextColumn("table"),
)


@dataclass(frozen=True)
class VerifyOptions:
    """The command line of `headrace verify`."""

    run_name: str
    sets: list[str]
    connections: list[str]
    runs_folder: Path
    json_output: bool
    quiet: bool
    trusted: bool = False


def run_verify(options: VerifyOptions) -> int:
    """Compare and report; returns the exit code."""
    folder = run.RunFolder.find(options.runs_folder, options.run_name, run.VERIFY)
    package = load_requested(request_again(folder, options.sets, options.connections, trusted=options.trusted))
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        verdicts = run.verify(package, folder, cancel)
        tables = list(verdicts if options.quiet else _told(verdicts))
    error = _difference(folder.run_id, tables)
    if options.json_output:
        print_json(
            {
                "status": "success" if error is None else "failed",
                "error": None if error is None else error.to_dict(),
                "run_id": folder.run_id,
                "tables": [table.to_dict() for table in tables],
            }
        )
    else:
        print_result(render_verification(folder.run_id, tables, width=result_width()))
    if error is not None:
        say(error.render())
        return error.exit_code
    return 0


def render_verification(run_id: str, tables: Sequence[TableVerdict], *, width: int) -> str:
    """One line per table, then the differences of each and why some were not compared, then the sum of it."""
    parts = [render_table(_TABLES, [_cells(table) for table in tables], width=width)] if tables else []
    parts += [text for table in tables if (text := _details(table, width))]
    parts.append(_sum(run_id, tables))
    return "\n\n".join(parts)


def _told(verdicts: Iterator[TableVerdict]) -> Iterator[TableVerdict]:
    for table in verdicts:
        say(f"{table.table}: {_result(table)}")
        yield table


def _cells(table: TableVerdict) -> list[str]:
    numbers = [table.rows_in_table, table.rows_rejected]
    return [
        on_one_line(table.table),
        *("-" if number is None else units.count(number) for number in numbers),
        units.count(len(table.columns)) if table.columns else "-",
        units.count(table.values_compared) if table.values_compared else "-",
        _result(table),
    ]


def _result(table: TableVerdict) -> str:
    if table.status == "different":
        return units.plural(len(table.differences), "difference")
    return table.status.replace("_", " ")


def _details(table: TableVerdict, width: int) -> str:
    """The differences of a table, or why it was not compared; empty for an equal one."""
    name = on_one_line(table.table)
    if table.reason is not None:
        return textwrap.fill(f"{name}: not compared, because {table.reason}", width, subsequent_indent="  ")
    if not table.differences:
        return ""
    rows = [
        [
            on_one_line(difference.column or "-"),
            difference.aggregate.replace("_", " "),
            *(on_one_line("none" if text is None else text) for text in (difference.source, difference.target)),
        ]
        for difference in table.differences
    ]
    return f"{name}: {_result(table)}\n{render_table(_DIFFERENCES, rows, width=width)}"


def _sum(run_id: str, tables: Sequence[TableVerdict]) -> str:
    equal = [table for table in tables if table.status == "equal"]
    others = sum(table.status == "not_comparable" for table in tables)
    rows = sum(table.rows_in_table or 0 for table in equal)
    text = f"run {run_id}: {len(equal)} of {units.plural(len(tables), 'table')} equal to the source"
    text += f", {units.plural(rows, 'row')}"
    return f"{text}; {others} not compared" if others else text


def _difference(run_id: str, tables: Sequence[TableVerdict]) -> HeadraceError | None:
    """The error of a verification that found a difference, or nothing that it could compare."""
    different = [table for table in tables if table.status == "different"]
    if different:
        names = ", ".join(table.table for table in different)
        return DifferenceError(
            f"{units.plural(len(different), 'table')} of run {run_id} "
            f"{'is' if len(different) == 1 else 'are'} not what the source holds",
            found=f"differences in {names}",
            hint="Find out who has changed the rows since; if nobody has, keep the run folder and report it.",
        )
    if not any(table.status == "equal" for table in tables):
        return DifferenceError(
            f"nothing of run {run_id} could be compared",
            found="; ".join(dict.fromkeys(table.reason for table in tables if table.reason)) or "no table was loaded",
            hint="Verify a run that has loaded rows of files as they are, with `target: create` or `target: replace`.",
        )
    return None
