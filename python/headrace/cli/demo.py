"""`headrace demo`: generate TPC-H files, load them with the shipped package, verify, let DuckDB check every row."""

from __future__ import annotations

import filecmp
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import headrace.run as run
from headrace import model, tpch, units
from headrace.cli.accounts import render_summary
from headrace.cli.console import print_json, print_result, result_width, say, shown_path
from headrace.cli.demo_destinations import CONNECTION, DemoDestination, destination
from headrace.cli.demo_folder import DemoFolder
from headrace.cli.generate import generate_shown, render_files_line
from headrace.cli.run import execute_shown, kept_result, load_requested
from headrace.cli.signals import cancel_on_signals, write_now
from headrace.errors import AccountsError, HeadraceError
from headrace.tpch.generate import GenerateRequest, check_request
from headrace.tpch.verify import TableCheck, verify_tables

_STOPPING: Final = "stopping: the tables are loaded, the comparison is not finished"


@dataclass(frozen=True)
class DemoOptions:
    """The command line of `headrace demo`."""

    path: Path
    to: str
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
    target = destination(options.to, options.folder)
    request = _request(options, target)
    package = load_requested(request)
    check_request(options.request)
    options.folder.check()
    target.check()
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        return _run_steps(options, _Load(target, request, package), cancel)


@dataclass(frozen=True)
class _Load:
    """What is loaded where."""

    target: DemoDestination
    request: run.RunRequest
    package: model.BoundPackage


def _request(options: DemoOptions, target: DemoDestination) -> run.RunRequest:
    return run.RunRequest.of(
        tpch.package_path(),
        [f"data={options.folder.data.absolute()}"],
        [f"{CONNECTION}={target.url}"],
        options.streams,
        Path.cwd(),
    )


def _run_steps(options: DemoOptions, load: _Load, cancel: threading.Event) -> int:
    folder = options.folder

    def step(text: str) -> None:
        if not options.quiet:
            say(text)

    step(f"1/3 generating TPC-H at scale {options.scale:g} into {shown_path(folder.data)}")
    folder.clear([name for table in tpch.TABLES for name in tpch.file_names(table, options.chunks)])
    started = time.monotonic()
    files = generate_shown(options.request, cancel, quiet=options.quiet)
    generate_seconds = time.monotonic() - started

    step(f"2/3 loading eight tables into {load.target.shown}")
    with load.target.opened() as loaded:
        summary = execute_shown(load.package, folder.runs, cancel, quiet=options.quiet, request=load.request)
        if summary.failure is not None:
            with kept_result(summary):
                return _failed(options, summary, summary.failure, _Results(files, generate_seconds))

        step("3/3 comparing with DuckDB's own reading of the same files")
        started = time.monotonic()
        with cancel_on_signals(cancel, lambda: write_now(_STOPPING)):
            checks = list(_shown(verify_tables(loaded, folder.data, cancel=cancel), step))
            verdicts = _verdicts(load, summary, cancel)
        verify_seconds = time.monotonic() - started
    results = _Results(files, generate_seconds, checks, verdicts, verify_seconds)
    error = _difference(results)
    with kept_result(summary):
        if not options.json_output:
            parts = [
                f"\n{render_files_line(files, generate_seconds, folder.data)}",
                render_summary(summary.to_dict(), width=result_width()),
                render_checks(results),
                render_next(options),
            ]
            print_result("\n\n".join(parts))
        if error is not None:
            return _failed(options, summary, error, results)
        if options.json_output:
            print_json(_document(summary, None, results))
    return 0


@dataclass(frozen=True)
class _Results:
    """What the steps before and after the load have found."""

    files: list[Any]
    generate_seconds: float
    checks: list[TableCheck] = field(default_factory=list)
    verdicts: list[run.TableVerdict] = field(default_factory=list)
    verify_seconds: float = 0.0


def _failed(options: DemoOptions, summary: run.Summary, error: HeadraceError, results: _Results) -> int:
    say(error.render())
    if options.json_output:
        print_json(_document(summary, error, results))
    return error.exit_code


def _document(summary: run.Summary, error: HeadraceError | None, results: _Results) -> dict[str, Any]:
    return {
        "status": summary.status if summary.failure is not None or error is None else "failed",
        "error": None if error is None else error.to_dict(),
        "files": results.files,
        "run": summary.to_dict(),
        "verified": [check.to_dict() for check in results.checks],
        "aggregates": [verdict.to_dict() for verdict in results.verdicts],
    }


def _verdicts(load: _Load, summary: run.Summary, cancel: threading.Event) -> list[run.TableVerdict]:
    """What `headrace verify` says about the run."""
    folder = run.RunFolder(summary.run_id, Path(summary.run_folder))
    return list(run.verify(load.package, folder, cancel))


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


def render_checks(results: _Results) -> str:
    """The result of the comparison in three lines."""
    equal = [check for check in results.checks if check.equal]
    rows = sum(check.rows_in_table for check in equal)
    tables = f"{len(equal)} of {units.plural(len(results.checks), 'table')}"
    values = sum(verdict.values_compared for verdict in results.verdicts)
    return (
        f"verified: {tables} equal to the files, {units.plural(rows, 'row')}\n"
        f"  counts, and EXCEPT ALL both ways, in {units.duration(results.verify_seconds)}\n"
        f"  with {units.plural(values, 'aggregate')} by the destination's own SQL (`headrace verify`)"
    )


def _difference(results: _Results) -> AccountsError | None:
    """The first table that differs, by either comparison."""
    found = [(check.table, _verdict(check)) for check in results.checks if not check.equal]
    found += [
        (
            verdict.table,
            f"DIFFERENT: {first.column or first.aggregate} ({first.aggregate}) {first.source}, {first.target}",
        )
        for verdict in results.verdicts
        for first in verdict.differences[:1]
    ]
    if not found:
        return None
    table, text = found[0]
    return AccountsError(
        f"table {table} is not what its files hold",
        found=text,
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
            f"  {headrace} run {package} {data} \\\n    --connection {CONNECTION}=null:",
            "  # two tables by two streams into another database",
            f"  {headrace} run {package} {data} \\\n    --connection {CONNECTION}={two_tables}"
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
