"""Errors of programs: those that cannot begin, and those that have ended as they should not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from headrace.errors import ProcessError
from headrace.run.leaves.program_output import LogFile, shown_program


def cannot_start(command: str, folder: Path, instance: str, number: int | None) -> ProcessError:
    """The error for a program that could not begin, by errno."""
    found, hint = _reason(command, folder, number)
    return ProcessError(
        f"cannot start the program {shown_program(command)}",
        at={"task": instance, "folder": str(folder)},
        found=found,
        hint=hint,
    )


def check_folder(folder: Path, instance: str) -> None:
    """Raises ProcessError unless a program can run there."""
    if not os.path.isdir(folder):
        exists = os.path.lexists(folder)
        found = "it is no folder" if exists else "it does not exist"
    elif not os.access(folder, os.X_OK):
        found = "no right to enter it"
    else:
        return
    raise ProcessError(
        "a program cannot run in its folder",
        at={"task": instance, "folder": str(folder)},
        found=found,
        hint="Correct `folder`; it starts at the folder of the package file.",
    )


def last_words(log: LogFile) -> str:
    """The last lines of a program's errors, to be put behind what was found."""
    lines = log.last_lines()
    return "".join(f"\n{line}" for line in lines)


def _reason(command: str, folder: Path, number: int | None) -> tuple[str | None, str]:
    has_path = "/" in command
    if number == errno.ENOENT and has_path and os.path.lexists(os.path.join(folder, command)):
        return "the interpreter in its first line (#!) does not exist", "Install it, or correct the first line."
    if number == errno.ENOENT and has_path:
        return "there is no such file", "Correct the path; it starts at `folder`."
    if number == errno.ENOENT:
        return "no folder of PATH has it", "Install it, or write its path."
    if number == errno.EACCES and os.path.isdir(os.path.join(folder, command)) and has_path:
        return "it is a folder", "Name the program in it."
    if number == errno.EACCES:
        return "no right to execute it", "Make it executable (chmod +x)."
    if number == errno.ENOEXEC:
        return (
            "it is no program of this machine, and its first line names no interpreter (#!)",
            "Name the interpreter in `command`, such as [sh, script.sh].",
        )
    if number == errno.E2BIG:
        return "arguments and environment are too long", "Give long texts by `input`, or in a file."
    return (None if number is None else os.strerror(number)), "Check the command, and the limits of this machine."
