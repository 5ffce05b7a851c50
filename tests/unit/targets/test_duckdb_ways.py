"""Ways of one flow in a transaction of DuckDB: which table an error is told of, and that nothing hides it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from headrace.errors import HeadraceError, TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.base import LoadTimes, Settle
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.failures import load_failure
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.duckdb.load import Stream, TableLoad
from tests.unit.executors import fake_flow

GOOD = "SELECT range AS {column} FROM range(10)"
# It fails behind the first batches, as streams do.
BAD = "SELECT if(range < 400_000, range, error('a bad row')) AS {column} FROM range(500_000)"
PATH = Path("warehouse.duckdb")


class Rows:
    """An Arrow stream as the core gives one: nothing of Python is behind it."""

    def __init__(self, query: str) -> None:
        self._connection = duckdb.connect()
        self._query = query

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._connection.sql(self._query).__arrow_c_stream__(requested_schema)


class Ways:
    """A flow of three destinations. `failed`: whose stream the core has ended with an error."""

    def __init__(self, column: str, queries: list[str], failed: tuple[int, ...] = ()) -> None:
        self._queries = [query.format(column=column) for query in queries]
        self._failed = failed
        self.cancelled: list[str] = []

    def start(self) -> None:
        """Nothing to do."""

    def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)

    def arrow_stream(self) -> object:
        return self.arrow_stream_of(0)

    def arrow_stream_of(self, destination: int) -> object:
        return Rows(self._queries[destination])

    def has_stream_failed(self, destination: int) -> bool:
        return destination in self._failed


class Load:
    """As much of a `TableLoad` as rows pass."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, plan: DataFlowPlan, stream: Stream | None) -> None:
        assert stream is not None
        self._cursor, self._plan, self._stream = cursor, plan, stream

    def run_inside(self, flow: Any, settle: Settle) -> LoadTimes:
        try:
            self._stream.open(self._cursor, flow)
            row = self._cursor.execute(f"INSERT INTO target.{self._plan.table} FROM {ddl.STREAM}").fetchone()
            assert row is not None
            settle(row[0])
            self._stream.close(self._cursor)
        except duckdb.Error as error:
            raise load_failure(error, f"loading table {self._plan.table}", PATH) from error
        return LoadTimes(0.0, 0.0, 0.0, row[0])


def staged(ways: Callable[[str], Ways]) -> tuple[DuckdbGroup, duckdb.DuckDBPyConnection, list[int | None]]:
    """The group and its cursor when all rows are there, and how many rows each table has taken."""
    column = fake_flow.plan(1).columns[0]
    plans = [
        replace(fake_flow.plan(1), task=f"load/{table}", flow="load", table=table, columns=(column,))
        for table in ("one", "two", "three")
    ]
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS target")
    cursor = connection.cursor()
    session = SimpleNamespace(cursor=cursor, begin=lambda: cursor.execute("BEGIN"), mark=lambda: None)
    group = DuckdbGroup(lambda: cast(Any, session), PATH, lambda *own: cast(TableLoad, Load(*own)))
    group.begin()
    for plan in plans:
        cursor.execute(f"CREATE TABLE target.{plan.table} ({ddl.quote(column.target)} BIGINT)")
    cursor.execute("FROM duckdb_tables()").fetchall()  # looks at all databases
    taken: list[int | None] = []

    def settle(rows: int | None) -> dict[str, Any]:
        taken.append(rows)
        return {}

    try:
        group.stage_ways(plans, cast(Any, ways(column.source)), [settle, settle, settle])
    except BaseException as error:
        error.add_note(str(group.at_work))
        raise
    return group, cursor, taken


def test_rows_wait_for_the_first_table_and_are_seen_by_its_transaction() -> None:
    _, cursor, taken = staged(lambda column: Ways(column, [GOOD, GOOD, GOOD]))
    assert taken == [10, 10, 10]
    cursor.execute("COMMIT")
    assert cursor.execute("SELECT count(*) FROM target.three").fetchall() == [(10,)]


@pytest.mark.parametrize("failed", [(0,), ()])
def test_rows_that_cannot_wait_are_told_of_their_table(failed: tuple[int, ...]) -> None:
    """Whether the first stream has ended before, or was ended by that."""
    first = BAD if failed else GOOD
    with pytest.raises(TargetError) as found:
        staged(lambda column: Ways(column, [first, GOOD, BAD], failed))
    assert found.value.what.endswith(".three: DuckDB refused; nothing was loaded"), found.value.what
    assert found.value.__notes__ == ["load/three"]


def test_a_first_table_that_fails_is_not_hidden_by_the_others() -> None:
    with pytest.raises(HeadraceError) as found:
        staged(lambda column: Ways(column, [BAD, BAD, BAD], (1, 2)))
    assert (found.value.what, found.value.__notes__) == (
        "loading table one: DuckDB refused; nothing was loaded",
        ["load/one"],
    )


def test_a_thread_that_does_not_begin_is_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        staged(lambda column: Ways(column, [GOOD, GOOD, GOOD]))
