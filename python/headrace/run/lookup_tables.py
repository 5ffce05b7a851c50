"""The tables of lookups: looked at when their flow is planned, opened when it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.errors import TargetError
from headrace.executors.lookups import RowsOf
from headrace.model import Connection, DataFlowTask, LookupColumn, LookupTable, TableColumn, TableSource
from headrace.planning import CatalogColumn, CatalogTable, LookupPlan
from headrace.planning.lookup_reading import TableReading
from headrace.run.reject_tables import TableKey, table_key
from headrace.targets import GroupTransaction, RowStream, Target, target_key

if TYPE_CHECKING:
    from headrace.run.preparation import OpenTargets

Reading = Callable[[Connection], AbstractContextManager[Target]]


def described(
    task: DataFlowTask, targets: OpenTargets, after: Mapping[TableKey, CatalogTable | None]
) -> tuple[DataFlowTask, Mapping[str, str]]:
    """The task with the tables of its lookups, and what is to be said of them by the lookup's name. `after`: tables as
    flows before it will have left them.

    Raises BindingError for columns that a table has not or that do not fit, TargetError for a table that is not there.
    """
    sources = [lookup.source for lookup in task.lookups if isinstance(lookup.source, TableSource)]
    if task.describe is None:
        return task, {}
    tables: dict[str, LookupTable] = {}
    notes: dict[str, str] = {}
    for source in sources:
        with targets.reading(source.connection) as target:
            key = table_key(target, source, source.table)
            _refuse_own(task, source, key, targets)
            is_changed_before = key in after
            catalog = after[key] if is_changed_before else target.catalog(source.schema, source.table)
            if catalog is None:
                raise _missing(source, target)
            rows = None if is_changed_before else target.estimated_rows(source.schema, source.table)
        if is_changed_before:
            notes[source.name] = "a task before may change its table: it is read as it is when the flow starts"
        tables[source.name] = LookupTable(tuple(map(_column, catalog.columns)), rows)
    return replace(task, transforms=task.describe(tables)), notes


def committed_rows(reading: Reading) -> RowsOf:
    """Opens tables of lookups as everybody sees them."""

    @contextmanager
    def opened(plan: LookupPlan) -> Iterator[RowStream]:
        source, columns = _source_of(plan)
        with (
            reading(source.connection) as target,
            target.lookup_rows(source.schema, source.table, columns) as rows,
        ):
            yield rows

    return opened


def rows_in_group(group: GroupTransaction, connection: Connection, others: RowsOf) -> RowsOf:
    """Opens tables of lookups as a transaction of `connection` sees them, and with `others` those of other places."""

    def opened(plan: LookupPlan) -> AbstractContextManager[RowStream]:
        source, columns = _source_of(plan)
        if target_key(source.connection) != target_key(connection):
            return others(plan)
        return group.lookup_rows(source.schema, source.table, columns)

    return opened


def _source_of(plan: LookupPlan) -> tuple[TableSource, list[LookupColumn]]:
    assert isinstance(plan.reading, TableReading)
    return plan.reading.of, plan.reading.columns


def _column(column: CatalogColumn) -> TableColumn:
    return TableColumn(column.name, column.type, column.native_type, column.nullable)


def _refuse_own(task: DataFlowTask, source: TableSource, key: TableKey, targets: OpenTargets) -> None:
    destination = task.destination
    own = table_key(targets[destination.connection], destination, destination.table)
    if own == key and destination.target == "append":
        raise TargetError(
            f"lookup `{source.name}` reads the table to which its own rows are appended",
            found=f"table {source.table}, and `target: append`",
            expected="another table, or rows that replace those of the table",
            hint="Look rows up in a copy of the table, which a task before makes.",
        )


def _missing(source: TableSource, target: Target) -> TargetError:
    schema = source.schema or target.default_schema
    return TargetError(
        f"lookup `{source.name}` reads a table that does not exist",
        found=f"no table or view `{schema}.{source.table}` in `{source.connection.name}`",
        hint="Check the name, or load the table by a task before.",
    )
