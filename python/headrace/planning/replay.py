"""What a replay does with the rejects of an earlier run: which it loads, which it drops."""

from __future__ import annotations

from dataclasses import dataclass

# First and last number of rejects that follow each other.
Stretch = tuple[int, int]


@dataclass(frozen=True)
class ReplayPlan:
    """The rejects of run `of_run` that are taken: stretches of their numbers, ascending, none of them twice.

    `file_hash`: SHA-256 (hex) of the file with the repaired rows, None without one; for people.
    """

    of_run: str
    loads: tuple[Stretch, ...]
    drops: tuple[Stretch, ...]
    file_hash: str | None = None

    def stretches(self) -> list[tuple[Stretch, str]]:
        """All of them, each with what happens to it: load or drop."""
        return sorted([*((item, "load") for item in self.loads), *((item, "drop") for item in self.drops)])
