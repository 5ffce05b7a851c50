"""A table that is filled with the rows of a query of the same database: a load whose rows no writer sends.

Sessions of their own insert into the hidden table, with the settings and the lock that make whoever takes the run over
end them first; everything before and behind that is a load.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from headrace.errors import HeadraceError, LedgerError, SqlError, TargetBusyError, TargetError
from headrace.planning import DataFlowPlan, HashRule, QueryColumn, own_partitions
from headrace.targets.base import Flow, LoadTimes, Notice, Settle
from headrace.targets.builds import QueryParts
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import column_types, find_relation, query_columns
from headrace.targets.postgres.connection import (
    Connection,
    one_value,
    roll_back,
    rows_done,
    sql,
    transaction,
)
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.ddl import begin_unit
from headrace.targets.postgres.dividing import HashKey, hash_key_of, of_partitions
from headrace.targets.postgres.exported_snapshot import exported_snapshot
from headrace.targets.postgres.failures import advice_for, server_words, sqlstate, statement_failure
from headrace.targets.postgres.finishing import NOTHING
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.load import TableLoad
from headrace.targets.postgres.names import TableName
from headrace.targets.postgres.side_by_side import SideBySide
from headrace.targets.postgres.spill_watch import SpillWatch
from headrace.targets.postgres.sql_values import written
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.query_flow import QueryFlow
from headrace.targets.sql import Command, interrupted

# The number of the query in the ledger, where data flows have slices.
_QUERY_SLICE: Final = 1
_DESCRIBED: Final = "headrace_described"
_ALIAS: Final = "headrace_query"
# Scans of several sessions may meet in the middle of a table; each part is to see the same order.
_FROM_THE_START: Final = "SET LOCAL synchronize_seqscans = off"
# The class of SQLSTATEs of rows that break NOT NULL or a constraint.
_BROKEN_RULE: Final = "23"


def describe_query(
    connect: Callable[[], Connection], query: Command, schema: str, is_cancelled: Callable[[], bool]
) -> Sequence[QueryColumn]:
    """The columns of a query, with the types that the server gives a table made of it. That table is in `schema`, and
    nobody ever sees it. Raises SqlError if the server refuses.
    """
    connection = connect()
    table = TableName(schema, f"{_DESCRIBED}_{connection.process_id()}")
    try:
        with interrupted(is_cancelled, connection.cancel):
            connection.execute("BEGIN")
            connection.query(f"CREATE TABLE {table.sql} AS\n{query.text}\nWITH NO DATA", _values(query))
            relation = find_relation(connection, table)
            columns = query_columns(connection, "" if relation is None else relation.oid)
            roll_back(connection)
            return columns
    except HeadraceError as error:
        raise statement_failure(error) from error
    finally:
        connection.close()


class BuildLoad(TableLoad):
    """One build. See `TableLoad`; nothing of what it has staged is kept: another attempt sees another moment."""

    def __init__(
        self,
        control: Control,
        ledger: Ledger | None,
        run_id: str,
        plan: DataFlowPlan,
        staging: TableStaging,
        connect: Callable[[], Connection],
        shown_name: str,
        lock_timeout_seconds: float,
        notice: Notice,
        is_cancelled: Callable[[], bool],
        parts: QueryParts,
    ) -> None:
        super().__init__(
            control, ledger, run_id, plan, staging, connect, shown_name, lock_timeout_seconds, notice, is_cancelled
        )
        self._what = f"building table {shown_name}"
        self._can_be_resumed = False
        self._parts = parts.commands
        self._divided = parts.divided
        self._by_hash = parts.by_hash
        self._hash_key: HashKey | None = None
        self._lengths = _lengths(control, plan, staging)
        self._temporary_bytes = 0
        self._spill_watch = SpillWatch(connect, notice)

    def built(self) -> LoadTimes:
        """All of it. Raises TargetError for rows that could be appended twice."""
        if self._plan.target == "append" and self._ledger is None:
            raise TargetError(
                f"{self._what}: rows cannot be appended exactly once without a ledger",
                found="`target: append`, and `ledger: off` of the connection",
                hint="Leave `ledger: off` out, or use `target: replace`.",
            )
        if len(self._parts) == 1:
            flow = _Statements(self._connect, [partial(self._fill, self._parts[0], "", None, ())], self._is_cancelled)
            return self._run(flow)
        with exported_snapshot(self._connect, self._parts[0], self._is_cancelled, self._divided) as snapshot:
            names = [f"part {number} of {len(self._parts)}: " for number in range(1, len(self._parts) + 1)]
            jobs = [
                partial(self._fill, part, name, snapshot.name, rules)
                for part, name, rules in zip(self._parts, names, self._own_partitions(), strict=True)
            ]
            flow = _Statements(self._connect, jobs, self._is_cancelled, snapshot.refuse_changes)
            return self._run(flow)

    def _own_partitions(self) -> Sequence[Sequence[HashRule]]:
        """By part; none where each may give rows of every partition."""
        column = None if self._by_hash is None else self._by_hash[1]
        found = own_partitions(self._plan.partitioning, column, len(self._parts))
        return [()] * len(self._parts) if found is None else found

    def _run(self, flow: _Statements) -> LoadTimes:
        with self._spill_watch:
            times = self.run(flow, flow.settled)
        return replace(times, temporary_bytes=self._temporary_bytes)

    def _flow_ended(self, flow: Flow, settles: Sequence[Settle], what: str) -> Sequence[Mapping[str, Any]]:
        planned = self._plan.partitioning
        if planned is not None and self._staging.parent is not None and self._by_hash is not None:
            self._hash_key = hash_key_of(self._control, self._staging.parent, planned.column)
        before = temporary_bytes(self._control)
        results = super()._flow_ended(flow, settles, what)
        self._temporary_bytes = max(0, temporary_bytes(self._control) - before)
        if self._ledger is not None:
            with self._control.cancellable(self._is_cancelled), transaction(self._control):
                self._ledger.commit_unit(
                    self._run_id,
                    self._plan.task,
                    self._plan.staging[0].partition,
                    _QUERY_SLICE,
                    int(results[0]["slices"][0]["out"]),
                )
        return results

    def _consequence(self, error: HeadraceError) -> str:
        return "" if isinstance(error, LedgerError) else NOTHING

    def _worth_keeping(self, error: BaseException) -> Collection[str]:
        return ()

    def _fill(
        self, part: Command, name: str, snapshot: str | None, rules: Sequence[HashRule], connection: Connection
    ) -> int:
        """Inserts the rows of a part; their number. `snapshot`: what all parts see, if there are several; `rules`: of
        the partitions that are its own.
        """
        parent, only = self._staging.parent, self._staging.tables[0]
        self._spill_watch.add(connection)
        if snapshot is None:
            connection.execute(begin_unit(self._run_id, only.create if self._plan.staging[0].owned else ()))
        else:
            connection.execute(begin_unit(self._run_id, [_FROM_THE_START], snapshot=snapshot))
        if rules and self._hash_key is not None and self._by_hash is not None:
            query, column = self._by_hash
            part = Command(of_partitions(query.text, column, self._hash_key, rules), query.values)
        into = only.table if parent is None else parent
        text = ddl.insert_query(into, self._plan, part.text, _ALIAS, self._lengths)
        with self._of_query(name):
            done = connection.query(text, _values(part))
        if self._ledger is not None:
            Ledger(connection, self._ledger.schema, self._ledger.attempt).require_current(self._run_id)
        connection.execute("COMMIT")
        # What it has spilled is to be known when all have ended.
        connection.execute("SELECT pg_catalog.pg_stat_force_next_flush()")
        return rows_done(done.tag)

    @contextmanager
    def _of_query(self, name: str) -> Iterator[None]:
        """Says of which part the server's words are."""
        try:
            yield
        except HeadraceError as error:
            problem = self._of_row(error) or statement_failure(error)
            if isinstance(problem, SqlError | TargetBusyError):
                problem.what = f"{self._what}: {name}{problem.what}{NOTHING}"
                problem.args = (problem.what,)
            raise problem from error

    def _of_row(self, error: HeadraceError) -> SqlError | None:
        """What a row breaks is a rule of the table, whatever the hidden one is called. None if it breaks none; a row
        without partition has neither column nor constraint.
        """
        server = error.server or {}
        if not sqlstate(error).startswith(_BROKEN_RULE) or not (server.get("constraint") or server.get("column")):
            return None
        message = str(server.get("message")).replace(f'"{server.get("table")}"', f'"{self._plan.table}"')
        shown: dict[str, object] = {**server, "message": message}
        advice = advice_for(sqlstate(error))
        problem = SqlError(advice.reason, found=server_words(shown), hint=advice.hint)
        problem.server = shown
        return problem


