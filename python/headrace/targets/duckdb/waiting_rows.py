"""Rows of the further destinations of a flow, until those of the first one are in its table.

DuckDB has one statement at a time in a transaction. So these rows go into a table of a database in memory, by a cursor
and a thread of their own. DuckDB spills them to the folder of the run when its memory is used up.

The transaction of the load begins to look at such a database when it reads from it for the first time, and sees what is
there then. So the database is attached when the first destination already takes its rows, with nothing but its INSERT
between that and the last row of all: whatever looks at the catalog of all databases, looks at this one, too.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import duckdb

from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, SharedFlow
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.ddl import quote
from headrace.targets.duckdb.load import ArrowRows, register
from headrace.targets.duckdb.partitions import has_several_tables


class WaitingRows:
    """Those of one destination, `number` of the flow. A `Stream`, once they are all there. `place`: the number of this
    one in the session, which keeps what has waited.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: DataFlowPlan, number: int, place: int) -> None:
        self._cursor = connection.cursor()
        self.plan = plan
        self._number = number
        self._database = f"headrace_waiting_{place}"
        self._table = f"{self._database}.main.rows"
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None
        """Why the rows are not there."""

    def take(self, flow: SharedFlow) -> None:
        """Begins to take the rows."""
        thread = threading.Thread(target=self._run, args=(flow,), name=f"rows for {self.plan.table}")
        thread.start()
        self._thread = thread

    def _run(self, flow: SharedFlow) -> None:
        stream = f"{ddl.STREAM}_{self._number}"
        names = [quote(name) for name in dict.fromkeys(column.source for column in self.plan.columns)]
        names += [quote(ddl.place_column(self.plan))] if has_several_tables(self.plan) else []
        try:
            self._cursor.execute(f"ATTACH ':memory:' AS {self._database}")
            register(self._cursor, stream, flow.arrow_stream_of(self._number))
            self._cursor.execute(f"CREATE TABLE {self._table} AS SELECT {', '.join(names)} FROM {stream}")
            self._cursor.unregister(stream)
        except BaseException as error:
            self.error = error
            # The others must not wait for it.
            flow.cancel("one of the destinations stopped")

    def wait(self) -> None:
        """Until all rows are there, or will not come."""
        if self._thread is not None:
            self._thread.join()

    def is_to_blame(self, flow: SharedFlow) -> bool:
        """Whether they could not be taken, and not for want of rows."""
        return self.error is not None and not flow.has_stream_failed(self._number)

    def open(self, connection: duckdb.DuckDBPyConnection, flow: Flow) -> None:
        """Shows them as the stream of the load."""
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {ddl.STREAM} AS FROM {self._table}")

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Lets go of them. They keep their memory, or their place on the disk, as long as the transaction that has seen
        them is open.
        """
        connection.execute(f"DROP VIEW IF EXISTS temp.{ddl.STREAM}")

    def release(self) -> None:
        """Gives the cursor back. What it has attached is gone with the session, as what scripts attach."""
        self._cursor.close()


class FirstRows(ArrowRows):
    """The `Stream` of the first destination: the others begin to wait when it is read."""

    def __init__(self, others: Sequence[WaitingRows], flow: SharedFlow) -> None:
        self._others = others
        self._flow = flow

    def open(self, connection: duckdb.DuckDBPyConnection, flow: Flow) -> None:
        super().open(connection, flow)
        for rows in self._others:
            rows.take(self._flow)
