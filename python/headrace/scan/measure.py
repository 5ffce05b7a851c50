"""One query on both tables in turns: whatever else the machine does meanwhile meets both alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from headrace.scan.queries import ScanQuery, told
from headrace.targets import ScannedTable, ScanSession, ScanTime


@dataclass(frozen=True, slots=True)
class Side:
    """The times of one table, in seconds, in the order of the repetitions. `cpu_seconds`: None where they are not
    known.
    """

    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] | None = None

    @property
    def median_seconds(self) -> float:
        """Of all repetitions."""
        return median(self.seconds)

    @property
    def median_cpu_seconds(self) -> float | None:
        """Of all repetitions."""
        return None if self.cpu_seconds is None else median(self.cpu_seconds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "median_seconds": self.median_seconds,
            "median_cpu_seconds": self.median_cpu_seconds,
            "seconds": list(self.seconds),
            "cpu_seconds": None if self.cpu_seconds is None else list(self.cpu_seconds),
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """A query with its times. The ratio of a repetition is the time of the whole table by that of the divided one:
    above 1 the divided table is faster.
    """

    query: ScanQuery
    rows: int
    whole: Side
    divided: Side

    @property
    def ratios(self) -> tuple[float, ...]:
        """Of the repetitions, in their order."""
        return tuple(one / other for one, other in zip(self.whole.seconds, self.divided.seconds, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        ratios = self.ratios
        return {
            "query": self.query.name,
            "sql": self.query.text,
            "rows": self.rows,
            "whole": self.whole.to_dict(),
            "divided": self.divided.to_dict(),
            "ratio": {"median": median(ratios), "least": min(ratios), "greatest": max(ratios), "all": list(ratios)},
        }


def measure(
    session: ScanSession, query: ScanQuery, tables: tuple[ScannedTable, ScannedTable], repetitions: int, rows: int
) -> Measured:
    """The times of a query that both tables have answered already. Which of them begins alternates."""
    times: tuple[list[ScanTime], list[ScanTime]] = ([], [])
    for repetition in range(repetitions):
        for side in (0, 1) if repetition % 2 == 0 else (1, 0):
            with told(query, tables[side]):
                times[side].append(session.scan(query.on(tables[side])))
    whole, divided = map(_side, times)
    return Measured(query, rows, whole, divided)


def _side(times: Sequence[ScanTime]) -> Side:
    cpu = tuple(time.cpu_seconds for time in times if time.cpu_seconds is not None)
    return Side(tuple(time.seconds for time in times), cpu if len(cpu) == len(times) else None)
