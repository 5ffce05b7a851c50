"""`headrace infer`: files in, a layout out, with every doubt."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace import infer, units
from headrace.cli.console import print_json, print_result, say, shown_path
from headrace.cli.infer_against import differences_to, render_differences
from headrace.cli.infer_options import given_of, sample_bytes_of
from headrace.cli.signals import cancel_on_signals
from headrace.errors import CommandLineError, OutputError


@dataclass(frozen=True)
class InferCommand:
    """The command line of `headrace infer`."""

    files: tuple[Path, ...]
    sample: str | None
    out: Path | None
    delimiter: str | None
    encoding: str | None
    header: bool | None
    exact_keys: bool
    to: str | None
    against: str | None
    json_output: bool
    quiet: bool


def run_infer(command: InferCommand) -> int:
    """Infer and print, or write; returns the exit code."""
    if (command.to is None) != (command.against is None):
        raise CommandLineError(
            "a table to compare with needs its place",
            expected="--to URL and --against TABLE together",
            hint="Write for example --to duckdb:warehouse.duckdb --against orders.",
        )
    options = infer.InferOptions(
        sample_bytes=sample_bytes_of(command.sample),
        exact_keys=command.exact_keys,
        given=given_of(command.delimiter, command.encoding, command.header),
    )
    started = time.monotonic()
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        inferred = infer.infer_files(command.files, options, cancel.is_set)
        differences = _differences(inferred, command, cancel)
    text = infer.layout_text(inferred)
    if differences is not None and command.against is not None:
        text += f"{render_differences(differences, command.against)}\n"
    seconds = time.monotonic() - started
    if command.out is not None:
        write_new(command.out, text)
    if command.json_output:
        found = {} if differences is None else {"differences": [asdict(one) for one in differences]}
        print_json({**inferred_document(inferred, text, seconds), **found})
    elif command.out is None:
        print_result(text.rstrip("\n"))
    if not command.quiet and not command.json_output:
        where = "" if command.out is None else f"{shown_path(command.out)}: "
        say(f"{where}{summary_line(inferred)} in {units.duration(seconds)}")
    return 0


def _differences(
    inferred: infer.Inferred, command: InferCommand, cancel: threading.Event
) -> list[infer.Difference] | None:
    if command.to is None or command.against is None:
        return None
    return differences_to(inferred, command.to, command.against, cancel)


def summary_line(inferred: infer.Inferred) -> str:
    """`4 columns, 10,000 rows, 2 doubts`"""
    doubts = number_of_doubts(inferred)
    parts = [
        units.plural(len(inferred.columns), "column"),
        units.plural(inferred.rows, "row"),
        units.plural(doubts, "doubt") if doubts else "no doubt",
    ]
    return ", ".join(parts)


def number_of_doubts(inferred: infer.Inferred) -> int:
    """Those of the files and of all columns."""
    return len(inferred.doubts) + int(inferred.is_sample) + sum(len(column.doubts) for column in inferred.columns)


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet. Raises OutputError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise OutputError(
            "a file is not overwritten",
            at={"file": str(path)},
            found="it exists",
            hint="Give another name, or remove it.",
        ) from error
    except OSError as error:
        raise OutputError("a file cannot be written", at={"file": str(path)}, found=error.strerror) from error


def inferred_document(inferred: infer.Inferred, text: str, seconds: float) -> dict[str, Any]:
    """The JSON document of one layout."""
    return {
        "status": "success",
        "files": list(inferred.files),
        "dialect": dict(inferred.dialect),
        "rows": inferred.rows,
        "misfits": dict(inferred.misfits),
        "columns": [_column(column, facts) for column, facts in zip(inferred.columns, inferred.facts, strict=True)],
        "keys": [list(key) for key in inferred.keys],
        "keys_are_proved": inferred.keys_are_proved,
        "doubts": [_doubt(doubt) for doubt in inferred.doubts],
        "layout": text,
        "seconds": seconds,
    }


def _column(column: infer.InferredColumn, facts: Any) -> dict[str, Any]:
    least, most = infer.extreme_values(facts, column)
    return {
        "name": column.name,
        "type": str(column.type),
        "nullable": column.nullable,
        **({"settings": dict(column.settings)} if column.settings else {}),
        "distinct": infer.distinct_values(facts, column),
        "is_exact": facts.is_exact,
        "minimum": least,
        "maximum": most,
        "nulls": column.nulls,
        "doubts": [_doubt(doubt) for doubt in column.doubts],
    }


def _doubt(doubt: infer.Doubt) -> Mapping[str, Any]:
    return {"text": doubt.text, **({"instead": [dict(one) for one in doubt.instead]} if doubt.instead else {})}
