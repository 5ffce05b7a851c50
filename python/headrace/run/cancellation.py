"""Asking work to stop: a tree, so that what stops a container stops all that is inside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from headrace.errors import CancelledError, HeadraceError, TaskTimeoutError

Reason = Literal["cancelled", "timeout"]
_STEP_SECONDS = 0.05


class Cancellation:
    """Set once, from any thread. `outer`: what else stops it, such as the user's Ctrl-C."""

    def __init__(self, outer: Callable[[], bool] | None = None, parent: Cancellation | None = None) -> None:
        self._outer = outer
        self._parent = parent
        self._event = threading.Event()
        self._timeout_seconds: float | None = None

    def inside(self) -> Cancellation:
        """One that is set when this one is, and can be set alone."""
        return Cancellation(parent=self)

    def set(self) -> None:
        """Asks to stop because the user, or what is around, wants it."""
        self._event.set()

    def time_out(self, seconds: float) -> None:
        """Asks to stop because the work has taken longer than it may."""
        if not self.is_set():
            self._timeout_seconds = seconds
            self._event.set()

    def is_set(self) -> bool:
        """Whether the work has to stop."""
        if self._event.is_set() or (self._outer is not None and self._outer()):
            return True
        return self._parent is not None and self._parent.is_set()

    @property
    def timeout_seconds(self) -> float | None:
        """The time that was exceeded; None if the work was not stopped for that."""
        if self._timeout_seconds is not None or self._parent is None:
            return self._timeout_seconds
        return self._parent.timeout_seconds

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`; True if the work has to stop."""
        end = threading.TIMEOUT_MAX if seconds < 0 else seconds
        waited = 0.0
        while not self.is_set() and waited < end:
            step = min(_STEP_SECONDS, end - waited)
            self._event.wait(step)
            waited += step
        return self.is_set()

    def check(self, what: str) -> None:
        """Raises `error(what)` if the work has to stop."""
        if self.is_set():
            raise self.error(what)

    def error(self, what: str) -> HeadraceError:
        """How work ends that was asked to stop: a TaskTimeoutError or CancelledError. `what`: such as `task load`."""
        seconds = self.timeout_seconds
        if seconds is None:
            return CancelledError(f"{what} was cancelled")
        return TaskTimeoutError(
            f"{what} took longer than it may",
            expected=f"at most {seconds:g} seconds, by `timeout_seconds`",
            hint="Find out what it waited for, or raise `timeout_seconds`.",
        )
