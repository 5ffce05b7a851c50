"""What tasks wait for: the stream pool of the run, which one at a time has, and places for all others."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Protocol

from headrace.run.cancellation import Cancellation


class Pool:
    """Who waits gets it in the order of the plan: the lowest rank first, then who came first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()
        self._is_held = False
        self._holder: Cancellation | None = None

    def is_cancelled(self) -> bool:
        """Whether whoever holds the pool has to stop; asked from any thread."""
        holder = self._holder
        return holder is not None and holder.is_set()

    def works_for(self, cancellation: Cancellation | None) -> None:
        """Says what stops the work that its holder does from now on."""
        self._holder = cancellation

    async def acquire(self, rank: int) -> None:
        """Waits for the pool."""
        if self._is_held:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.release()  # it had been given in the same moment
                raise
        self._is_held = True

    def release(self) -> None:
        """Gives it to who waits."""
        self._is_held = False
        while self._waiting and not self._is_held:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._is_held = True  # nobody who comes now may be faster
                turn.set_result(None)


class Resource(Protocol):
    """What a task holds while it works."""

    async def acquire(self) -> None:
        """Waits for it."""

    def release(self) -> None:
        """Gives it back."""


class PoolResource:
    """The pool, for a task of a rank."""

    def __init__(self, pool: Pool, rank: int) -> None:
        self._pool = pool
        self._rank = rank

    async def acquire(self) -> None:
        await self._pool.acquire(self._rank)

    def release(self) -> None:
        self._pool.release()


class PlaceResource:
    """One of the places for tasks side by side."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places

    async def acquire(self) -> None:
        await self._places.acquire()

    def release(self) -> None:
        self._places.release()


class NoResource:
    """Of containers, and of what is done at once."""

    async def acquire(self) -> None:
        return

    def release(self) -> None:
        return


class Hold:
    """A resource that a task holds while it works, and gives back while it waits and while its handlers run: two tasks
    of which each waited for what the other one holds would wait for ever.
    """

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._is_held = False

    @property
    def is_pool(self) -> bool:
        """Whether it is the pool."""
        return isinstance(self._resource, PoolResource)

    async def acquire(self) -> None:
        """Waits for it, unless it is held."""
        if not self._is_held:
            await self._resource.acquire()
            self._is_held = True

    def release(self) -> None:
        """Gives it back, if it is held."""
        if self._is_held:
            self._is_held = False
            self._resource.release()
