"""`headrace run` and `headrace resume`: execute a package, show how it goes, print the accounts."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import headrace.run as run
from headrace import diagnose, model, units
from headrace.cli.accounts import render_summary
from headrace.cli.console import print_json, print_result, result_width, say, shown_path
from headrace.cli.failures import internal_error
from headrace.cli.progress import open_progress
from headrace.cli.replay_accounts import render_replay
from headrace.cli.signals import cancel_on_signals
from headrace.errors import HeadraceError, OutputError


@dataclass(frozen=True)
class RunOptions:
    """The command line of `headrace run`."""

    package: Path
    sets: list[str]
    connections: list[str]
    streams: int | None
    runs_folder: Path
    json_output: bool
    quiet: bool
    abandon: bool = False
    environment: str | None = None
    only: tuple[str, ...] = ()
    start: str | None = None
    skip: tuple[str, ...] = ()
    trusted: bool = False
    max_concurrent: int | None = None
    log_level: str | None = None

    def request(self) -> run.RunRequest:
        """What is kept in the folder of the run, so that it can be repeated."""
        request = run.RunRequest.of(self.package, self.sets, self.connections, self.streams, Path.cwd())
        return replace(
            request,
            choice=run.TaskChoice(self.only, self.start, self.skip),
            environment=self.environment,
            trusted=self.trusted,
            max_concurrent=self.max_concurrent,
            log_level=self.log_level,
        )


def run_run(options: RunOptions) -> int:
    """Run and report; returns the exit code."""
    request = options.request()
    package = load_requested(replace(request, package=options.package))
    run.check_trust(package, request.trusted, os.environ)
    if package.doubts:
        say(doubts_text(package, quiet=options.quiet))
    return execute_and_report(package, options, request=request)


def doubts_text(package: model.BoundPackage, *, quiet: bool) -> str:
    """What the layouts of a package still doubt: one block, or a line."""
    files = list(dict.fromkeys(doubt.file for doubt in package.doubts))
    if quiet:
        return f"note: {units.plural(len(package.doubts), 'open doubt')} in {' and '.join(files)}"
    lines = ["open doubts (delete a line from the layout once it is settled):"]
    for file in files:
        lines.append(f"  {file}")
        lines += [f"    line {doubt.line}: {doubt.text}" for doubt in package.doubts if doubt.file == file]
    return "\n".join(lines)


def run_resume(run_name: str, options: RunOptions) -> int:
    """Go on with an unfinished run and report; returns the exit code. `options.package` is not used."""
    folder = run.RunFolder.find(options.runs_folder, run_name, run.RESUME)
    if run.was_trusted(folder) and not options.trusted:
        run.check_stored(folder.request)
    request = request_again(folder, options.sets, options.connections, trusted=options.trusted)
    package = load_requested(request)
    run.check_trust(package, request.trusted, os.environ)
    return execute_and_report(package, options, resumed=folder)


def request_again(
    folder: run.RunFolder, sets: Sequence[str], connections: Sequence[str], *, trusted: bool
) -> run.RunRequest:
    """The request of an earlier run, with what is given now; trusted if it was, or is now."""
    request = run.load_request(folder, sets, connections)
    return replace(request, trusted=request.trusted or trusted)


def load_requested(request: run.RunRequest) -> model.BoundPackage:
    """The package of a request, with its parameters and connections, and whether it is trusted."""
    package = model.load_package(
        request.package,
        sets=request.sets,
        connections=request.connections,
        streams=request.streams,
        environment=request.environment,
        max_concurrent=request.max_concurrent,
        log_level=request.log_level,
        environ=os.environ,
        folder=request.folder,
    )
    return run.with_trust(package, request.trusted, os.environ)


def execute_and_report(
    package: model.BoundPackage,
    options: RunOptions,
    request: run.RunRequest | None = None,
    resumed: run.RunFolder | None = None,
    replay: run.ReplayRun | None = None,
) -> int:
    """Execute and print what came of it; returns the exit code. `options.package` is not used."""
    cancel = threading.Event()
    with cancel_on_signals(cancel):
        summary = execute_shown(
            package,
            options.runs_folder,
            cancel,
            quiet=options.quiet,
            request=request,
            resumed=resumed,
            abandon=options.abandon,
            replay=replay,
        )
        try:
            with kept_result(summary):
                if options.json_output:
                    print_json(summary.to_dict())
                else:
                    document = summary.to_dict()
                    text = render_summary(document, width=result_width())
                    print_result("\n".join(filter(None, [text, render_replay(document)])))
        finally:
            if summary.failure is not None:
                say(summary.failure.render())
    return summary.exit_code


def execute_shown(
    package: model.BoundPackage,
    runs_folder: Path,
    cancel: threading.Event,
    *,
    quiet: bool,
    request: run.RunRequest | None = None,
    resumed: run.RunFolder | None = None,
    abandon: bool = False,
    replay: run.ReplayRun | None = None,
) -> run.Summary:
    """Execute a package with progress on stderr; the first Ctrl-C sets `cancel`. Returns the summary.

    A defect inside the run becomes an InternalError whose traceback is saved in the run folder.
    """
    run_folders: list[Path] = []
    with open_progress(quiet=quiet) as progress, cancel_on_signals(cancel, progress.stopping):

        def listen(event: Mapping[str, Any]) -> None:
            if event["event"] == "run_started":
                run_folders.append(Path(event["run_folder"]))
            progress.listen(event)

        try:
            return run.execute(
                package,
                runs_dir=runs_folder,
                listener=listen,
                cancel=cancel,
                judge=diagnose.RunJudge(),
                request=request,
                resumed=resumed,
                abandon=abandon,
                replay=replay,
            )
        except HeadraceError:
            raise
        except Exception as error:
            if not run_folders:
                raise
            raise internal_error(error, run_folders[0]) from error


@contextmanager
def kept_result(summary: run.Summary) -> Iterator[None]:
    """The error of a result that cannot be printed says how the run ended all the same, and where the result is."""
    try:
        yield
    except OutputError as error:
        kept = shlex.quote(shown_path(Path(summary.run_folder) / "summary.json"))
        raise OutputError(
            f"run {summary.run_id} ended with status {summary.status}, but its result cannot be printed",
            found=error.found,
            hint=f"The result is in {kept}.",
        ) from error
