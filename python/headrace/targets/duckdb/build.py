"""A table that is filled with the rows of a query of the same file: one transaction with its ledger rows.

DuckDB itself divides a query among its threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from headrace.errors import HeadraceError, SqlError, TargetError
from headrace.model.duckdb_types import data_type, native_type
from headrace.planning import CatalogColumn, DataFlowPlan, Partitioning, QueryColumn
from headrace.targets.base import Flow, LoadTimes
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.filling import Filling
from headrace.targets.duckdb.ledger import Ledger
from headrace.targets.duckdb.load import TableLoad
from headrace.targets.duckdb.rules import belongs
from headrace.targets.duckdb.sql_sessions import DuckdbSqlSessions, statement_failure
from headrace.targets.duckdb.whole_table import WholeTable
from headrace.targets.query_flow import QueryFlow
from headrace.targets.sql import Command

# The rows of a query that reads the table which it replaces, or of which some may be refused.
_WAITING = "temp.headrace_built"
_UNTYPED = '"NULL"'


def describe_query(
    sessions: DuckdbSqlSessions, query: Command, task: str, is_cancelled: Callable[[], bool]
) -> Sequence[QueryColumn]:
    """The columns of a query. Raises SqlError if DuckDB refuses it, or a column has no type."""
    with sessions.session(task, is_cancelled) as session:
        rows = session.fetch(Command(f"DESCRIBE {query.text}", query.values))
    columns = [QueryColumn(str(row[0]), str(row[1]), _data_type(str(row[1]))) for row in rows]
    for column in columns:
        if column.native_type == _UNTYPED:
            raise SqlError(
                f"column `{column.name}` of the query has no type",
                found="NULL",
                hint=f"Say which it is: CAST(NULL AS TYPE) AS {column.name}.",
            )
    return columns


def build_table(
    sessions: DuckdbSqlSessions,
    path: Path,
    run_id: str,
    plan: DataFlowPlan,
    query: Command,
    is_cancelled: Callable[[], bool],
) -> LoadTimes:
    """All of it, in one transaction of a session of its own."""
    with sessions.session(plan.task, is_cancelled) as session:
        cursor = session.cursor
        flow = QueryFlow()
        rows = _QueryRows(cursor, path, plan, query)
        load = _BuildLoad(cursor, path, Ledger(cursor, path), run_id, plan, rows, is_cancelled)
        return load.run(flow, flow.settled)


class _QueryRows:
    """`Rows` of a load: those of a query."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, path: Path, plan: DataFlowPlan, query: Command) -> None:
        self._cursor = cursor
        self._path = path
        self._plan = plan
        self._query = query
        self._values = list(query.values) or None
        self._whole = WholeTable(cursor, plan)
        self._waits = False

    @property
    def filling(self) -> Filling:
        return self._whole.filling

    def step(self, kind: str, result: dict[str, Any] | None) -> bool:
        if kind == "delete_rows" and self._reads_table():
            # Behind the DELETE it would find nothing.
            self._wait()
        return self._whole.step(kind, result)

    def insert(self) -> int:
        if self._plan.partitioning is not None:
            # Those that the table has may be outside.
            self._wait()
            self._refuse_outside(self._plan.partitioning)
        source = f"FROM {_WAITING}" if self._waits else f"FROM (\n{self._query.text}\n) AS headrace_query"
        text = ddl.insert_from(self._plan, ddl.table_name(self._plan), source)
        row = (self._cursor.execute(text) if self._waits else self._of_query(text)).fetchone()
        if self._waits:
            self._cursor.execute(ddl.drop_table(_WAITING))
        return int(row[0]) if row else 0

    def _wait(self) -> None:
        if not self._waits:
            self._of_query(f"CREATE TEMP TABLE {_WAITING} AS\n{self._query.text}")
        self._waits = True

    def _refuse_outside(self, planned: Partitioning) -> None:
        """The rows of one table obey the declared partitions, too."""
        key = CatalogColumn(planned.source, planned.type, native_type(planned.type), nullable=True)
        condition = belongs(planned.partitions[0].rule, key, ())
        keys = f"SELECT CAST({ddl.quote(key.name)} AS VARCHAR) FROM {_WAITING}"
        row = self._cursor.execute(f"{keys} WHERE ({condition}) IS NOT TRUE LIMIT 1").fetchone()
        if row is not None:
            table = f"{self._plan.connection}.{self._plan.table}"
            raise TargetError(
                f"building table {table}: no partition takes a row; nothing was made visible",
                found=f"`{planned.column}` = {'null' if row[0] is None else row[0]}",
                expected="a key that belongs into one of the partitions",
                hint="Leave the row out of the query, declare a partition for its key, or set `outside: default`.",
            )

    def _reads_table(self) -> bool:
        """Whether the table may be among those that the query reads, by itself or through views: its name, in quotes
        or without, is somewhere in the plan before anything is left out of it.
        """
        self._cursor.execute("PRAGMA disable_optimizer")
        try:
            ((_, plan),) = self._of_query(f"EXPLAIN (FORMAT JSON) {self._query.text}").fetchall()
        finally:
            self._cursor.execute("PRAGMA enable_optimizer")
        names = {name.casefold() for name in (self._plan.table, ddl.quote(self._plan.table))}
        return any(name in text.casefold() for text in _texts(json.loads(plan)) for name in names)

    def _of_query(self, text: str) -> duckdb.DuckDBPyConnection:
        """Statements in which the user's own words can fail."""
        try:
            return self._cursor.execute(text, self._values)
        except duckdb.ConstraintException:
            raise  # of the table, whose load says so
        except duckdb.Error as error:
            raise _named(statement_failure(error, self._path), self._plan) from error


class _BuildLoad(TableLoad):
    """A load without a stream."""

    def _insert(self, flow: Flow) -> int:
        rows = self._rows.insert()
        assert isinstance(flow, QueryFlow)
        flow.ended(rows)
        return rows


def _texts(plan: Any) -> Iterator[str]:
    """All texts in a plan, wherever they are."""
    if isinstance(plan, str):
        yield plan
    elif isinstance(plan, dict | list):
        for own in plan.values() if isinstance(plan, dict) else plan:
            yield from _texts(own)


def _named(error: HeadraceError, plan: DataFlowPlan) -> HeadraceError:
    error.what = f"building table {plan.connection}.{plan.table}: {error.what}; nothing was made visible"
    error.args = (error.what,)
    return error


def _data_type(native: str) -> Any:
    numbers = native.removeprefix("DECIMAL(").removesuffix(")").split(",") if native.startswith("DECIMAL(") else []
    precision, scale = (int(number) for number in numbers) if numbers else (None, None)
    return data_type(native, precision, scale)
