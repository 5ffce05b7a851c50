"""Waiting in short steps, so that signals are answered meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

_STEP_SECONDS: Final = 0.1
_Result = TypeVar("_Result")


def on_worker(call: Callable[[], _Result], in_each_step: Callable[[], None] = lambda: None) -> _Result:
    """The result of `call`, made on another thread; `in_each_step` is called here about ten times a second."""
    with ThreadPoolExecutor(1) as worker:
        answer = worker.submit(call)
        while not wait([answer], _STEP_SECONDS).done:
            in_each_step()
        return answer.result()


def waited(seconds: float, is_cancelled: Callable[[], bool]) -> bool:
    """Waits; False if the work has to stop meanwhile."""
    end = time.monotonic() + seconds
    while not is_cancelled():
        left = end - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, _STEP_SECONDS))
    return False
