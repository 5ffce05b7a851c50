"""The hidden tables of one task on their way: the sink that fills them, and what is made of them before the switch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headrace.errors import TargetBusyError, TargetError
from headrace.planning import STRAYS, DataFlowPlan, StagingTable
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import column_types, find_relation, names_in_schema
from headrace.targets.postgres.connection import Connection, Row, one_value, sql, transaction
from headrace.targets.postgres.hidden_tables import HiddenTables, Staging, planned_units
from headrace.targets.postgres.indexes import built_on, create_indexes, hidden_index_name
from headrace.targets.postgres.names import TableName, staging_name
from headrace.targets.postgres.refusals import check_before_load
from headrace.targets.postgres.types import form_of

CommittedUnits = Mapping[str, Mapping[int, int]]


class TableStaging:
    """All hidden tables of a plan; none for a load straight into the target.

    `partitions`: those of the target when the load began, as `partitions.sql` has them; `units`: for the ledger.
    """

    def __init__(self, connection: Connection, run_id: str, plan: DataFlowPlan, hidden_schema: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self._plan = plan
        self.target = TableName(plan.schema or "", plan.table)
        self.relation = find_relation(connection, self.target)
        self.is_direct = plan.switch == "none"
        self.hidden_schema = hidden_schema
        self._hidden = HiddenTables(connection, run_id, plan, hidden_schema, self.relation)
        self.tables = self._hidden.tables
        self.parent = self._hidden.parent
        oid = None if self.relation is None else self.relation.oid
        self.units = planned_units(run_id, plan, hidden_schema, oid)
        is_divided = self.relation is not None and self.relation.partitioned
        self.partitions: list[Row] = (
            connection.query(sql("partitions"), (self.relation.oid,)).rows if self.relation and is_divided else []
        )

    @property
    def is_divided_by_server(self) -> bool:
        """True if the hidden tables are partitions of `parent` from the beginning."""
        return self._hidden.is_divided_by_server

    @property
    def divided(self) -> TableName | None:
        """The partitioned table into which rows are copied or moved: the server looks for their partitions."""
        if self.is_divided_by_server:
            return self.parent
        return self.target if self.relation is not None and self.relation.partitioned else None

    @property
    def names(self) -> list[str]:
        """Names of all hidden tables. The partitioned one comes last: hidden partitions may depend on it."""
        parent = [] if self.parent is None else [self.parent.name]
        return [*(staging.table.name for staging in self.tables), *parent]

    def check(self) -> None:
        """Raises TargetError for what would fail only behind the last row, and for options that cannot be kept."""
        check_before_load(self._connection, self._plan, self)

    def sink_spec(
        self, connection: Mapping[str, Any], commit_slices: str | None, committed: CommittedUnits
    ) -> dict[str, Any]:
        """The `sink` member of the flow spec. `committed`: rows of slices that only some units have committed."""
        if committed and self._plan.is_one_result:  # by a writer that was not at it when all was dropped
            raise TargetBusyError(
                f"an earlier try has committed a part of {self._plan.task} just now, of another result",
                hint=f"Try again: headrace resume {self._run_id}",
            )
        planned, routes = self._plan.partitioning, self._routes
        tables = [table for table in self._plan.staging if table.partition != STRAYS and (table.slices or routes)]
        strays = [table for table in self._plan.staging if table.partition == STRAYS]
        size = self._plan.commit
        return {
            "kind": "postgres",
            "connection": dict(connection),
            "columns": self._columns(),
            "tables": [self._sink_table(table, committed) for table in tables],
            "way": planned.way if planned is not None and routes else "plain",
            "strays": self._sink_table(strays[0], committed) if strays else None,
            "commit_bytes": None if size is None else size.bytes,
            "commit_rows": None if size is None else size.rows,
            "commit_slices": commit_slices,
            "commit": "together" if self.is_direct and size is None else "unit",
        }

    def make_shared(self, connection: Connection) -> None:
        """Makes the tables that no unit makes: those that several fill, and those that only strays fill.

        One of an earlier attempt goes on. So each is made in a transaction of its own: what is there is complete.
        """
        if self.is_direct:
            return
        by_unit = {table.partition for table in self._plan.staging if table.owned and table.slices}
        there = names_in_schema(connection, self.hidden_schema)  # by now
        missing = [item for item in self.tables if item.partition not in by_unit and item.table.name not in there]
        tables = [self._hidden.create_parent(there), *(staging.create for staging in missing)]
        for statements in filter(None, tables):
            with transaction(connection):
                for text in statements:
                    connection.execute(text)

    def not_found(self, names: Collection[str | None]) -> list[str | None]:
        """Which of these hidden tables (None: the target itself) this load would not switch in, with all their rows."""
        here: dict[str | None, TableName] = {staging.table.name: staging.table for staging in self.tables}
        if self.parent is not None:
            here[self.parent.name] = self.parent
        if self.is_direct:
            here = {None: self.target}
        return [name for name in names if name not in here or not self._exists(here[name])]

    def index_statements(self) -> list[list[tuple[str, str]]]:
        """By hidden table what is made, and the statement: the indexes that it needs and does not have yet."""
        found = []
        for staging in self.tables:
            relation = find_relation(self._connection, staging.table) if staging.indexes else None
            there = {} if relation is None else built_on(self._connection, relation.oid)
            statements = create_indexes(staging.indexes, staging.table)
            found.append(
                [
                    (f"{index.kind} {index.name}{self._of(staging)}", text)
                    for number, (index, text) in enumerate(zip(staging.indexes, statements, strict=True), start=1)
                    if hidden_index_name(staging.table, number) not in there
                ]
            )
        return [statements for statements in found if statements]

    def foreign_key_statements(self) -> list[tuple[str, str]]:
        """The same for foreign keys, which lock the tables to which they refer."""
        return [
            (f"foreign key {key.name}{self._of(staging)}", key.create(staging.table))
            for staging in self.tables
            for key in staging.foreign_keys
            if not self._has_constraint(staging.table, key.name)
        ]

    def original_index(self, table: TableName, name: str) -> tuple[TableName, str] | None:
        """The table and index after which the index `name` of a hidden table was made; None if it is none of ours."""
        for staging in self.tables:
            if staging.table != table or staging.like is None:
                continue
            for number, index in enumerate(staging.indexes, start=1):
                if hidden_index_name(table, number) == name:
                    return staging.like, index.name
        return None

    @property
    def _routes(self) -> bool:
        """True if the core finds the partition of each row."""
        return self._plan.partitioning is not None and self._plan.partitioning.way != "server"

    def _of(self, staging: Staging) -> str:
        return "" if len(self.tables) == 1 else f" of {staging.shown}"

    def _exists(self, table: TableName) -> bool:
        return one_value(self._connection, "SELECT pg_catalog.to_regclass($1)", (table.sql,)) is not None

    def _has_constraint(self, table: TableName, name: str) -> bool:
        return one_value(self._connection, sql("has_constraint"), (table.sql, name)) is not None

    def _columns(self) -> list[dict[str, str]]:
        types = {} if self.relation is None else column_types(self._connection, self.relation.oid)
        forms = {name: column.form for name, column in types.items()}
        missing = [column.target for column in self._plan.columns if self.relation and column.target not in forms]
        if missing:
            raise TargetError(
                f"table {self.target} was changed after the load was planned",
                found=f"no column {', '.join(missing)}, or one of another type",
                hint="Run again.",
            )
        return [
            {"source": column.source, "form": forms.get(column.target) or form_of(column.type)}
            for column in self._plan.columns
        ]

    def _sink_table(self, planned: StagingTable, committed: CommittedUnits) -> dict[str, Any]:
        staging = next((item for item in self.tables if item.partition == planned.partition), None)
        makes_table = planned.owned and bool(planned.slices) and staging is not None and bool(staging.create)
        begin = staging.create if staging is not None and makes_table else ()
        into = self.target
        if not self.is_direct:
            into = TableName(self.hidden_schema, staging_name(self._run_id, self.target, planned.partition))
        lock = [f"LOCK TABLE {into.sql} IN SHARE ROW EXCLUSIVE MODE"] * self._plan.options.lock
        direct = [ddl.DURABLE, *lock] if self.is_direct else []
        return {
            "name": planned.table,
            "partition": planned.partition,
            "slices": list(planned.slices),
            "owned": planned.owned and bool(planned.slices),
            "begin": ddl.begin_unit(self._run_id, [*direct, *begin]),
            "copy": ddl.copy_into(into, self._plan, freeze=makes_table),
            "committed": {str(number): rows for number, rows in committed.get(planned.partition, {}).items()},
        }
