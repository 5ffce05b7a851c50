"""Which rows a table of DuckDB refuses: its catalog says what its error does not."""

from __future__ import annotations

import duckdb

from headrace.errors import HeadraceError
from headrace.planning import DataFlowPlan
from headrace.targets.duckdb.connection import sql
from headrace.targets.duckdb.ddl import part_name, quote
from headrace.targets.duckdb.filling import Filling
from headrace.targets.row_search import Constraint, RowSearch, SearchedColumn


def row_search(
    connection: duckdb.DuckDBPyConnection, plan: DataFlowPlan, filling: Filling, error: HeadraceError
) -> RowSearch | None:
    """What the source has to be searched for; None if `error` is not about the constraints of the table `filling`."""
    if not isinstance(error.__cause__, duckdb.ConstraintException):
        return None
    names = {"schema": plan.schema or "main", "table": filling.table}
    types = {row[1].casefold(): row[2] for row in connection.execute(sql("columns"), names).fetchall()}
    columns = {
        quote(column.target).casefold(): SearchedColumn(column.source, column.target, types[column.target.casefold()])
        for column in plan.columns
    }
    constraints = []
    for text, condition, parts, is_collated in connection.execute(sql("constraints"), names).fetchall():
        found = tuple(columns[part.casefold()] for part in parts if part.casefold() in columns)
        # The source has no values of columns that are not loaded and of keys that are expressions.
        if len(found) == len(parts) and not (condition and is_collated):
            constraints.append(Constraint(text, found, condition))
    return RowSearch(
        tuple(constraints),
        filling.table,
        engine=connection,
        rows_before=part_name(plan, filling.table) if filling.keeps_rows else None,
        place=filling.place,
    )
