"""A table for each partition, and the view that shows them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from headrace.errors import AccountsError, InternalError
from headrace.planning import CatalogPartition, CatalogTable, DataFlowPlan, Partition, counted
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.catalog import read_table
from headrace.targets.duckdb.divided_views import keep_divided_view
from headrace.targets.duckdb.filling import Filling


def divides(plan: DataFlowPlan) -> bool:
    """Whether the rows of a plan go into tables of their own."""
    return plan.partitioning is not None and plan.partitioning.has_tables


def has_several_tables(plan: DataFlowPlan) -> bool:
    """Whether rows have to know their place."""
    return divides(plan) and plan.partitioning is not None and len(plan.partitioning.partitions) > 1


class Partitions:
    """Statements of a plan's steps, inside the open transaction.

    DuckDB has one statement at a time in a transaction, and one stream to read: the rows of several partitions wait in
    a hidden temporary table, sorted by place. Those of one go straight into its table.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: DataFlowPlan) -> None:
        if plan.partitioning is None:
            raise InternalError("a plan without partitions is loaded into partitions")
        self._connection = connection
        self._plan = plan
        self._partitioning = plan.partitioning
        self._parts = plan.partitioning.partitions
        self._schema = plan.schema or "main"
        self._is_hidden = has_several_tables(plan)
        self._before: CatalogTable | None = None
        self._staying: tuple[CatalogPartition, ...] = ()
        self._none_of_them = Filling(plan.table, keeps_rows=False)
        self.filling = self._none_of_them if self._is_hidden else _filling(self._parts[0], None)

    def step(self, kind: str, result: dict[str, Any] | None) -> bool:
        """False if it has no such step."""
        match kind:
            case "create_staging":
                self._make_tables()
            case "fill_partitions":
                if result is None:
                    raise InternalError("the plan fills partitions before the accounts were checked")
                self._fill(result["sink"]["rows_by_place"])
            case "switch":
                self._switch()
            case _:
                return False
        return True

    def insert(self) -> int:
        """Takes the registered stream; the number of rows."""
        only = self._name(self._parts[0].table)
        statement = ddl.create_hidden(self._plan) if self._is_hidden else ddl.insert_rows(self._plan, only)
        return self._count(statement)

    def _make_tables(self) -> None:
        """Drops what goes, empties what is loaded anew, creates what is new."""
        self._before = read_table(self._connection, self._schema, self._plan.table)
        found = self._before.partitioning if self._before else None
        present = found.partitions if found else ()
        is_kept = self._plan.target == "append" or self._plan.reloads
        going = set(self._partitioning.drops) if is_kept else {part.name for part in present}
        self._staying = tuple(part for part in present if part.name not in going)
        for name in sorted(going):
            self._connection.execute(ddl.drop_table(self._name(name)))
        columns = self._before.columns if self._before and is_kept else ()
        # A view shows one type per column: that of its tables.
        types = {column.name: column.native_type for column in columns}
        for part in self._parts:
            if part.action == "attach":
                self._connection.execute(ddl.create_table(self._plan, self._name(part.table), types))
            elif part.action == "exchange":
                self._connection.execute(ddl.delete_rows(self._name(part.table)))

    def _fill(self, rows_by_place: Sequence[int]) -> None:
        """Raises AccountsError unless every table has taken as many rows as the streams have sent to its place."""
        for place, (part, expected) in enumerate(zip(self._parts, rows_by_place, strict=True)):
            self.filling = _filling(part, place)
            found = self._count(ddl.insert_place(self._plan, self._name(part.table), place))
            if found != expected:
                raise AccountsError(
                    f"{part.table}, a table of {self._plan.table}, has taken other rows than belong into it",
                    found=counted(found, "row"),
                    expected=counted(expected, "row"),
                    hint="This is a defect of Headrace or DuckDB. Keep the run folder and report it.",
                )
        self.filling = self._none_of_them
        self._connection.execute(ddl.drop_table(ddl.HIDDEN))

    def _switch(self) -> None:
        """Makes the view, and writes down what it shows."""
        new = [CatalogPartition(part.table, part.rule) for part in self._parts if part.action == "attach"]
        shown = [*self._staying, *new]
        is_kept = self._before is not None and bool(self._staying)
        names = self._before.columns if self._before and is_kept else ()
        columns = [column.name for column in names] or [column.target for column in self._plan.columns]
        self._connection.execute(
            ddl.create_view(self._schema, self._plan.table, columns, [part.name for part in shown])
        )
        key = (self._partitioning.strategy, self._partitioning.column)
        keep_divided_view(self._connection, (self._schema, self._plan.table), key, shown)

    def _name(self, table: str) -> str:
        return ddl.part_name(self._plan, table)

    def _count(self, statement: str) -> int:
        row = self._connection.execute(statement).fetchone()
        return int(row[0]) if row else 0


def _filling(part: Partition, place: int | None) -> Filling:
    return Filling(part.table, keeps_rows=part.action == "insert", place=place)
