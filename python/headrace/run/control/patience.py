"""Waiting that ends when the work is asked to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

from headrace.run.cancellation import Cancellation

_LOOK_SECONDS: Final = 0.1


async def slept(seconds: float, cancellation: Cancellation) -> bool:
    """False if the work had to stop meanwhile."""
    end = time.monotonic() + seconds
    while not cancellation.is_set():
        left = end - time.monotonic()
        if left <= 0:
            return True
        await asyncio.sleep(min(left, _LOOK_SECONDS))
    return False


class Patience:
    """All that waits in the control thread, looked after by one coroutine: `watch`."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Task[Any], Cancellation] = {}

    async def wait(self, what: Coroutine[Any, Any, None], cancellation: Cancellation) -> bool:
        """Waits for `what`; False if it was given up, because the work has to stop."""
        task = asyncio.ensure_future(what)
        self._waiting[task] = cancellation
        try:
            await task
        except asyncio.CancelledError:
            if not cancellation.is_set():
                raise
            return False
        finally:
            del self._waiting[task]
        return True

    async def watch(self) -> None:
        """Gives up what waits in vain; never ends by itself."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for task, cancellation in list(self._waiting.items()):
                if cancellation.is_set():
                    task.cancel()
