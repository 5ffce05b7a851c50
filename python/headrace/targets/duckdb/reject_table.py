"""The table of rejects, made and filled in the transaction of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import duckdb

from headrace.planning import DataFlowPlan, RejectTable
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.reject_store import RejectDialect, store_rejects

_DIALECT: Final = RejectDialect(
    types=DUCKDB_CAPABILITIES.reject_types,
    has_key=False,  # an index needs memory in proportion to its rows
    quote=ddl.quote,
    unnest="unnest",
    array=list,
)


def fill_reject_table(
    connection: duckdb.DuckDBPyConnection,
    plan: DataFlowPlan,
    table: RejectTable,
    run_id: str,
    rejects: Mapping[str, Any],
    is_cancelled: Callable[[], bool],
) -> None:
    """Makes the table if an earlier task of the run has not, and stores the rejects, inside the open transaction."""
    name = f"{ddl.DATABASE}.{ddl.quote(table.schema or 'main')}.{ddl.quote(table.name)}"
    if not table.exists:
        connection.execute(_DIALECT.create(name))
    statement = _DIALECT.insert(name)

    def insert(values: Sequence[object]) -> int:
        row = connection.execute(statement, list(values)).fetchone()
        return int(row[0]) if row else 0

    store_rejects(plan, table, run_id, rejects, _DIALECT, insert, is_cancelled)
