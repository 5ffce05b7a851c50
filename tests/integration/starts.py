"""Starts commands of Headrace: as users do, or from a process that has everything imported (`start_server.py`)."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from tests.integration.start_server import MOST_BYTES
from tests.patience import HANG_SECONDS

_ROOT = Path(__file__).parents[2]
HEADRACE = [sys.executable, "-m", "headrace"]
# Of the session, before any test has changed them.
_VARIABLES = dict(os.environ)
# Those that a process reads when it begins: the interpreter, the C library, the core (once, for all that follows).
_OF_THE_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_")
_OF_THE_CORE = "HEADRACE_CPU"
# Set: every command is started as users do.
REAL_STARTS_VARIABLE = "HEADRACE_REAL_STARTS"


class Started(Protocol):
    """A process that has been started."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self, seconds: float = 0.0) -> int | None:
        """How it ended, as `subprocess` tells it; None if it has not within so many seconds."""


def start(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    outputs: tuple[BinaryIO, BinaryIO],
    *,
    real: bool = False,
) -> Started:
    """Starts a program without standard input. `real`: as users do, whatever it is."""
    message = json.dumps({"arguments": [*arguments][3:], "folder": str(folder), "environment": dict(environment)})
    if real or REAL_STARTS_VARIABLE in os.environ or [*arguments][:3] != HEADRACE or len(message) > MOST_BYTES // 2:
        return _Program(arguments, folder, environment, outputs)
    if any(name.startswith(_OF_THE_START) for name in _changed(environment)):
        return _Program(arguments, folder, environment, outputs)
    return _Forked(message, outputs)


def changed_at_the_start(environment: Mapping[str, str]) -> bool:
    """Whether these variables differ from those of the session where a process reads them only once."""
    return any(name.startswith((*_OF_THE_START, _OF_THE_CORE)) for name in _changed(environment))


def _changed(environment: Mapping[str, str]) -> set[str]:
    return {name for name in {*environment, *_VARIABLES} if environment.get(name) != _VARIABLES.get(name)}


class _Program:
    """A program that was started as users do."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        outputs: tuple[BinaryIO, BinaryIO],
    ) -> None:
        self._process = subprocess.Popen(
            arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=outputs[0], stderr=outputs[1], env=environment
        )
        self.pid = self._process.pid
        self._end = os.pidfd_open(self.pid)

    def poll(self, seconds: float = 0.0) -> int | None:
        if self._process.returncode is None and _readable(self._end, seconds):
            self._process.wait()
            os.close(self._end)
        return self._process.returncode


class _Forked:
    """A copy of the process that has everything imported."""

    def __init__(self, message: str, outputs: tuple[BinaryIO, BinaryIO]) -> None:
        reader, writer = os.pipe()
        self._reports = os.fdopen(reader, "rb", buffering=0)
        try:
            descriptors = [outputs[0].fileno(), outputs[1].fileno(), writer]
            socket.send_fds(_server(), [message.encode()], descriptors)
        finally:
            os.close(writer)
        self.pid = self._report()
        self._exit_code: int | None = None

    def poll(self, seconds: float = 0.0) -> int | None:
        if self._exit_code is None and _readable(self._reports.fileno(), seconds):
            self._exit_code = self._report()
            self._reports.close()
        return self._exit_code

    def _report(self) -> int:
        """The next line; byte by byte, because the one behind it is awaited with `select`."""
        line = b""
        while not line.endswith(b"\n"):
            byte = self._reports.read(1)
            assert byte, "the process that starts commands is gone"
            line += byte
        return int(line)


def _readable(descriptor: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


@functools.cache
def _server() -> socket.socket:
    """The connection to this session's own one; it ends when that is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # What it imports must not depend on the test that needs it first: neither folder nor variables of a test.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.start_server", str(theirs.fileno())],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        env=_VARIABLES,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(HANG_SECONDS)

    atexit.register(end)
    return ours
