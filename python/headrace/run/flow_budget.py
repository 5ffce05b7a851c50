"""What one data flow may use of the memory of the run."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.planning import MemoryBudget
from headrace.targets import Target


def budget_of(memory_bytes: int, targets: Sequence[Target]) -> MemoryBudget:
    """The same for all destinations of a flow, which have their rows in one pass: `targets`, one for each of them."""
    places = {id(target): target for target in targets}.values()
    shares = [share for target in places if (share := target.capabilities.memory_share)]
    return MemoryBudget(
        memory_bytes,
        max(target.engine_threads for target in places),
        len(targets),
        max(1, len(shares)),
        max(shares, default=0.0),
    )
