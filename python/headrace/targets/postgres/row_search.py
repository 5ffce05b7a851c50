"""Which rows a unique index of PostgreSQL refuses: the server names the index, its catalog the columns."""

from __future__ import annotations

from typing import Final

from headrace.errors import HeadraceError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres.connection import Connection, sql
from headrace.targets.postgres.failures import fields_of, sqlstate
from headrace.targets.postgres.names import TableName
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.row_search import Constraint, RowSearch, SearchedColumn

_UNIQUE_VIOLATION: Final = "23505"
# Type that an operator class compares, as `format_type` writes it: two values are the same there exactly when DuckDB
# says so. Not among them: citext, jsonb.
_COMPARED_ALIKE: Final = frozenset({
    "smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "date", "time without time zone",
    "timestamp without time zone", "timestamp with time zone", "text", "character", "name", "anyenum", "bytea", "uuid",
})  # fmt: skip
_PADDED: Final = "character"


def row_search(
    connection: Connection, plan: DataFlowPlan, staging: TableStaging, error: HeadraceError
) -> RowSearch | None:
    """What the source has to be searched for; None if `error` is not about a key, or the key compares its values in a
    way that only the server knows.
    """
    server = fields_of(error) or {}
    if sqlstate(error) != _UNIQUE_VIOLATION:
        return None
    table = TableName(str(server.get("schema") or ""), str(server.get("table") or ""))
    index = str(server.get("constraint") or "")
    original = staging.original_index(table, index)
    if original is not None:
        table, index = original
    rows = connection.query(sql("key_columns"), (table.schema, table.name, index)).rows
    loaded = {column.target: column.source for column in plan.columns}
    columns = []
    for name, compared, is_plain, _, _ in rows:
        if name not in loaded or is_plain != "t" or compared not in _COMPARED_ALIKE:
            return None
        columns.append(SearchedColumn(loaded[name], name, is_padded=compared == _PADDED))
    if not columns:
        return None
    *_, nulls_equal, text = rows[0]
    key = Constraint(f"{text} (SQLSTATE {_UNIQUE_VIOLATION})", tuple(columns), nulls_equal=nulls_equal == "t")
    return RowSearch((key,), plan.table)
