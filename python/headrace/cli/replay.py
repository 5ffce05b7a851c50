"""`headrace replay`: loads repaired rejects of an earlier run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import headrace.run as run
from headrace.cli.run import RunOptions, execute_and_report, load_requested, request_again


@dataclass(frozen=True)
class ReplayCommand:
    """The command line of `headrace replay`."""

    run_name: str
    replay: run.ReplayOptions
    sets: list[str]
    connections: list[str]
    runs_folder: Path
    json_output: bool
    quiet: bool
    trusted: bool = False


def run_replay(command: ReplayCommand) -> int:
    """Replay and report; returns the exit code."""
    of = run.RunFolder.find(command.runs_folder, command.run_name, run.REPLAY)
    request = request_again(of, command.sets, command.connections, trusted=command.trusted)
    package = load_requested(request)
    replay = run.begin_replay(of, package, command.replay, runs_dir=command.runs_folder)
    options = RunOptions(
        request.package,
        command.sets,
        command.connections,
        None,
        command.runs_folder,
        json_output=command.json_output,
        quiet=command.quiet,
    )
    return execute_and_report(package, options, request=request, replay=replay)
