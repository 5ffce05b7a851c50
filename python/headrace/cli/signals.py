"""Ctrl-C and SIGTERM ask a run to stop; the second time they end the process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from headrace.errors import EXIT_CANCELLED

STOPPING = "stopping: what is not committed is rolled back"
_SHOW_CURSOR = b"\x1b[?25h"  # a live table hides it


@contextmanager
def cancel_on_signals(cancel: threading.Event, on_stopping: Callable[[], None]) -> Iterator[None]:
    """While inside, the first SIGINT or SIGTERM sets `cancel` and calls `on_stopping` (on the main thread, between any
    two instructions: it must not block). A second one ends the process at once with the exit code of a cancelled run;
    the destination then rolls back by itself.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)
            os._exit(EXIT_CANCELLED)
        cancel.set()
        on_stopping()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def write_now(line: str) -> None:
    """Write a line to stderr from a signal handler: not through the buffered stream, which the interrupted code may be
    in the middle of using.
    """
    os.write(2, f"{line}\n".encode())
