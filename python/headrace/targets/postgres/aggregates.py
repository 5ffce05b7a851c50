"""Aggregates of a stored table, for comparing it with its source: one query, per receive form from a table of SQL."""

from __future__ import annotations

import json
from typing import Final

from headrace.errors import InternalError
from headrace.planning import DataFlowPlan
from headrace.targets.base import TableAggregates
from headrace.targets.postgres.catalog import column_types, find_relation
from headrace.targets.postgres.connection import Connection, one_row, transaction
from headrace.targets.postgres.names import TableName, quote

_RANGE: Final = {"min": "pg_catalog.min({column})", "max": "pg_catalog.max({column})"}
_NUMBER: Final = {"sum": "pg_catalog.sum({column})", **_RANGE}
# Floats of both sizes are written as double precision, so that their texts are comparable.
_FLOAT: Final = {"min": "pg_catalog.min({column})::float8", "max": "pg_catalog.max({column})::float8"}
_INSTANT: Final = {
    "min": "pg_catalog.min({column}) AT TIME ZONE 'UTC'",
    "max": "pg_catalog.max({column}) AT TIME ZONE 'UTC'",
}
# As text, character(n) is without its trailing blanks.
_LENGTHS: Final = {
    "min_length": "pg_catalog.min(pg_catalog.length({column}::text))",
    "max_length": "pg_catalog.max(pg_catalog.length({column}::text))",
    "total_length": "pg_catalog.sum(pg_catalog.length({column}::text))",
}
# Of the other forms only the NULLs are compared; jsonb writes its own text, not that of the source.
_OF_FORM: Final = {
    "int2": _NUMBER,
    "int4": _NUMBER,
    "int8": _NUMBER,
    "numeric": _NUMBER,
    "float4": _FLOAT,
    "float8": _FLOAT,
    "date": _RANGE,
    "time": _RANGE,
    "timestamp": _RANGE,
    "timestamptz": _INSTANT,
    "text": _LENGTHS,
    "json": _LENGTHS,
}


def read_aggregates(connection: Connection, table: TableName, plan: DataFlowPlan) -> TableAggregates:
    """The aggregates of the plan's columns."""
    with transaction(connection):
        connection.execute("SET TRANSACTION READ ONLY")  # each session shows all digits of floats
        relation = find_relation(connection, table)
        if relation is None:
            raise InternalError("a table was read that does not exist")
        types = column_types(connection, relation.oid)
        templates = {column.target: _OF_FORM.get(types[column.target].form, {}) for column in plan.columns}
        values = [_values(name, template) for name, template in templates.items()]
        row = one_row(connection, f"SELECT {', '.join(['pg_catalog.count(*)', *values])} FROM {table.sql}")
    assert row is not None
    columns = {
        name: dict(zip(("nulls", *template), json.loads(found or ""), strict=True))
        for (name, template), found in zip(templates.items(), row[1:], strict=True)
    }
    return TableAggregates(int(row[0] or 0), columns)


def _values(name: str, templates: dict[str, str]) -> str:
    """An array of texts: the NULLs, then each aggregate. One for a column: a result has at most 1664 columns."""
    column = quote(name)
    nulls = f"pg_catalog.count(*) - pg_catalog.count({column})"
    texts = [
        f"({text})::text" for text in (nulls, *(template.format(column=column) for template in templates.values()))
    ]
    return f"pg_catalog.json_build_array({', '.join(texts)})"
