"""Whether the process runs nothing but Headrace's command line, which may then set what concerns all of it, such as the
memory allocator. A process that has loaded Headrace as a library stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

_is_own = False
_waiting: list[Callable[[], None]] = []


def claim() -> None:
    """Says that it is so, for good."""
    global _is_own
    _is_own = True
    while _waiting:
        _waiting.pop(0)()


def when_own(function: Callable[[], None]) -> None:
    """Calls the function if it is so, now or as soon as it is."""
    if _is_own:
        function()
    else:
        _waiting.append(function)
