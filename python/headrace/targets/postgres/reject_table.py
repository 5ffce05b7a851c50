"""The table of rejects: made before the first row, filled in the transaction that completes the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.planning import DataFlowPlan, RejectTable, check_reject_table
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from headrace.targets.postgres.catalog import find_relation, read_table
from headrace.targets.postgres.connection import Connection, array, rows_done, transaction
from headrace.targets.postgres.failures import explained
from headrace.targets.postgres.names import TableName, ledger_lock_key, quote
from headrace.targets.reject_store import RejectDialect, store_rejects


def _array(values: Sequence[object]) -> str:
    return array([rf"\x{value.hex()}" if isinstance(value, bytes) else value for value in values])


_DIALECT: Final = RejectDialect(
    types=POSTGRES_CAPABILITIES.reject_types, has_key=True, quote=quote, unnest="pg_catalog.unnest", array=_array
)


def make_reject_table(connection: Connection, ledger_schema: str, table: RejectTable, what: str) -> None:
    """Makes the table unless there is one by now, in a transaction of its own.

    Raises TargetError if somebody else has made another one since the plan. Two runs may make it at once: one of them
    waits for the lock of whoever creates the ledger, and then finds it.
    """
    name = TableName(table.schema or "", table.name)
    try:
        if find_relation(connection, name) is None:
            with transaction(connection):
                key = str(ledger_lock_key(ledger_schema))
                connection.query("SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)", (key,))
                if find_relation(connection, name) is None:
                    connection.execute(_DIALECT.create(name.sql))
        catalog = read_table(connection, name)
    except HeadraceError as error:
        raise explained(error, f"{what}: making table {table.shown} for rejects") from error
    if catalog is not None:
        check_reject_table(table.shown, catalog, POSTGRES_CAPABILITIES)


def fill_reject_table(
    connection: Connection,
    plan: DataFlowPlan,
    table: RejectTable,
    run_id: str,
    rejects: Mapping[str, Any],
    what: str,
    is_cancelled: Callable[[], bool],
) -> None:
    """Stores the rejects, inside the open transaction."""
    statement = _DIALECT.insert(TableName(table.schema or "", table.name).sql)

    def insert(values: Sequence[object]) -> int:
        return rows_done(connection.query(statement, [_text(value) for value in values]).tag)

    try:
        store_rejects(plan, table, run_id, rejects, _DIALECT, insert, is_cancelled)
    except HeadraceError as error:
        raise explained(error, f"{what}: storing rejects in table {table.shown}") from error


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
