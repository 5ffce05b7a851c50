"""`headrace report`: draws what a run has written about itself."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import headrace.run as run
from headrace import report, units
from headrace.cli.cells import wrap
from headrace.cli.console import print_json, print_result, result_width, say, shown_path
from headrace.errors import on_one_line

_INDENT = "  "


@dataclass(frozen=True)
class ReportOptions:
    """The command line of `headrace report`."""

    run_name: str
    against: str | None
    output: Path | None
    open_it: bool
    runs_folder: Path
    json_output: bool


def run_report(options: ReportOptions) -> int:
    """Draw, write and say where it is; returns the exit code."""
    folder = find_folder(options.runs_folder, options.run_name)
    against = None if options.against is None else find_folder(options.runs_folder, options.against)
    written = report.write_report(folder, options.output, against)
    if options.json_output:
        print_json(written.to_dict())
    else:
        print_result(render_report(written, width=result_width()))
    if options.open_it and not webbrowser.open(written.path.absolute().as_uri()):
        say("no browser could be opened")
    return 0


def render_report(written: report.Report, *, width: int) -> str:
    """Which run, what the report lacks, and where it is; without a final line end."""
    status = written.status or "not ended"
    beside = f", beside run {written.against}" if written.against else ""
    lines = [f"run {written.run_id}: {status}{beside}"]
    for note in written.notes:
        lines += wrap(on_one_line(note), width, first=_INDENT, then=2 * _INDENT)
    lines.append(f"report: {shown_path(written.path)} ({units.size(written.size_bytes)})")
    return "\n".join(lines)


def find_folder(runs_folder: Path, name: str) -> Path:
    """The folder of a run, however little of it is left: its path, its id, the beginning of that, or `last`.

    Raises CommandLineError.
    """
    for path in (Path(name), runs_folder / name):
        if name != "last" and report.is_run_folder(path):
            return path.absolute()
    return run.RunFolder.find(runs_folder, name, run.REPORT).path
