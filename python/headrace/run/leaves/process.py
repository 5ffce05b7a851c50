"""Tasks of kind `process`: a program of this machine, without a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headrace.errors import ProcessError, ProcessRetryError
from headrace.model.spec_leaves import ProcessSpec
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.program_failures import cannot_start, check_folder, last_words
from headrace.run.leaves.program_leftovers import RUN_VARIABLE, TASK_VARIABLE
from headrace.run.leaves.program_output import Collected, LogFile, log_path, shown_program
from headrace.run.leaves.programs import Ended, Program, run_program

MAXIMUM_OUTPUT_BYTES: Final = 1_000_000


class ProcessLeaf:
    """Runs the program and waits for its end."""

    def run(self, settings: ProcessSpec, context: LeafContext) -> LeafResult:
        """Raises ProcessError; ProcessRetryError for an exit code behind which trying again can help."""
        _refuse_secrets(settings.command, context)
        folder = Path(os.path.abspath(context.folder / settings.folder))
        check_folder(folder, context.instance)
        errors = open_log(context, "stderr")
        output: LogFile | Collected = open_log(context, "stdout")
        if settings.output is not None:
            output = Collected(MAXIMUM_OUTPUT_BYTES)
        ended = run_program(
            Program(
                command=settings.command,
                folder=folder,
                environment=environment_of(context, settings.environment),
                input=None if settings.input is None else settings.input.encode("utf-8"),
                output=output,
                errors=errors,
            ),
            context,
        )
        if ended.failure is not None:
            raise cannot_start(settings.command[0], folder, context.instance, ended.failure)
        if isinstance(output, Collected) and output.is_too_long:
            raise _too_long(settings.command[0], context)
        if ended.code not in settings.exit_codes:
            raise _failed(settings, ended, errors, context)
        logs = [log for log in (output, errors) if isinstance(log, LogFile)]
        details = {"exit_code": ended.code, "logs": kept(*logs)}
        if settings.output is None or not isinstance(output, Collected):
            return LeafResult(details=details)
        return LeafResult({settings.output: _text(bytes(output.content), settings.command[0], context)}, details)

    def describe(self, settings: ProcessSpec) -> Sequence[str]:
        """The command as a shell would take it."""
        return [f"runs {shlex.join(settings.command)}"]


def open_log(context: LeafContext, stream: str) -> LogFile:
    """The file for what a program of the task prints."""
    path = log_path(context.run_folder, context.instance, stream)
    return LogFile(path, context.redact, context.package.secrets, context.warn)


def kept(*logs: LogFile) -> list[str]:
    """The files with what was printed, if anything was."""
    return [str(log.path) for log in logs if log.is_written]


def environment_of(context: LeafContext, added: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program: that of Headrace, names by which it can know its run, and what the package adds."""
    return {**os.environ, RUN_VARIABLE: context.run_id, TASK_VARIABLE: context.instance, **added}


def _refuse_secrets(command: Sequence[str], context: LeafContext) -> None:
    for number, text in enumerate(command):
        # A copy: other tasks may find secrets meanwhile.
        if any(secret and secret in text for secret in tuple(context.package.secrets)):
            raise ProcessError(
                "a secret stands in `command`",
                at={"task": context.instance, "item": number + 1},
                found="every user of this machine can see the arguments of programs",
                hint="Give it by `environment` or `input`.",
            )


def _failed(settings: ProcessSpec, ended: Ended, errors: LogFile, context: LeafContext) -> ProcessError:
    kind = ProcessRetryError if ended.code in settings.retry_exit_codes else ProcessError
    codes = ", ".join(map(str, settings.exit_codes))
    return kind(
        f"the program {shown_program(settings.command[0])} has failed",
        at={"task": context.instance},
        found=ended.describe() + last_words(errors),
        expected=f"exit code {codes}",
        hint=f"All that it has said is in {errors.path}." if kept(errors) else None,
    )


def _too_long(command: str, context: LeafContext) -> ProcessError:
    return ProcessError(
        f"the program {shown_program(command)} writes too much for a variable; it was ended",
        at={"task": context.instance},
        found=f"more than {MAXIMUM_OUTPUT_BYTES:,} bytes",
        expected=f"at most {MAXIMUM_OUTPUT_BYTES:,} bytes for `output`",
        hint="Let it write a file; a data flow loads files of any size.",
    )


def _text(content: bytes, command: str, context: LeafContext) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProcessError(
            f"the program {shown_program(command)} has not written UTF-8",
            at={"task": context.instance, "byte": error.start},
            found=f"the byte 0x{content[error.start]:02X}",
            expected="UTF-8 for `output`",
            hint="Let it write UTF-8, such as by LC_ALL in `environment`.",
        ) from None
    return text.rstrip("\r\n")
