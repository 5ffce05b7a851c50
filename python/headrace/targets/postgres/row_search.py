"""Which rows a unique index of PostgreSQL refuses: the server names the index, its catalog the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.errors import HeadraceError, TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres.connection import Connection, one_value, sql
from headrace.targets.postgres.failures import fields_of, sqlstate
from headrace.targets.postgres.names import TableName, literal, quote
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
# `Key (id)=(5) already exists.`, in whatever language around it.
_KEY: Final = re.compile(r"\(.*?\)=\((?P<values>.*)\)", re.DOTALL)


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
    parts = plan.partitioning.partitions if plan.partitioning else ()
    for name, compared, is_plain, _, _, is_alone in rows:
        if is_alone == "t" and len(parts) != 1:
            return None  # rows of other partitions may have the same keys
        if name not in loaded or is_plain != "t" or compared not in _COMPARED_ALIKE:
            return None
        columns.append(SearchedColumn(loaded[name], name, is_padded=compared == _PADDED))
    if not columns:
        return None
    *_, nulls_equal, text, _ = rows[0]
    key = Constraint(f"{text} (SQLSTATE {_UNIQUE_VIOLATION})", tuple(columns), nulls_equal=nulls_equal == "t")
    known = None
    growing = [TableName(plan.schema or "", part.table) for part in parts if part.action == "insert"]
    if plan.target == "append" and not parts:
        growing.append(staging.target)
    if table in growing:
        known = _stored_key(connection, table, str(server.get("detail") or ""), [str(row[0]) for row in rows])
    if known is None:
        return RowSearch((key,), plan.table)
    values = [
        f"{literal(text.rstrip(' ') if column.is_padded else text)} AS {quote(column.name)}"
        for text, column in zip(known, columns, strict=True)
    ]
    return RowSearch((key,), plan.table, rows_before=f"(SELECT {', '.join(values)})")


def _stored_key(connection: Connection, table: TableName, detail: str, names: Sequence[str]) -> Sequence[str] | None:
    """The key that was refused, if a row that is in the table since before the load has it; None if it is not known.

    Asked behind the rollback of the switch.
    """
    found = _KEY.search(detail)
    values = found["values"].split(", ") if found else []
    if len(values) != len(names):
        return None
    same = " AND ".join(f"{quote(name)} = {literal(text)}" for name, text in zip(names, values, strict=True))
    try:
        is_stored = one_value(connection, f"SELECT EXISTS (SELECT FROM {table.sql} WHERE {same})")
    except TargetError:
        return None  # what the server has shown is no value, such as a NULL
    return values if is_stored == "t" else None
