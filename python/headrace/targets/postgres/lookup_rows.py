"""The rows of tables and queries for lookups: in binary form, by sessions that see one moment and only read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from headrace.errors import CancelledError, HeadraceError, TargetBusyError, TargetError
from headrace.model import DatabaseQuery, DatabaseSource, LookupColumn, TableSource
from headrace.targets.base import RowStream
from headrace.targets.postgres.connection import Connection, array, one_row, one_value, sql
from headrace.targets.postgres.failures import explained, statement_failure
from headrace.targets.postgres.names import TableName, literal, quote
from headrace.targets.postgres.sql_values import type_name, written
from headrace.targets.postgres.types import ServerType, readable_type
from headrace.targets.sql import Command

BEGIN_LOOKUP: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Less is not worth a session.
LEAST_PAGES: Final = 1_024
# Sessions of the server that are left to others.
_OTHER_SESSIONS: Final = 3


class LookupConnection(Connection, Protocol):
    """`core.PostgresConnection`, as lookups use it."""

    def describe(self, sql: str) -> list[tuple[str, int, int]]: ...
    def binary_rows(
        self, sql: str, parameters: Sequence[str | None], count: int, columns: Sequence[dict[str, Any]]
    ) -> object: ...


Connect = Callable[[], LookupConnection]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result. `type`: what its values are read as, None if as nothing; `receive`: the counterpart of the
    function that sends them.
    """

    name: str
    type: ServerType | None
    native: str
    receive: str | None
    is_collatable: bool


@contextmanager
def lookup_rows(
    connect: Connect, source: DatabaseSource, table: TableName | None, columns: Sequence[LookupColumn], sessions: int
) -> Iterator[RowStream]:
    """The rows of `table`, or of the query of `source`, as they are committed when the first one is asked for. Raises
    TargetError if they are others than those that were planned, and what the server says.
    """
    with _Reading(connect, source, table, columns) as reading:
        try:
            yield RowStream(lambda: reading.rows(sessions), reading.cancel)
        except HeadraceError as error:
            raise reading.failure(error) from error


class _Reading:
    """One lookup. The first session decides, the others take its snapshot over."""

    def __init__(
        self, connect: Connect, source: DatabaseSource, table: TableName | None, columns: Sequence[LookupColumn]
    ) -> None:
        self._connect = connect
        self._table = table
        self._columns = columns
        if isinstance(source, TableSource):
            assert table is not None
            self._command = Command(select([column.name for column in columns], table))
            self._shown = f"reading table {source.connection.name}.{table} for lookup `{source.name}`"
        else:
            self._command = command_of(source.query)
            self._shown = f"the query of lookup `{source.name}`"
        self._lock = threading.Lock()
        self._opened: list[LookupConnection] = []
        self._is_cancelled = False

    def __enter__(self) -> _Reading:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._opened:
            connection.close()

    def cancel(self) -> None:
        """From any thread."""
        with self._lock:
            self._is_cancelled = True
            opened = list(self._opened)
        for connection in opened:
            connection.cancel()

    def rows(self, sessions: int) -> list[object]:
        """Begins to read."""
        first = self._opened[0]
        first.execute(BEGIN_LOOKUP)
        described = described_columns(first, self._command.text)
        wanted = self._wanted(described)
        commands = self._commands(first, sessions)
        if len(commands) > 1:
            name = one_value(first, "SELECT pg_catalog.pg_export_snapshot()") or ""
            for _ in commands[1:]:
                self._open().execute(f"{BEGIN_LOOKUP}; SET TRANSACTION SNAPSHOT {literal(name)}")
        return [
            connection.binary_rows(own.text, [written(value) for value in own.values], len(described), wanted)
            for connection, own in zip(self._opened, commands, strict=True)
        ]

    def failure(self, error: HeadraceError) -> HeadraceError:
        """What the server has said, with what it was asked for; others say it themselves."""
        if isinstance(error, CancelledError) or (error.server is None and not isinstance(error, TargetBusyError)):
            return error
        if self._table is not None:
            return explained(error, self._shown)
        problem = statement_failure(error)
        problem.what = f"{self._shown}: {problem.what}"
        problem.args = (problem.what,)
        return problem

    def _open(self) -> LookupConnection:
        connection = self._connect()
        with self._lock:
            self._opened.append(connection)
            is_cancelled = self._is_cancelled
        if is_cancelled:
            connection.cancel()
        return connection

    def _commands(self, connection: Connection, sessions: int) -> list[Command]:
        """Of a plain table ranges of about as many pages; the last one is open, for those that come meanwhile."""
        if self._table is None or sessions < 2:
            return [self._command]
        found = one_row(connection, sql("plain_table"), (self._table.sql,)) or ["", "", "t", None]
        if found[1] != "r" or found[2] == "t":
            return [self._command]
        pages = int(found[3] or 0)
        free = int(one_value(connection, sql("free_sessions")) or 0) - _OTHER_SESSIONS
        parts = max(1, min(sessions, pages // LEAST_PAGES, 1 + free))
        bounds = [pages * number // parts for number in range(1, parts)]
        return [
            replace(self._command, text=f"{self._command.text} WHERE {_range(low, high)}")
            for low, high in zip([0, *bounds], [*bounds, None], strict=True)
        ]

    def _wanted(self, described: Sequence[ResultColumn]) -> list[dict[str, Any]]:
        """Which columns of the result are wanted, as what they were planned."""
        places = {column.name: place for place, column in enumerate(described)}
        wanted = []
        for column in self._columns:
            place = places.get(column.name)
            found, native = (None, "gone") if place is None else (described[place].type, described[place].native)
            if found is None or found.type != column.type:
                raise TargetError(
                    f"{self._shown}: it has changed since the flow was planned",
                    found=f"column `{column.name}` is {native}",
                    expected=str(column.type),
                    hint="Run again.",
                )
            wanted.append({"place": place, "type": column.type.to_core(), "form": found.form})
        return wanted


def described_columns(connection: LookupConnection, text: str) -> list[ResultColumn]:
    """The columns of a statement, which is not executed."""
    columns = connection.describe(text)
    arrays = [array([own[place] for own in columns]) for place in (1, 2)]
    types = connection.query(sql("result_types"), arrays).rows
    return [
        ResultColumn(name, readable_type(receive, modifier), native or "", receive, is_collatable == "t")
        for (name, _, modifier), (receive, native, is_collatable) in zip(columns, types, strict=True)
    ]


def command_of(query: DatabaseQuery) -> Command:
    """A query with its values bound."""
    text, values = query.bound(lambda number, sql_type, _value: f"CAST(${number} AS {type_name(sql_type)})")
    return Command(text, values)


def select(columns: Sequence[str], table: TableName) -> str:
    """The statement that reads these columns."""
    return f"SELECT {', '.join(map(quote, columns))} FROM {table.sql}"


def _range(low: int, high: int | None) -> str:
    below = "" if high is None else f" AND ctid < '({high},0)'::pg_catalog.tid"
    return f"ctid >= '({low},0)'::pg_catalog.tid{below}"
