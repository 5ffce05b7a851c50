"""Runs one program in a session of its own and ends its process group when Headrace is gone, however it went.

Started by path, as `python -I -S guard.py CONTROL STATUS KEPT -- PROGRAM ARGUMENT...`, in the folder, with the
environment and the standard streams that the program is to have. CONTROL, STATUS: file descriptors. KEPT: those that
the program gets beside its standard streams, separated by commas, or `-`.

Headrace writes bytes to CONTROL: `g` lets the program begin, `t` sends SIGTERM to its group, `k` SIGKILL. The end of
CONTROL means that Headrace is gone: SIGKILL. The guard writes lines to STATUS: `ready PID` (the process waits for `g`),
`error ERRNO` (it could not become the program), `ended STATUS` (as waitpid says it), and `left` (behind `ended`: others
of the group go on). It ends when the group is empty.

A process that leaves the session (`setsid`) is not ended: that is how programs start servers.
"""

from __future__ import annotations

import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# How long to wait for processes that were killed; one in a system call that never returns is given up.
_KILLED_SECONDS = 5.0
_STEP_SECONDS = 0.02


def _control_process(option: int, value: int) -> None:
    """Without the call (no ctypes, a sandbox) the guard does its work all the same; only the guard's own sudden death
    would go unnoticed."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def _environment() -> dict[bytes, bytes]:
    """The environment as Headrace gave it: Python itself may have added LC_CTYPE to its own."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    except OSError:
        return dict(os.environb)
    return {name: value for name, _, value in pairs}


def _become(program: list[str], gate: int, trouble: int, guard: int, defaults: list[int]) -> None:
    """In the new process: waits for the gate, then is the program. Does not return."""
    try:
        environment = _environment()
        os.setsid()
        _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard or os.read(gate, 1) != b"g":
            os._exit(127)
        for number in defaults:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvpe(program[0], program, environment)
    except OSError as error:
        os.write(trouble, str(error.errno).encode("ascii"))
    finally:
        os._exit(127)


class _Guard:
    """One program and its group."""

    def __init__(self, control: int, status: int, defaults: list[int]) -> None:
        self._control = control
        self._status = status
        self._defaults = defaults
        self._program = 0
        self._is_over = False
        self._is_controlled = True

    def run(self, program: list[str], kept: list[int]) -> None:
        wake, waker = os.pipe()
        for descriptor in (wake, waker):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(waker)
        _control_process(_PR_SET_CHILD_SUBREAPER, 1)
        gate, gate_end = os.pipe()
        trouble, trouble_end = os.pipe()
        own = os.getpid()
        self._program = os.fork()
        if self._program == 0:
            _become(program, gate, trouble_end, own, self._defaults)
        # Whoever reads what the program writes shall see its end: nothing of it stays open here.
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        for descriptor in (gate, trouble_end, *kept):
            os.close(descriptor)
        self._say(f"ready {self._program}")
        if self._begin(gate_end):
            failure = os.read(trouble, 16)
            if failure:
                self._say(f"error {failure.decode('ascii')}")
        self._watch(wake)

    def _begin(self, gate_end: int) -> bool:
        """False if the program shall not begin."""
        order = os.read(self._control, 1)
        if order == b"g":
            try:
                os.write(gate_end, order)
            except OSError:
                return False
        os.close(gate_end)
        return order == b"g"

    def _watch(self, wake: int) -> None:
        while True:
            self._reap()
            if self._is_over and not self._group_lives():
                return
            if not self._is_controlled:
                self._kill_all()
                return
            # The end of a process that is not ours to wait for is seen by looking.
            timeout = _STEP_SECONDS if self._is_over else None
            ready, _, _ = select.select([self._control, wake], [], [], timeout)
            if wake in ready:
                os.read(wake, 512)
            if self._control in ready:
                self._obey(os.read(self._control, 16))

    def _obey(self, orders: bytes) -> None:
        if not orders:
            self._is_controlled = False
        if b"k" in orders:
            self._signal(signal.SIGKILL)
        elif b"t" in orders:
            self._signal(signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._program:
                self._is_over = True
                self._say(f"ended {status}")
                if self._group_lives():
                    self._say("left")

    def _group_lives(self) -> bool:
        """Of a group that is empty the number could belong to others; of one that is not, it cannot."""
        try:
            os.killpg(self._program, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def _signal(self, number: int) -> None:
        try:  # noqa: SIM105 contextlib takes a third of the time in which this starts
            os.killpg(self._program, number)
        except OSError:
            pass

    def _kill_all(self) -> None:
        for _ in range(int(_KILLED_SECONDS / _STEP_SECONDS)):
            self._signal(signal.SIGKILL)
            self._reap()
            if self._is_over and not self._group_lives():
                return
            select.select([], [], [], _STEP_SECONDS)

    def _say(self, line: str) -> None:
        try:
            os.write(self._status, f"{line}\n".encode("ascii"))
        except OSError:
            self._is_controlled = False


def main(arguments: list[str]) -> None:
    """The guard's life. It obeys Headrace alone, no signals; the program gets back what it changes for itself."""
    asked_to_end = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    defaults = [number for number in asked_to_end if signal.getsignal(number) != signal.SIG_IGN]
    for number in asked_to_end:
        signal.signal(number, signal.SIG_IGN)
    control, status = int(arguments[0]), int(arguments[1])
    kept = [] if arguments[2] == "-" else [int(text) for text in arguments[2].split(",")]
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    # Python ignores these two in every process of its own.
    _Guard(control, status, [*defaults, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]).run(arguments[4:], kept)


if __name__ == "__main__":
    main(sys.argv[1:])
