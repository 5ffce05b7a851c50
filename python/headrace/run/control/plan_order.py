"""Data flows that were planned before the run start in the order of the plan: it says what each finds in its table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


class PlanOrder:
    """`instances`: the planned flows, in order. Each must be settled once: it has ended, or will never start."""

    def __init__(self, instances: Sequence[str]) -> None:
        self._order = list(instances)
        self._places = {name: place for place, name in enumerate(self._order)}
        self._open = set(self._order)
        self._first = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def turn(self, instance: str) -> None:
        """Waits until all flows before this one are settled. One that is not planned does not wait."""
        place = self._places.get(instance)
        if place is None or place <= self._first:
            return
        future = self._waiting[place] = asyncio.get_running_loop().create_future()
        await future

    async def turn_inside(self, instance: str) -> None:
        """The same for all flows inside of a container that begin together."""
        first = next((name for name in self._order[self._first :] if name.startswith(_inside(instance))), None)
        if first is not None:
            await self.turn(first)

    def settle(self, instance: str) -> None:
        """A flow has ended, or will never start."""
        self._open.discard(instance)
        self._advance()

    def settle_inside(self, instance: str) -> None:
        """Nothing more will start inside of a container."""
        self._open -= {name for name in self._open if name.startswith(_inside(instance))}
        self._advance()

    def _advance(self) -> None:
        while self._first < len(self._order) and self._order[self._first] not in self._open:
            self._first += 1
        future = self._waiting.pop(self._first, None)
        if future is not None and not future.done():
            future.set_result(None)


def _inside(instance: str) -> tuple[str, str]:
    return f"{instance}.", f"{instance}["
