"""A process that has imported the whole command line, and becomes a command by fork when it is asked to.

Importing takes half a second of CPU, and tests start thousands of commands. What users start imports for itself:
`tests/cli` and `tests/docs` do it as they do. `starts.py` is the other end.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import headrace
import headrace.cli
from headrace.cli.app import app
from headrace.cli.failures import command_of

# A message: the arguments, folder and environment of a command.
MOST_BYTES = 150_000
# Standard output, standard error, and where its number and its end are written.
_DESCRIPTORS = 3


@dataclass(frozen=True)
class Request:
    """A command that is asked for."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    descriptors: list[int]


def main() -> NoReturn:
    """Serves until the other end is closed."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    for module in pkgutil.walk_packages(headrace.__path__, "headrace."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    _prepare(command_of(app))
    assert len(os.listdir("/proc/self/task")) == 1, "a module has started a thread: its locks would not survive a fork"
    gc.collect()
    gc.freeze()
    request = _serve(connection)
    _become(request)
    headrace.cli.main(request.arguments)
    raise AssertionError("the command line ends its process")


def _prepare(command: Any) -> None:
    """What typer makes when a parameter is used for the first time, and takes a tenth of a second in all."""
    for parameter in command.params:
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param()
    for subcommand in getattr(command, "commands", {}).values():
        _prepare(subcommand)


def _serve(connection: socket.socket) -> Request:
    """Returns in a new process for each command; what it is to do."""
    reports: dict[int, int] = {}

    def ended(_signal: int, _frame: Any) -> None:
        while reports:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            report = reports.pop(process)
            # The test may have gone away.
            with suppress(OSError):
                os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(report)

    signal.signal(signal.SIGCHLD, ended)
    while True:
        content, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, _DESCRIPTORS)
        if not content:
            os._exit(0)
        request = Request(**json.loads(content), descriptors=descriptors)
        # An end that comes before its number is known would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            return request
        reports[process] = descriptors[2]
        os.write(descriptors[2], f"{process}\n".encode())
        os.close(descriptors[0])
        os.close(descriptors[1])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _become(request: Request) -> None:
    """Makes this process what `python -m headrace` would be."""
    os.dup2(request.descriptors[0], 1)
    os.dup2(request.descriptors[1], 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    sys.path[0] = request.folder
    sys.argv = [headrace.cli.__file__, *request.arguments]


if __name__ == "__main__":
    main()
