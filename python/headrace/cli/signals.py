"""Ctrl-C and SIGTERM. A run is asked to stop and ends the process the second time; everything else ends at once.

No exception is ever raised from a handler: it would surface in whatever code is running, as a traceback or as a
"defect". The handlers of the whole process are installed by `main`, before anything heavy is imported: this module
imports next to nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

STOPPING = "stopping: what has not begun to commit is rolled back"

_STDOUT, _STDERR = 1, 2
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
# EXIT_CANCELLED and the document of a CancelledError, known before `headrace.errors` and `json` are imported.
_EXIT_CODE = 3
_DOCUMENT = """\
{
  "status": "cancelled",
  "error": {
    "kind": "cancelled",
    "what": "%s",
    "at": null,
    "found": null,
    "expected": null,
    "hint": null,
    "retryable": false
  }
}
"""
_SHOW_CURSOR = "\x1b[?25h"  # a live table hides it


class _Process:
    """What a handler must know about this process."""

    json_output = False
    result_begun = False
    was_asked = False


def end_on_signals(*, json_output: bool) -> None:
    """From now on SIGINT and SIGTERM end the process, as long as nothing has to be undone before."""
    _Process.json_output = json_output
    for number in _NAMES:
        signal.signal(number, _end_unless_done)


def result_begins() -> None:
    """The work is done and its result is being written: the first signal is too late, the second one ends the process
    (nobody may be reading).
    """
    _Process.result_begun = True


def ignore_signals() -> None:
    """The exit code is known; nothing changes it any more."""
    for number in _NAMES:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def cancel_on_signals(cancel: threading.Event, on_stopping: Callable[[], None] = lambda: None) -> Iterator[None]:
    """While inside, the first SIGINT or SIGTERM sets `cancel` and calls `on_stopping` (on the main thread, between any
    two instructions: it must not block). A second one ends the process at once with the exit code of a cancelled run;
    the destination then rolls back by itself.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            _end(number)
        cancel.set()
        on_stopping()

    previous = {number: signal.signal(number, handle) for number in _NAMES}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def write_now(text: str, file: int = _STDERR) -> None:
    """Write a line from a signal handler: not through the buffered stream, which the interrupted code may be in the
    middle of using.
    """
    with suppress(OSError):
        os.write(file, f"{text}\n".encode())


def _end_unless_done(number: int, _frame: FrameType | None) -> None:
    if _Process.result_begun and not _Process.was_asked:
        _Process.was_asked = True
        return
    _end(number)


def _end(number: int) -> None:
    what = f"stopped by {_NAMES[signal.Signals(number)]}"
    write_now(f"{_SHOW_CURSOR if os.isatty(_STDERR) else ''}error: {what}")
    if _Process.json_output and not _Process.result_begun:
        write_now((_DOCUMENT % what).rstrip(), _STDOUT)
    os._exit(_EXIT_CODE)
