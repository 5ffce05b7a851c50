"""What all sessions of a build see: one moment, and the same tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final

from headrace.errors import HeadraceError, TargetBusyError
from headrace.targets.builds import DividedTable
from headrace.targets.postgres.connection import BEGIN, Connection, array, one_value, sql, texts
from headrace.targets.postgres.ddl import begin_in
from headrace.targets.postgres.failures import explained
from headrace.targets.postgres.sql_values import written
from headrace.targets.sql import Command, interrupted

_TAKING: Final = "taking the snapshot of a build"
_Parts = Collection[tuple[str, str]]


class ExportedSnapshot:
    """`name`: by which other sessions take it over. `divided`: a table whose parts all sessions know by themselves."""

    def __init__(
        self, name: str, connection: Connection, connect: Callable[[], Connection], divided: DividedTable | None
    ) -> None:
        self.name = name
        self._connection = connection
        self._connect = connect
        self._divided = () if divided is None else divided.tables
        self._parts = self._parts_now()

    def refuse_changes(self) -> None:
        """When all sessions have ended. Raises TargetBusyError if a table that had rows in the snapshot has become a
        part of one that the query reads: sessions that planned before did not read it. No lock of a reader keeps it
        away.
        """
        try:
            came = [parts for parts in self._parts_now() if parts not in self._parts]
            found = self._with_rows(came) if came else ()
        except HeadraceError as error:
            raise explained(error, _TAKING) from error
        if found:
            raise TargetBusyError(
                "tables that the query reads were changed while it was executed",
                found=f"{', '.join(found)}, attached or inheriting since it began",
                hint="Run again.",
            )

    def _parts_now(self) -> _Parts:
        rows = self._connection.query(sql("parts_read"), (array(self._divided),)).rows
        return [(str(row[0]), str(row[1])) for row in rows]

    def _with_rows(self, parts: _Parts) -> tuple[str, ...]:
        """Which of them were there in the moment of the snapshot: others have no rows in it."""
        connection = self._connect()
        try:
            connection.execute(begin_in(self.name))
            return texts(connection, sql("tables_there"), (array([part for _, part in parts]),))
        finally:
            connection.close()


@contextmanager
def exported_snapshot(
    connect: Callable[[], Connection],
    query: Command,
    is_cancelled: Callable[[], bool],
    divided: DividedTable | None = None,
) -> Iterator[ExportedSnapshot]:
    """A snapshot that other sessions can take over as long as the block lasts. Raises TargetBusyError if `divided`
    consists of other tables by now.

    Its session keeps what the query reads from being replaced meanwhile: planning has locked it, before the snapshot is
    taken. Otherwise some parts could find another table by the same name.
    """
    connection = connect()
    try:
        try:
            with interrupted(is_cancelled, connection.cancel):
                connection.execute(BEGIN)
                connection.query(f"EXPLAIN {query.text}", [written(value) for value in query.values])
                name = one_value(connection, "SELECT pg_catalog.pg_export_snapshot()")
                snapshot = ExportedSnapshot(name or "", connection, connect, divided)
                if divided is not None:
                    _refuse_other_tables(connection, divided)
        except HeadraceError as error:
            raise explained(error, _TAKING) from error
        yield snapshot
    finally:
        connection.close()


def _refuse_other_tables(connection: Connection, divided: DividedTable) -> None:
    """Behind the locks of planning and the snapshot: whatever comes from now on is in no part."""
    found = connection.query(sql("divided_table"), (divided.name,)).rows
    if tuple(str(row[6]) for row in found) != divided.tables:
        raise TargetBusyError(
            f"table {divided.name} was changed while the query was divided",
            found="it is another table by now, or tables that are parts of it came or went",
            hint="Run again.",
        )
