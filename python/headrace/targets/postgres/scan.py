"""Scans of tables of a PostgreSQL server, in a session whose transactions only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from headrace.errors import CancelledError, HeadraceError
from headrace.model import DataType, PostgresConnection
from headrace.targets.base import ClosedBehind
from headrace.targets.postgres.catalog import column_types, find_relation
from headrace.targets.postgres.connection import (
    Connection,
    QueryResult,
    one_value,
    prepare_session,
    session_settings,
    sql,
)
from headrace.targets.postgres.failures import explained, sqlstate, statement_failure
from headrace.targets.postgres.names import TableName
from headrace.targets.scan import (
    MOST_ROWS,
    Answer,
    ScannedPart,
    ScannedTable,
    ScanTime,
    count_rows,
    not_a_query,
    plain_literal,
    split_name,
    timed,
    too_many_rows,
)
from headrace.targets.sql import interrupted

_Result = TypeVar("_Result")
# The server refuses to change anything in a transaction that only reads.
_ONLY_READS: Final = "25006"
_APPLICATION_NAME: Final = "headrace bench scan"
# Of what loads need otherwise.
_READS: Final = {"default_transaction_read_only": "on"}


class ScanConnection(Connection, Protocol):
    """`core.PostgresConnection`, as scans use it."""

    def first_rows(self, sql: str, parameters: Sequence[str | None], limit: int) -> Portion: ...


class Portion(QueryResult, Protocol):
    """A part of the rows."""

    @property
    def has_more(self) -> bool: ...


class PostgresScanSession(ClosedBehind):
    """See `ScanSession`. The server scans, so that its CPU time is not known here."""

    def __init__(
        self,
        model: PostgresConnection,
        connect: Callable[[Mapping[str, Any]], ScanConnection],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._is_cancelled = is_cancelled
        self._connection = connect(model.to_core(_APPLICATION_NAME))
        try:
            prepare_session(
                self._connection, {**session_settings(self._connection, model.lock_timeout_seconds), **_READS}
            )
        except BaseException:
            self._connection.close()
            raise

    def table(self, name: str) -> ScannedTable | None:
        schema, table = split_name(name)
        try:
            default = one_value(self._connection, "SELECT pg_catalog.current_schema()") or ""
            # Whoever changes the table now makes this wait.
            with interrupted(self._is_cancelled, self._connection.cancel):
                return self._table(name, TableName(schema or default, table))
        except HeadraceError as error:
            if self._is_cancelled():
                raise CancelledError(f"cancelled while looking at table {name}") from error
            raise explained(error, f"looking at table {name}") from error

    def literal(self, text: str, data_type: DataType) -> str:
        return plain_literal(text, data_type)

    def part_rows(self, table: ScannedTable) -> Sequence[int]:
        if table.kind == "view":
            return [count_rows(self.answer, part.sql) for part in table.parts]
        text = sql("part_rows").format(table=table.sql)
        found = self._reading(lambda: self._connection.query(text)).rows
        rows = {TableName(str(schema), str(part)).sql: int(count or 0) for schema, part, count in found}
        return [rows.get(part.sql, 0) for part in table.parts]

    def answer(self, text: str) -> Answer:
        found = self._reading(lambda: self._connection.first_rows(text, (), MOST_ROWS))
        if found.has_more:
            raise too_many_rows()
        return [tuple(row) for row in found.rows]

    def scan(self, text: str) -> ScanTime:
        # The server uses no parallel workers where only the first rows are asked for.
        return self._reading(lambda: timed(lambda: self._connection.query(text), counts_cpu=False))

    def _reading(self, call: Callable[[], _Result]) -> _Result:
        try:
            with interrupted(self._is_cancelled, self._connection.cancel):
                self._connection.execute("BEGIN READ ONLY")
                try:
                    result = call()
                except HeadraceError:
                    # What fails on a lost connection is not what has failed first.
                    with suppress(HeadraceError):
                        self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("ROLLBACK")
                return result
        except HeadraceError as error:
            if self._is_cancelled():
                raise CancelledError("cancelled while a query ran") from error
            if sqlstate(error) == _ONLY_READS:
                raise not_a_query() from error
            raise statement_failure(error) from error

    def close(self) -> None:
        self._connection.close()

    def _table(self, name: str, table: TableName) -> ScannedTable | None:
        relation = find_relation(self._connection, table)
        if relation is None:
            return None
        columns = {column: own.type for column, own in column_types(self._connection, relation.oid).items()}
        rows = self._connection.query(sql("scanned_parts"), (relation.oid,)).rows
        parts = tuple(
            ScannedPart(str(part), TableName(str(schema), str(part)).sql, int(size or 0)) for schema, part, size in rows
        )
        strategy: str | None = None
        key: tuple[str, ...] = ()
        if relation.partitioned:
            keys = self._connection.query(sql("partitioning"), (relation.oid,)).rows
            strategy, key = str(keys[0][0]), tuple(str(row[1]) for row in keys)
        elif relation.kind == "view" and parts:
            strategy = "view"
        if strategy is not None:
            size = sum(part.bytes for part in parts)
            return ScannedTable(name, table.sql, columns, size, relation.kind, strategy, key, parts)
        own = one_value(self._connection, "SELECT pg_catalog.pg_table_size($1::oid)", (relation.oid,))
        return ScannedTable(name, table.sql, columns, int(own or 0), relation.kind)
