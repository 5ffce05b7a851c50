"""How evenly the rows of a table are spread over its partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One partition with what is in it."""

    name: str
    rows: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Spread:
    """All partitions, those with fewer rows first."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Spread:
        """Sorted by rows, then bytes; names decide between equal ones."""
        return cls(tuple(sorted(parts, key=lambda part: (part.rows, part.bytes, part.name))))

    @property
    def least(self) -> Part:
        """The one with the fewest rows."""
        return self.parts[0]

    @property
    def middle(self) -> Part:
        """As many partitions have fewer rows as have more; the lower one of two."""
        return self.parts[(len(self.parts) - 1) // 2]

    @property
    def greatest(self) -> Part:
        """The one with the most rows."""
        return self.parts[-1]

    @property
    def empty(self) -> int:
        """How many have no row."""
        return sum(not part.rows for part in self.parts)

    @property
    def imbalance(self) -> float:
        """The rows of the greatest one by those of the average one. Where each partition has a CPU, a scan takes so
        many times as long as it would if all were equal.
        """
        return self._imbalance(lambda part: part.rows)

    @property
    def imbalance_bytes(self) -> float:
        """The same of bytes."""
        return self._imbalance(lambda part: part.bytes)

    def _imbalance(self, size: Callable[[Part], int]) -> float:
        sizes = [size(part) for part in self.parts]
        total = sum(sizes)
        return max(sizes) * len(sizes) / total if total else 1.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "least": self.least.to_dict(),
            "middle": self.middle.to_dict(),
            "greatest": self.greatest.to_dict(),
            "empty": self.empty,
            "imbalance_rows": self.imbalance,
            "imbalance_bytes": self.imbalance_bytes,
            "partitions": [part.to_dict() for part in self.parts],
        }
