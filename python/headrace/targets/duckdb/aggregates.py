"""Aggregates of a stored table, for comparing it with its source: one query, per type from a table of SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

from headrace.errors import InternalError, TargetError
from headrace.model import DataType
from headrace.planning import DataFlowPlan
from headrace.targets.base import TableAggregates
from headrace.targets.duckdb.catalog import read_table
from headrace.targets.duckdb.ddl import quote, table_name
from headrace.targets.duckdb.failures import first_paragraph

_RANGE: Final = {"min": "min({column})", "max": "max({column})"}
_NUMBER: Final = {"sum": "sum({column})", **_RANGE}
# A sum of more digits than DECIMAL has is taken over the values without their point.
_WIDE_NUMBER: Final = {"sum": "sum(replace({column}::VARCHAR, '.', '')::BIGNUM)::VARCHAR || 'E-{scale}'", **_RANGE}
# Floats of both sizes are written as DOUBLE, so that their texts are comparable.
_FLOAT: Final = {"min": "min({column})::DOUBLE", "max": "max({column})::DOUBLE"}
# Without the ICU extension, which would use the time zone of this machine.
_INSTANT: Final = {
    "min": "make_timestamp(epoch_us(min({column})))",
    "max": "make_timestamp(epoch_us(max({column})))",
}
_LENGTHS: Final = {
    "min_length": "min(length({column}::VARCHAR))",
    "max_length": "max(length({column}::VARCHAR))",
    "total_length": "sum(length({column}::VARCHAR))",
}
_OF_KIND: Final = {
    "int16": _NUMBER,
    "int32": _NUMBER,
    "int64": _NUMBER,
    "decimal": _NUMBER,
    "float32": _FLOAT,
    "float64": _FLOAT,
    "date": _RANGE,
    "time": _RANGE,
    "timestamp": _RANGE,
    "timestamptz": _INSTANT,
    "string": _LENGTHS,
    "json": _LENGTHS,
}
# A sum is a DECIMAL of 38 digits: room for 10^20 values.
_MAXIMUM_SUMMED_PRECISION: Final = 18


def read_aggregates(connection: duckdb.DuckDBPyConnection, path: Path, plan: DataFlowPlan) -> TableAggregates:
    """The aggregates of the plan's columns. Raises TargetError if the table cannot be read."""
    table = read_table(connection, plan.schema or "main", plan.table)
    if table is None:
        raise InternalError("a table was read that does not exist")
    types = {column.name: column.type for column in table.columns}
    templates = {column.target: _templates(types[column.target]) for column in plan.columns}
    values = [_values(name, types[name], template) for name, template in templates.items()]
    try:
        row = connection.execute(f"SELECT {', '.join(['count(*)', *values])} FROM {table_name(plan)}").fetchone()
    except duckdb.Error as error:
        raise TargetError(
            f"table {plan.connection}.{plan.table} cannot be read", at={"file": str(path)}, found=first_paragraph(error)
        ) from error
    assert row is not None
    columns = {
        name: dict(zip(("nulls", *template), found, strict=True))
        for (name, template), found in zip(templates.items(), row[1:], strict=True)
    }
    return TableAggregates(int(row[0]), columns)


def _templates(data_type: DataType | None) -> dict[str, str]:
    """SQL by aggregate; empty for types of which only the NULLs are compared."""
    if data_type is None:
        return {}
    if data_type.kind == "decimal" and (data_type.precision or 0) > _MAXIMUM_SUMMED_PRECISION:
        return _WIDE_NUMBER
    return _OF_KIND.get(data_type.kind, {})


def _values(name: str, data_type: DataType | None, templates: dict[str, str]) -> str:
    """A list of texts: the NULLs, then each aggregate."""
    column, scale = quote(name), data_type.scale if data_type else None
    filled = [template.format(column=column, scale=scale) for template in templates.values()]
    return f"[{', '.join(f'({text})::VARCHAR' for text in [f'count(*) - count({column})', *filled])}]"
