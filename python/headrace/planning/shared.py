"""Flows with several destinations, or with rows that come together again: what they read is what the layout says,
whatever one of the tables holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model import (
    AddedColumn,
    Column,
    ComputedColumn,
    DataFlowTask,
    DataType,
    Reunion,
    RowColumn,
    Split,
    SqlTransform,
    Transform,
    UnitedColumn,
)
from headrace.planning.column_mapping import ColumnMapping
from headrace.planning.fit_column import FitColumn
from headrace.planning.memory import value_bytes

# As which the number of an output comes.
_OUTPUT_NUMBER = DataType.parse("int32")


def rows_as_declared(task: DataFlowTask) -> tuple[ComputedColumn, ...]:
    """The columns of the rows behind the transforms; each has to fit its table as it is."""
    ignoring = set(task.ignoring)

    def declared(own: RowColumn) -> ComputedColumn:
        if isinstance(own, UnitedColumn):
            return ComputedColumn(own.name, own.type, own.may_be_null, "")
        may_be_ignored = isinstance(own, Column) and own.from_ is None and own.name in ignoring
        is_made = isinstance(own, Column) and own.from_ is not None
        if isinstance(own, ComputedColumn):
            return own
        lookup = own.lookup if isinstance(own, AddedColumn) else ""
        nullable = (own.nullable or may_be_ignored) and not is_made
        return ComputedColumn(own.name, own.type, nullable, "", lookup=lookup)

    return tuple(declared(own) for own in task.rows)


def fit_columns(rows: Sequence[ComputedColumn | RowColumn], mapping: ColumnMapping) -> tuple[FitColumn, ...]:
    """What depends on values: whether a text is short enough, and whether there is one."""
    known = {own.name: own for own in rows}
    fit: dict[str, FitColumn] = {}
    for column in mapping.columns:
        own = known[column.source]
        is_longer = column.type.kind == "varchar" and own.type != column.type
        refuses_null = own.nullable and not column.nullable
        if not is_longer and not refuses_null:
            continue
        before = fit.get(column.source, FitColumn(column.source, own.type, own.nullable))
        narrow = column.type if is_longer else own.type
        if before.type.kind == "varchar" and (not is_longer or (before.type.length or 0) < (narrow.length or 0)):
            narrow = before.type
        fit[column.source] = FitColumn(column.source, narrow, before.nullable and not refuses_null)
    return tuple(fit.values())


def computed_types(transforms: Sequence[Transform]) -> tuple[DataType, ...]:
    """The types of columns behind queries and unions, and of the numbers by which rows are split."""
    types: list[DataType] = []
    for own in transforms:
        if isinstance(own, SqlTransform | Reunion):
            types += [column.type for column in own.columns]
        elif isinstance(own, Split):
            types.append(_OUTPUT_NUMBER)
    return tuple(types)


def copied_types(task: DataFlowTask) -> tuple[DataType, ...]:
    """The types of columns that are copied where rows go different ways, while what came may be held by another
    destination, or waits for a union: all columns, once for each such place. Every way of a flow gives the same.
    """
    if not (task.flow or task.reunites or task.has_fronts):
        return ()
    lookups = (*task.lookups, *task.lookups_beside)
    # In front of a meeting of sources they are those of one of these, or of another join.
    of_sources = [own.layout.columns for own in task.sources] if task.has_fronts else []
    together = task.columns if task.together is None else task.together.columns
    inner = [own.columns for own in task.join.inner] if task.join is not None else []
    of_rows = [[column.type for column in own] for own in (together, *inner, *of_sources)]
    rows = (
        *max(of_rows, key=lambda types: sum(map(value_bytes, types))),
        *(column.type for own in lookups for column in own.added),
    )
    splits = sum(isinstance(own, Split) for own in (*task.transforms, *task.others))
    return rows * (splits + sum(own.sends_misses or own.rejects_misses for own in lookups))
