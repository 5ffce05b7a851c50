"""`headrace demo`: generate TPC-H files, load them with the shipped package, let DuckDB check every row."""

from __future__ import annotations

import filecmp
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace import model, run, tpch
from headrace.cli import units
from headrace.cli.accounts import render_summary
from headrace.cli.console import print_json, print_result, result_width, say, shown_path
from headrace.cli.demo_folder import DemoFolder
from headrace.cli.generate import generate_shown, render_files_line
from headrace.cli.run import execute_shown, kept_result
from headrace.cli.signals import cancel_on_signals, write_now
from headrace.errors import AccountsError, HeadraceError
from headrace.tpch.generate import GenerateRequest, check_request
from headrace.tpch.verify import TableCheck, verify_tables

_CONNECTION: Final = "warehouse"
_STOPPING: Final = "stopping: the tables are loaded, the comparison is not finished"


@dataclass(frozen=True)
class DemoOptions:
    """The command line of `headrace demo`."""

    path: Path
    scale: float
    chunks: int
    streams: int
    json_output: bool
    quiet: bool

    @property
    def folder(self) -> DemoFolder:
        """Where everything goes."""
        return DemoFolder(self.path)

    @property
    def request(self) -> GenerateRequest:
        """What is generated."""
        return GenerateRequest(self.folder.data, self.scale, self.chunks)


def run_demo(options: DemoOptions) -> int:
    """Generate, load, verify, report; returns the exit code."""
    # Whatever can be wrong with the command line is found before anything is deleted or written.
    package = _package(options)
    check_request(options.request)
    options.folder.check()
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        return _run_steps(options, package, cancel)


def _package(options: DemoOptions) -> model.BoundPackage:
    return model.load_package(
        tpch.package_path(),
        sets=[f"data={options.folder.data.absolute()}"],
        connections=[f"{_CONNECTION}=duckdb:{options.folder.database.absolute()}"],
        streams=options.streams,
        environ=os.environ,
    )


def _run_steps(options: DemoOptions, package: model.BoundPackage, cancel: threading.Event) -> int:
    folder = options.folder

    def step(text: str) -> None:
        if not options.quiet:
            say(text)

    step(f"1/3 generating TPC-H at scale {options.scale:g} into {shown_path(folder.data)}")
    folder.clear([name for table in tpch.TABLES for name in tpch.file_names(table, options.chunks)])
    started = time.monotonic()
    files = generate_shown(options.request, cancel, quiet=options.quiet)
    generate_seconds = time.monotonic() - started

    step(f"2/3 loading eight tables into {shown_path(folder.database)}")
    summary = execute_shown(package, folder.runs, cancel, quiet=options.quiet)
    if summary.failure is not None:
        with kept_result(summary):
            return _failed(options, summary, summary.failure, files, [])

    step("3/3 comparing with DuckDB's own reading of the same files")
    started = time.monotonic()
    checks = _verify(folder, cancel, step)
    verify_seconds = time.monotonic() - started
    with kept_result(summary):
        if not options.json_output:
            parts = [
                f"\n{render_files_line(files, generate_seconds, folder.data)}",
                render_summary(summary.to_dict(), width=result_width()),
                render_checks(checks, verify_seconds),
                render_next(options),
            ]
            print_result("\n\n".join(parts))
        if not all(check.equal for check in checks):
            return _failed(options, summary, _difference(checks), files, checks)
        if options.json_output:
            print_json(_document(summary, None, files, checks))
    return 0


def _failed(
    options: DemoOptions, summary: run.Summary, error: HeadraceError, files: list[Any], checks: list[TableCheck]
) -> int:
    say(error.render())
    if options.json_output:
        print_json(_document(summary, error, files, checks))
    return error.exit_code


def _document(
    summary: run.Summary, error: HeadraceError | None, files: list[Any], checks: list[TableCheck]
) -> dict[str, Any]:
    return {
        "status": summary.status if summary.failure is not None or error is None else "failed",
        "error": None if error is None else error.to_dict(),
        "files": files,
        "run": summary.to_dict(),
        "verified": [check.to_dict() for check in checks],
    }


def _verify(folder: DemoFolder, cancel: threading.Event, step: Callable[[str], None]) -> list[TableCheck]:
    with cancel_on_signals(cancel, lambda: write_now(_STOPPING)):
        return list(_shown(verify_tables(folder.database, folder.data, cancel=cancel), step))


def _shown(checks: Iterable[TableCheck], step: Callable[[str], None]) -> Iterable[TableCheck]:
    for check in checks:
        step(f"  {check.table}: {_verdict(check)}")
        yield check


def _verdict(check: TableCheck) -> str:
    if check.equal:
        return f"{units.plural(check.rows_in_table, 'row')}, equal"
    parts = [
        f"{units.count(check.rows_in_files)} rows in the files, {units.count(check.rows_in_table)} in the table",
        f"{units.count(check.only_in_files)} only in the files, {units.count(check.only_in_table)} only in the table",
    ]
    parts += [f"{name} is {found}, not {expected}" for name, (found, expected) in check.wrong_types.items()]
    return "DIFFERENT: " + "; ".join(parts)


def render_checks(checks: list[TableCheck], seconds: float) -> str:
    """The result of the comparison in two lines."""
    equal = [check for check in checks if check.equal]
    rows = sum(check.rows_in_table for check in equal)
    tables = f"{len(equal)} of {units.plural(len(checks), 'table')}"
    return (
        f"verified: {tables} equal to the files, {units.plural(rows, 'row')}\n"
        f"  counts, and EXCEPT ALL both ways, in {units.duration(seconds)}"
    )


def _difference(checks: list[TableCheck]) -> AccountsError:
    check = next(check for check in checks if not check.equal)
    return AccountsError(
        f"table {check.table} is not what its files hold",
        found=_verdict(check),
        hint="This is a defect of Headrace. Please report it with the run folder.",
    )


def render_next(options: DemoOptions) -> str:
    """Three commands worth trying, as they can be typed here."""
    headrace, package = _own_command(), shlex.quote(str(_package_shown()))
    data = f"--set data={shlex.quote(str(options.folder.data))}"
    two_tables = shlex.quote(f"duckdb:{options.folder.path / 'two.duckdb'}")
    return "\n".join(
        [
            "try next:",
            "  # what would be done, without doing it",
            f"  {headrace} plan {package} {data}",
            "  # how fast is the text alone: parse, convert and check, store nothing",
            f"  {headrace} run {package} {data} \\\n    --connection {_CONNECTION}=null:",
            "  # two tables by two streams into another database",
            f"  {headrace} run {package} {data} \\\n    --connection {_CONNECTION}={two_tables}"
            " --set tables=orders,lineitem --streams 2",
        ]
    )


def _own_command() -> str:
    """How this program was called, shortened to `headrace` if that finds the same one."""
    called = Path(sys.argv[0])
    if called.name != "headrace":
        return f"{shlex.quote(sys.executable)} -m headrace"
    found = shutil.which("headrace")
    if found is not None and Path(found).resolve() == called.resolve():
        return "headrace"
    return shlex.quote(shown_path(called))


def _package_shown() -> str:
    """The package by its name in the repository when we stand there, otherwise where it is installed."""
    in_repository, installed = Path("examples/tpch/load.yaml"), tpch.package_path()
    if in_repository.exists() and filecmp.cmp(in_repository, installed, shallow=False):
        return str(in_repository)
    return shown_path(installed)