class _Statements(QueryFlow):
    """The statements of a build, side by side. The first failure, or `cancel`, ends them all. `behind`: what has to be
    true when they have ended.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        jobs: Sequence[Callable[[Connection], int]],
        is_cancelled: Callable[[], bool],
        behind: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._work = SideBySide(connect, jobs, len(jobs))
        self._is_cancelled = is_cancelled
        self._behind = behind

    def cancel(self, reason: str) -> None:
        self._work.stop(SqlError(reason))

    def settled(self, rows_inserted: int | None) -> dict[str, Any]:
        rows = sum(self._work.run(self._is_cancelled))
        if self._behind is not None:
            self._behind()
        self.ended(rows)
        return super().settled(rows_inserted)


def temporary_bytes(connection: Connection) -> int:
    """What the sessions of the database have spilled until now."""
    return int(one_value(connection, sql("temporary_bytes")) or 0)


def _lengths(connection: Connection, plan: DataFlowPlan, staging: TableStaging) -> dict[str, int]:
    """Of columns of the table into which longer texts may come, what they hold."""
    if staging.relation is None:
        return {}
    types = {name: found.type for name, found in column_types(connection, staging.relation.oid).items()}
    lengths = {name: found.length for name, found in types.items() if found.kind == "varchar"}
    return {
        column.target: length
        for column in plan.columns
        if (length := lengths.get(column.target)) is not None and (column.type.length or length + 1) > length
    }


def _values(query: Command) -> list[str | None]:
    return [written(value) for value in query.values]
