"""SQL of users' tasks in a destination: sessions of their own, bound values, results as values of variables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from headrace.errors import HeadraceError, SqlError
from headrace.targets.base import FinishedTask

_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Command:
    """One statement. `$1`, `$2` in its text, written by `SqlSessions.parameter`, stand for the values."""

    text: str
    values: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class SqlNotice:
    """What a destination has said beside the results."""

    level: Literal["notice", "warning"]
    text: str


class SqlRows(Protocol):
    """Rows of a statement, read in portions. `changed`: rows that it has changed, as far as it tells; known when all
    rows are read.
    """

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def changed(self) -> int | None: ...

    def portions(self) -> Iterator[Sequence[Sequence[object]]]:
        """The rows: text, int, Decimal, bool, date, datetime and None. Raises SqlError for a value that is none of
        these.
        """


class SqlSession(Protocol):
    """A session for one task. Whatever raises leaves nothing of the open transaction behind."""

    def begin(self, *, only_reads: bool = False) -> None:
        """Begins a transaction. With `only_reads` a statement that changes something fails, where the destination can
        tell.
        """

    def stand_alone(self) -> None:
        """In place of `begin`: every statement commits by itself. Raises LedgerError if somebody has taken the run
        over.
        """

    def mark(self) -> None:
        """Writes the mark of the task, in the open transaction, behind what shuts out earlier attempts of the run."""

    def set_result(self, result: str) -> None:
        """Adds to the mark what the task has to tell. In the transaction of the mark."""

    def has_changed(self) -> bool:
        """Whether the open transaction has changed something, as far as the destination tells."""

    def run(self, command: Command) -> int | None:
        """Executes a statement and drops its rows. The number of rows that it has changed, or None."""

    def query(self, command: Command) -> SqlRows | None:
        """Executes a statement in the open transaction, for its rows. None if it has none."""

    def commit(self) -> None:
        """Ends the transaction. Raises if anything but success is certain."""

    def roll_back(self) -> None:
        """Undoes the transaction; does nothing without one."""

    def notices(self) -> Sequence[SqlNotice]:
        """What was said since the last call."""


class SqlSessions(Protocol):
    """Sessions of one run. Where `Capabilities.sql_beside_flows` says so, they can be used by several threads, also
    while a flow loads; else only by whoever holds the pool of the run.
    """

    @property
    def keeps_marks(self) -> bool:
        """Whether the destination has a ledger, in which tasks leave marks."""

    def finished_task(self, task: str) -> FinishedTask | None:
        """The mark of a task of the run; None if it has not committed, or leaves no marks."""

    def session(self, task: str, is_cancelled: Callable[[], bool]) -> AbstractContextManager[SqlSession]:
        """A session, which is given back behind the block. What runs in it when `is_cancelled` says so is interrupted
        within 0.2 seconds, and raises.
        """

    def quote(self, name: str) -> str:
        """`table` or `schema.table`, quoted."""

    def parameter(self, number: int, sql_type: str, value: object) -> str:
        """What stands in a statement for a value of this DuckDB type: `$1`, with a cast where that decides the type."""

    def close(self) -> None:
        """Ends sessions that wait for another task."""


def not_a_value(column: str, type_name: str) -> SqlError:
    """The error of a column whose values are none of variables."""
    return SqlError(
        f"column `{column}` of the result cannot become the value of a variable",
        found=f"type {type_name}",
        expected="text, a whole number, an exact number, true or false, a date, or a time without time zone",
        hint=f"Convert it in the query, such as CAST({column} AS VARCHAR).",
    )


def out_of_range(column: str, shown: str) -> SqlError:
    """The error of a value that its type has, and variables have not."""
    return SqlError(
        f"a value of column `{column}` of the result cannot become the value of a variable",
        found=shown,
        expected="a finite number, or a time in the years 1 to 9999",
        hint=f"Convert it in the query, such as CAST({column} AS VARCHAR).",
    )


def taken_over(run_id: str) -> HeadraceError:
    """The error of a session whose transaction is not the one that it has begun."""
    return SqlError(
        f"the transaction of a task of run {run_id} was ended by one of its statements",
        expected="statements that leave the transaction to the task",
        hint="Take what ends transactions out of the script and of the procedures that it calls.",
    )


@contextmanager
def interrupted(is_cancelled: Callable[[], bool], interrupt: Callable[[], None]) -> Iterator[None]:
    """Calls `interrupt`, from a thread of its own, when `is_cancelled` says so, and again until the block ends."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_POLL_SECONDS):
            if is_cancelled():
                interrupt()

    thread = threading.Thread(target=watch, name="cancelling of SQL", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
