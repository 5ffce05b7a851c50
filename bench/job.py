"""What a measurement is given, and what a method is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.data import DataSet


@dataclass
class Job:
    """One measurement: the files, an empty folder to write to, and how many cores the process has."""

    data: DataSet
    scratch: Path
    cores: int
    # Set by methods that must prepare what they do not measure.
    excluded_seconds: float = 0.0
    excluded_cpu_seconds: float = 0.0

    @property
    def database(self) -> Path:
        """Where `load` methods write."""
        return self.scratch / "loaded.duckdb"


def _nothing_missing() -> str | None:
    return None


@dataclass(frozen=True)
class Method:
    """`call`: what it does, in one line, for the documents. `peer`: whose version counts.

    `needs_server`: the variables of libpq must name an empty database of a PostgreSQL server. `missing`: why it cannot
    run here, None if it can. `repetitions`: at most so many, for what takes very long.
    """

    name: str
    peer: str
    call: str
    run: Callable[[Job], int]
    base: bool = field(default=False, kw_only=True)
    needs_server: bool = field(default=False, kw_only=True)
    missing: Callable[[], str | None] = field(default=_nothing_missing, kw_only=True)
    repetitions: int | None = field(default=None, kw_only=True)
