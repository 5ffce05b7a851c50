"""How long tests wait: until something has happened, never for a time.

No test may depend on how fast the machine is. A limit is there to end a test that hangs, so it is far above what a
loaded machine needs; and what must not be waited for never comes, or takes far longer than the limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The limit of what hangs.
HANG_SECONDS = 120.0
# What a test must not wait for takes this long, for instance a `sleep` that is to be interrupted.
FOR_EVER_SECONDS = 3600
_POLL_SECONDS = 0.005


@contextmanager
def soon() -> Iterator[None]:
    """What is inside ends without waiting for what never comes."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < HANG_SECONDS, f"it took over {HANG_SECONDS:.0f} s"


def wait_until(condition: Callable[[], object], what: str = "it") -> None:
    """Returns when the condition is true; fails if it is not within the limit of what hangs."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {HANG_SECONDS:.0f} s"
        time.sleep(_POLL_SECONDS)
