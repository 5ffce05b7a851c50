"""What a replay does with the rejects of an earlier run: which it loads, which it drops."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

# First and last number of rejects that follow each other.
Stretch = tuple[int, int]
_PORTION_STRETCHES: Final = 10_000


@dataclass(frozen=True)
class ReplayPlan:
    """The rejects of run `of_run` that are taken: stretches of their numbers, ascending, none of them twice.

    `file_hash`: SHA-256 (hex) of the file with the repaired rows, None without one; for people. `rows_added`: rows of
    the file beyond one for each number.
    """

    of_run: str
    loads: Sequence[Stretch]
    drops: Sequence[Stretch]
    file_hash: str | None = None
    rows_added: int = 0

    def portions(self) -> Iterator[list[tuple[Stretch, str]]]:
        """All of them, each with what happens to it, load or drop: so many at once as a statement takes."""
        named = heapq.merge(((item, "load") for item in self.loads), ((item, "drop") for item in self.drops))
        while portion := list(itertools.islice(named, _PORTION_STRETCHES)):
            yield portion
