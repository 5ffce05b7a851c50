"""`headrace init`: files in, a package with layouts out, and what to type next."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import infer, units
from headrace.cli.console import print_json, print_result, result_width, shown_path
from headrace.cli.infer import inferred_document, number_of_doubts
from headrace.cli.infer_options import given_of, sample_bytes_of
from headrace.cli.signals import cancel_on_signals
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import CommandLineError
from headrace.model.conninfo import ConninfoError, parse_conninfo


@dataclass(frozen=True)
class InitCommand:
    """The command line of `headrace init`."""

    files: tuple[Path, ...]
    folder: Path
    to: str | None
    package: str | None
    sample: str | None
    delimiter: str | None
    encoding: str | None
    header: bool | None
    json_output: bool


def run_init(command: InitCommand) -> int:
    """Make the package and print what was made; returns the exit code."""
    options = infer.InitOptions(
        folder=command.folder,
        to=None if command.to is None else destination_of(command.to, command.folder),
        package=command.package,
        infer=infer.InferOptions(
            sample_bytes=sample_bytes_of(command.sample),
            given=given_of(command.delimiter, command.encoding, command.header),
        ),
    )
    started = time.monotonic()
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        result = infer.init_package(command.files, options, cancel.is_set)
    seconds = time.monotonic() - started
    if command.json_output:
        print_json(_document(result, seconds))
    else:
        print_result(render_init(result, seconds, width=result_width()))
    return 0


def destination_of(url: str, folder: Path) -> dict[str, str]:
    """The connection that `--to` means, as a package writes it. Raises CommandLineError."""
    scheme, colon, rest = url.partition(":")
    if scheme in ("postgres", "postgresql") and colon:
        text = url if rest.startswith("//") else rest
        _refuse_password(text)
        return {"type": "postgres", "url": text}
    if scheme == "duckdb" and rest:
        path = Path.cwd() / (rest[2:] if rest.startswith("//") else rest)
        inside = path.is_relative_to(folder.absolute())
        return {"type": "duckdb", "path": str(path.relative_to(folder.absolute()) if inside else path)}
    raise CommandLineError(
        "wrong value for --to",
        found=f"the scheme {scheme!r}" if colon else "a text without a scheme",
        expected="duckdb:FILE or postgresql://...",
        hint="Write for example --to duckdb:warehouse.duckdb.",
    )


def _refuse_password(text: str) -> None:
    """What stands on a command line is seen by every user of the machine, and it would be written into the package."""
    if "${" in text:
        return
    try:
        given = parse_conninfo(text)
    except ConninfoError as error:
        raise CommandLineError(error.what, found=error.found, expected=error.expected, hint=error.hint) from None
    if given.password_text:
        raise CommandLineError(
            "--to holds a password, which would be written into the package",
            expected="a password from the environment or from a file",
            hint="Write '${env:NAME}' in its place, or leave it to ~/.pgpass or PGPASSWORD.",
        )


def render_init(result: infer.InitResult, seconds: float, *, width: int) -> str:
    """What was made, for people."""
    columns = [
        TextColumn("table", words=True),
        TextColumn("files"),
        TextColumn("columns"),
        TextColumn("rows"),
        TextColumn("doubts"),
        TextColumn("layout", words=True),
    ]
    rows = [
        [
            table.name,
            units.count(len(table.paths)),
            units.count(len(table.inferred.columns)),
            units.count(table.inferred.rows),
            units.count(number_of_doubts(table.inferred)),
            shown_path(result.folder / "layouts" / f"{table.name}.yaml"),
        ]
        for table in result.tables
    ]
    package = shlex.quote(shown_path(result.folder / "package.yaml"))
    doubts = any(number_of_doubts(table.inferred) for table in result.tables)
    look = "Look at what is marked `doubt` in the layouts, then:" if doubts else "Next:"
    return (
        f"{render_table(columns, rows, width=width)}\n\n"
        f"made {package} in {units.duration(seconds)}\n\n{look}\n"
        f"  headrace plan {package}\n  headrace run {package}"
    )


def _document(result: infer.InitResult, seconds: float) -> dict[str, Any]:
    return {
        "status": "success",
        "folder": str(result.folder),
        "files": [str(path) for path in result.files],
        "tables": [
            {"table": table.name, **inferred_document(table.inferred, infer.layout_text(table.inferred), seconds)}
            for table in result.tables
        ],
        "seconds": seconds,
    }
