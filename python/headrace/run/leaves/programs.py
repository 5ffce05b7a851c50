"""Runs a program under a guard: none of its group outlives its task, a cancellation, or Headrace itself."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace import child
from headrace.errors import ProcessError
from headrace.run.leaves.base import LeafContext
from headrace.run.leaves.program_failures import cannot_start
from headrace.run.leaves.program_leftovers import end_leftovers, note_of
from headrace.run.leaves.program_output import Sink, shown_program

_GUARD: Final = Path(child.__file__).with_name("guard.py")
_STEP_SECONDS: Final = 0.05
_READ_BYTES: Final = 65_536
# How long a program may take to end itself when it is asked to, and what it has left running, to end by itself.
ASKED_SECONDS: Final = 5.0
_LEFT_SECONDS: Final = 1.0
_SIGNAL_CODES: Final = 128
# A pipe holds 1 MB at most, unless root says otherwise.
_DRAINED_READS: Final = 32


@dataclass(frozen=True)
class Program:
    """What to run. `environment`: all of it. `result`: takes what is written to a further pipe, whose number is put
    behind the command.
    """

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    output: Sink
    errors: Sink
    input: bytes | None = None
    result: Sink | None = None


@dataclass(frozen=True)
class Ended:
    """How a program has ended. `failure`: errno if it could not begin. `was_stopped`: a sink took no more."""

    status: int
    failure: int | None = None
    was_stopped: bool = False

    @property
    def code(self) -> int:
        """The exit code; behind a signal 128 and its number, as in shells."""
        if os.WIFSIGNALED(self.status):
            return _SIGNAL_CODES + os.WTERMSIG(self.status)
        return os.WEXITSTATUS(self.status)

    def describe(self) -> str:
        """How it has ended, in words."""
        if not os.WIFSIGNALED(self.status):
            return f"exit code {self.code}"
        number = os.WTERMSIG(self.status)
        try:
            return f"ended by signal {number} ({signal.Signals(number).name})"
        except ValueError:
            return f"ended by signal {number}"


def run_program(program: Program, context: LeafContext) -> Ended:
    """Runs it to its end. What an earlier attempt has left running is ended first.

    Raises ProcessError if it cannot be started, and what the cancellation says.
    """
    context.cancellation.check(f"task {context.instance}")
    end_leftovers(context)
    run = _Run(program, context)
    try:
        return run.to_the_end()
    finally:
        run.close()


class _Run:
    """One program: a loop over its pipes, in the thread of the task."""

    def __init__(self, program: Program, context: LeafContext) -> None:
        self._context = context
        self._program = program
        self._selector = selectors.DefaultSelector()
        self._sinks: list[Sink] = []
        self._input = memoryview(program.input or b"")
        self._lines = b""
        self._failure: int | None = None
        self._status: int | None = None
        self._is_left = False
        self._was_stopped = False
        self._is_guarded = True
        self._asks = _Asks(self._order)
        control, self._control = os.pipe()
        self._status_pipe, status = os.pipe()
        result = os.pipe() if program.result is not None else None
        command = list(program.command) + ([str(result[1])] if result else [])
        kept = [result[1]] if result else []
        try:
            self._guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(_GUARD), str(control), str(status)),
                    *(",".join(map(str, kept)) or "-", "--"),
                    *command,
                ],
                cwd=program.folder,
                env=dict(program.environment),
                stdin=subprocess.DEVNULL if program.input is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(control, status, *kept),
                start_new_session=True,
            )
        except OSError as error:
            for descriptor in (self._control, self._status_pipe, *(result[:1] if result else ())):
                os.close(descriptor)
            self._selector.close()
            raise cannot_start(program.command[0], program.folder, context.instance, error.errno) from error
        finally:
            for descriptor in (control, status, *kept):
                os.close(descriptor)
        assert self._guard.stdout is not None and self._guard.stderr is not None
        self._watch(self._guard.stdout.fileno(), program.output)
        self._watch(self._guard.stderr.fileno(), program.errors)
        self._result = None if result is None else result[0]
        if result is not None and program.result is not None:
            self._watch(result[0], program.result)
        self._selector.register(self._status_pipe, selectors.EVENT_READ, None)
        if self._guard.stdin is not None:
            os.set_blocking(self._guard.stdin.fileno(), False)
            self._selector.register(self._guard.stdin.fileno(), selectors.EVENT_WRITE, None)

    def to_the_end(self) -> Ended:
        """Follows the program."""
        while self._is_guarded:
            for key, _ in self._selector.select(_STEP_SECONDS):
                self._step(key.fd, key.data)
            if self._context.cancellation.is_set() or self._was_stopped:
                self._asks.begin()
            if self._asks.go_on():
                self._guard.kill()
        self._drain()
        self._context.cancellation.check(f"task {self._context.instance}")
        if self._status is None:
            raise ProcessError(
                f"the program {shown_program(self._program.command[0])} was lost",
                at={"task": self._context.instance},
                found="the process that guards it has ended",
                hint="Look for what has ended it: the system's log, or a limit of memory.",
            )
        if self._is_left and self._asks.was_needed:
            self._context.warn(
                f"what {shown_program(self._program.command[0])} has left running was ended; "
                "a server that is to stay has to leave the session (`setsid`)"
            )
        return Ended(self._status, self._failure, self._was_stopped)

    def close(self) -> None:
        """Ends what still runs, and forgets the pipes."""
        os.close(self._control)
        try:
            self._guard.wait(2 * ASKED_SECONDS)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        self._selector.close()
        os.close(self._status_pipe)
        if self._result is not None:
            os.close(self._result)
        for stream in (self._guard.stdin, self._guard.stdout, self._guard.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _watch(self, descriptor: int, sink: Sink) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, sink)
        self._sinks.append(sink)

    def _step(self, descriptor: int, sink: Sink | None) -> None:
        if sink is not None:
            self._read(descriptor, sink)
        elif descriptor == self._status_pipe:
            self._read_status()
        else:
            self._write(descriptor)

    def _read(self, descriptor: int, sink: Sink) -> bool:
        """False if there is nothing, now or ever."""
        try:
            content = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not content:
            self._selector.unregister(descriptor)
            return False
        if not self._was_stopped and not sink.take(content):
            self._was_stopped = True
        return True

    def _write(self, descriptor: int) -> None:
        """Sends input, as far as the program takes it; one that does not read all of it is none of our business."""
        with suppress(BlockingIOError):
            try:
                self._input = self._input[os.write(descriptor, self._input[:_READ_BYTES]) :]
            except BrokenPipeError:
                self._input = self._input[:0]
        if not self._input:
            self._selector.unregister(descriptor)
            assert self._guard.stdin is not None
            self._guard.stdin.close()

    def _read_status(self) -> None:
        content = os.read(self._status_pipe, _READ_BYTES)
        if not content:
            self._is_guarded = False
            return
        *lines, self._lines = (self._lines + content).split(b"\n")
        for line in lines:
            word, _, value = line.decode("ascii").partition(" ")
            if word == "ready":
                self._begin(int(value))
            elif word == "error":
                self._failure = int(value)
            elif word == "ended":
                self._status = int(value)
            elif word == "left":
                self._is_left = True
                self._asks.begin(_LEFT_SECONDS)

    def _begin(self, process: int) -> None:
        """The process waits: first the run has to know which one it is."""
        if not self._context.cancellation.is_set():
            self._context.memory.remember(note_of(process))
            self._order(b"g")

    def _order(self, order: bytes) -> None:
        with suppress(OSError):
            os.write(self._control, order)

    def _drain(self) -> None:
        """What is in the pipes; others may hold them open for ever."""
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                # Not for ever: somebody could write faster than this reads.
                for _ in range(_DRAINED_READS):
                    if not self._read(key.fd, key.data):
                        break
        for sink in self._sinks:
            sink.close()


class _Asks:
    """Asking a group of processes to end: politely, then not."""

    def __init__(self, order: Callable[[bytes], None]) -> None:
        self._order = order
        self._next: float | None = None
        self._orders = [b"t", b"k", b""]
        self.was_needed = False

    def begin(self, wait_seconds: float = 0.0) -> None:
        """From now on, or in a while; sooner counts."""
        if len(self._orders) == 3:
            start = time.monotonic() + wait_seconds
            self._next = start if self._next is None else min(self._next, start)

    def go_on(self) -> bool:
        """Asks if it is time; True if nothing has helped."""
        if self._next is None or time.monotonic() < self._next:
            return False
        self.was_needed = True
        order = self._orders.pop(0)
        self._next = time.monotonic() + ASKED_SECONDS if self._orders else None
        if not order:
            return True
        self._order(order)
        return False
