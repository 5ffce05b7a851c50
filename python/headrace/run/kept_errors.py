"""Errors that are kept until the end of a run must not keep what failed: flows, their blocks, and their lookups."""

from __future__ import annotations

import traceback


def let_go_of_memory(error: BaseException) -> None:
    """Empties the frames through which an error and its causes came, but for those that still run."""
    cleared: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in cleared:  # an error can be its own cause
        traceback.clear_frames(cause.__traceback__)
        cleared.append(cause)
        cause = cause.__cause__ or cause.__context__
