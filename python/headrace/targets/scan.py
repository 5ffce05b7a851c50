"""Scans of stored tables: what a target tells of a table, and a session that only reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from headrace.errors import SqlError
from headrace.model import DataType

Answer = list[tuple[str | None, ...]]
# More rows would measure how they travel, and not the scan.
MOST_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ScannedPart:
    """One partition. `sql`: its quoted name; `bytes`: what it takes on the destination's disk, without indexes."""

    name: str
    sql: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ScannedTable:
    """A table, or whatever else has the name: `kind` says what. `strategy` is None for one that is neither divided nor
    a view that a load has made. `key`: columns or expressions by which it is divided; empty for a view of which that is
    not known.
    """

    name: str
    sql: str
    columns: Mapping[str, DataType | None]
    bytes: int
    kind: str = "table"
    strategy: str | None = None
    key: tuple[str, ...] = ()
    parts: tuple[ScannedPart, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanTime:
    """How long one scan took. `cpu_seconds`: of all CPUs; None where another process scans."""

    seconds: float
    cpu_seconds: float | None = None


class ScanSession(Protocol):
    """A session in which nothing can be changed. Used by one thread. All of it raises CancelledError soon after the
    command is cancelled, and the query of the moment ends.
    """

    def table(self, name: str) -> ScannedTable | None:
        """`table` or `schema.table`; None if there is none."""

    def literal(self, text: str, data_type: DataType) -> str:
        """A value of a column, in SQL."""

    def part_rows(self, table: ScannedTable) -> Sequence[int]:
        """How many rows each part of a divided table has."""

    def answer(self, text: str) -> Answer:
        """The rows of a query, as texts. Raises SqlError, also if there are too many."""

    def scan(self, text: str) -> ScanTime:
        """Executes a query that has given its answer, and drops its rows. Its time is that of the query alone, without
        what is done around it.
        """

    def close(self) -> None: ...


def timed(execute: Callable[[], object], *, counts_cpu: bool) -> ScanTime:
    """How long it takes. `counts_cpu`: the CPU time of this process is that of the scan."""
    cpu, wall = time.process_time(), time.perf_counter()
    execute()
    # The clock has steps: a time of nothing would have no ratio.
    seconds, cpu_seconds = max(time.perf_counter() - wall, 1e-9), time.process_time() - cpu
    return ScanTime(seconds, cpu_seconds if counts_cpu else None)


def count_rows(answer: Callable[[str], Answer], table: str) -> int:
    """The rows of a table or of a part, by its quoted name."""
    [(count,)] = answer(f"SELECT count(*) FROM {table}")
    return int(count or 0)


def too_many_rows() -> SqlError:
    """The error of a query whose answer is no summary."""
    return SqlError(
        "the query gives too many rows",
        found=f"more than {MOST_ROWS:,}",
        expected=f"at most {MOST_ROWS:,} rows: more would measure how they travel",
        hint="Aggregate: count, sum, or group by a column with few values.",
    )


def not_a_query() -> SqlError:
    """The error of a statement that does something else than read."""
    return SqlError("this is no query", expected="one SELECT", hint="Give each query its own --sql.")


def split_name(name: str) -> tuple[str | None, str]:
    """Schema, None if there is none, and table."""
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot else (None, table)


def plain_literal(text: str, data_type: DataType) -> str:
    """A value as both kinds of databases write it."""
    # `NaN` and `Infinity` are numbers of PostgreSQL, but words in its SQL.
    if data_type.kind in NUMBERS and text[-1:].isdigit():
        return text
    quoted = "'" + text.replace("'", "''") + "'"
    return f"DATE {quoted}" if data_type.kind == "date" else quoted


NUMBERS: Final[Sequence[str]] = ("int16", "int32", "int64", "decimal")
