"""`headrace demo`: generate TPC-H files, load them with the shipped package, let DuckDB check every row."""

from __future__ import annotations

import filecmp
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace import model, run, tpch
from headrace.cli import units
from headrace.cli.accounts import render_summary
from headrace.cli.console import print_json, result_width, say, shown_path
from headrace.cli.generate import generate_shown, render_files_line
from headrace.cli.run import execute_shown, report_status
from headrace.errors import AccountsError, CommandLineError
from headrace.tpch.generate import GenerateRequest
from headrace.tpch.verify import TableCheck, verify_tables

_CONNECTION: Final = "warehouse"


@dataclass(frozen=True)
class DemoOptions:
    """The command line of `headrace demo`."""

    folder: Path
    scale: float
    chunks: int
    streams: int
    json_output: bool
    quiet: bool

    @property
    def data(self) -> Path:
        """Where the text files go."""
        return self.folder / "data"

    @property
    def database(self) -> Path:
        """The DuckDB file."""
        return self.folder / "tpch.duckdb"


def run_demo(options: DemoOptions) -> int:
    """Generate, load, verify, report; returns the exit code."""
    if options.folder.exists() and not options.folder.is_dir():
        raise CommandLineError(f"{options.folder} is not a folder", hint="Choose another one with --folder.")

    def step(text: str) -> None:
        if not options.quiet:
            say(text)

    request = GenerateRequest(options.data, options.scale, options.chunks)
    step(f"1/3 generating TPC-H at scale {options.scale:g} into {options.data}")
    _remove_old_files(options.data)
    started = time.monotonic()
    files = generate_shown(request, quiet=options.quiet)
    generate_seconds = time.monotonic() - started

    step(f"2/3 loading eight tables into {options.database}")
    summary = _load(options)
    if summary.failure is not None:
        if options.json_output:
            print_json({"status": summary.status, "files": files, "run": summary.to_dict(), "verified": []})
        return report_status(summary)

    step("3/3 comparing with DuckDB's own reading of the same files")
    started = time.monotonic()
    checks = list(_shown(verify_tables(options.database, options.data), step))
    verify_seconds = time.monotonic() - started

    equal = all(check.equal for check in checks)
    if options.json_output:
        status = "success" if equal else "failed"
        verified = [check.to_dict() for check in checks]
        print_json({"status": status, "files": files, "run": summary.to_dict(), "verified": verified})
    else:
        print(f"\n{render_files_line(files, generate_seconds, options.data)}\n")
        print(f"{render_summary(summary.to_dict(), width=result_width())}\n")
        print(render_checks(checks, verify_seconds))
        print(f"\n{render_next(options)}", flush=True)
    if not equal:
        raise _difference(checks)
    return 0


def _load(options: DemoOptions) -> run.Summary:
    package = model.load_package(
        tpch.package_path(),
        sets=[f"data={options.data.resolve()}"],
        connections=[f"{_CONNECTION}=duckdb:{options.database}"],
        streams=options.streams,
        environ=os.environ,
    )
    return execute_shown(package, options.folder / "runs", quiet=options.quiet)


def _remove_old_files(data: Path) -> None:
    """Files of an earlier demo with more chunks would be loaded too."""
    for table in tpch.TABLES:
        for path in tpch.text_files(data, table):
            path.unlink()


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
    data = f"--set data={shlex.quote(str(options.data))}"
    two_tables = shlex.quote(f"duckdb:{options.folder / 'two.duckdb'}")
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
