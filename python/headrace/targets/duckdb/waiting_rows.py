"""Rows of the further destinations of a flow, until those of the first one are in its table.

DuckDB has one statement at a time in a transaction. So these rows go into tables of a database in memory, by a cursor
and a thread of their own. DuckDB spills them to the folder of the run when its memory is used up, and they are gone
with the session.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import duckdb

from headrace.errors import HeadraceError
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, SharedFlow
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.ddl import quote
from headrace.targets.duckdb.load import register
from headrace.targets.duckdb.partitions import has_several_tables

# Attached before the transaction begins.
DATABASE = "headrace_waiting"


class WaitingRows:
    """Those of one destination. A `Stream`, once they are all there."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: DataFlowPlan, number: int) -> None:
        self._cursor = connection.cursor()
        self._plan = plan
        self._number = number
        self._table = f"{DATABASE}.main.rows_{number}"
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def take(self, flow: SharedFlow) -> None:
        """Begins to take the rows."""
        self._thread = threading.Thread(target=self._run, args=(flow,), name=f"rows for {self._plan.table}")
        self._thread.start()

    def _run(self, flow: SharedFlow) -> None:
        stream = f"{ddl.STREAM}_{self._number}"
        names = [quote(name) for name in dict.fromkeys(column.source for column in self._plan.columns)]
        names += [quote(ddl.place_column(self._plan))] if has_several_tables(self._plan) else []
        try:
            register(self._cursor, stream, flow.arrow_stream_of(self._number))
            self._cursor.execute(f"CREATE TABLE {self._table} AS SELECT {', '.join(names)} FROM {stream}")
            self._cursor.unregister(stream)
        except BaseException as error:
            self._error = error
            # The others must not wait for it.
            flow.cancel("one of the destinations stopped")

    def ended(self) -> BaseException | None:
        """Waits until all rows are there; why they are not, if so."""
        if self._thread is not None:
            self._thread.join()
        return self._error

    def open(self, connection: duckdb.DuckDBPyConnection, flow: Flow) -> None:
        """Shows them as the stream of the load. It reads them by the cursor that has taken them: the transaction of the
        load has begun before they came, and would not see them.
        """
        register(connection, ddl.STREAM, self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._cursor.sql(f"SELECT * FROM {self._table}").__arrow_c_stream__(requested_schema)

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Lets go of them."""
        connection.unregister(ddl.STREAM)

    def release(self) -> None:
        """Gives the cursor back."""
        self._cursor.close()


def first_error(waiting: Sequence[WaitingRows], error: BaseException | None) -> BaseException | None:
    """Waits for all; the error that all others follow from. A stream that was stopped says nothing of why."""
    errors = [own for rows in waiting if (own := rows.ended()) is not None]
    return error or next((own for own in errors if isinstance(own, HeadraceError)), errors[0] if errors else None)
