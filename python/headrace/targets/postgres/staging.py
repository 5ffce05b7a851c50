"""The hidden tables of one task: their names, how they are made, and the sink that fills them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import TargetError
from headrace.planning import DataFlowPlan, StagingTable, counted
from headrace.targets.postgres import ddl
from headrace.targets.postgres.advice import LOCKS_PER_PARTITION
from headrace.targets.postgres.catalog import Relation, column_types, find_relation
from headrace.targets.postgres.connection import Connection, Row, one_row, one_value, sql, texts
from headrace.targets.postgres.indexes import create_indexes, hidden_index_name, indexes_of
from headrace.targets.postgres.names import TableName, literal, quote, staging_name
from headrace.targets.postgres.sequences import sequences_of
from headrace.targets.postgres.types import form_of


@dataclass(frozen=True)
class Staging:
    """One hidden table of a plan. `create`: statements that make it; none if a resumed run finds it there."""

    planned: StagingTable
    table: TableName
    create: tuple[str, ...]


class TableStaging:
    """All hidden tables of a plan; none for a load straight into the target."""

    def __init__(self, connection: Connection, run_id: str, plan: DataFlowPlan, hidden_schema: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self._plan = plan
        self.target = TableName(plan.schema or "", plan.table)
        self.relation = find_relation(connection, self.target)
        self.is_direct = plan.switch == "none"
        self.hidden_schema = hidden_schema
        self.hidden = hidden_tables(run_id, plan, hidden_schema)
        pattern = self._pattern()
        # Frozen rows need no vacuum, others not yet; the switch would wait for it. A table's own rule is kept.
        self.keeps_vacuum_away = not (
            self.is_direct or (pattern and one_value(connection, sql("sets_autovacuum"), (pattern.oid,)))
        )
        carries_indexes = pattern is not None and plan.switch in ("rename", "attach")
        self._indexes = indexes_of(connection, pattern.oid) if pattern and carries_indexes else ()
        self.tables = tuple(
            Staging(planned, self.hidden[planned.partition], self._create(planned, pattern)) for planned in plan.staging
        )

    def sink_spec(self, connection: Mapping[str, Any], commit_slices: str | None) -> dict[str, Any]:
        """The `sink` member of the flow spec."""
        return {
            "kind": "postgres",
            "connection": dict(connection),
            "columns": self._columns(),
            "tables": [self._sink_table(staging) for staging in self.tables if staging.planned.slices],
            "commit_slices": commit_slices,
            "commit": "together" if self.is_direct else "unit",
        }

    def shared_statements(self) -> list[str]:
        """Statements for the tables that several streams fill together; one of an earlier attempt goes on."""
        if self.is_direct:
            return []
        missing = [staging for staging in self.tables if not (staging.planned.owned or self._exists(staging.table))]
        return [text for staging in missing for text in staging.create]

    def not_found(self, names: Collection[str | None]) -> list[str | None]:
        """Which of these hidden tables (None: the target itself) this load would not switch in, with all their rows."""
        here: dict[str | None, TableName] = {staging.table.name: staging.table for staging in self.tables}
        if self.is_direct:
            here = {None: self.target}
        return [name for name in names if name not in here or not self._exists(here[name])]

    def index_statements(self) -> list[tuple[str, str]]:
        """What is made, and the statement: the target's indexes on the hidden tables, if not made before the load."""
        if self._plan.options.indexes == "before":
            return []
        return [
            (f"{index.kind} {index.name}{self._for(staging)}", text)
            for staging in self.tables
            for index, text in zip(self._indexes, create_indexes(self._indexes, staging.table), strict=True)
        ]

    def original_index(self, table: TableName, name: str) -> str | None:
        """The target's index that is called `name` on a hidden table; None if there is none."""
        if table not in (staging.table for staging in self.tables):
            return None
        names = (hidden_index_name(table, number) for number in range(1, len(self._indexes) + 1))
        return next((index.name for index, own in zip(self._indexes, names, strict=True) if own == name), None)

    def _for(self, staging: Staging) -> str:
        return "" if len(self.tables) == 1 else f" of {staging.planned.table}"

    def check(self) -> None:
        """Raises TargetError for what would fail only behind the last row, and for options that cannot be kept."""
        relation = self.relation
        if not self.is_direct:
            self._refuse_published()
        if self._plan.switch in ("attach", "view") and relation is not None and relation.is_owner:
            self._refuse_another_owner(relation)
        if self._plan.switch == "attach":
            self._refuse_too_many_partitions()
            self._refuse_rows_without_partition()
        fills_partitions = relation is not None and relation.partitioned and self._plan.switch in ("move", "none")
        if fills_partitions and not self._rows("partitions", relation):
            raise TargetError(
                f"table {self.target} is partitioned, but has no partition that could take a row",
                hint="Create its partitions first.",
            )
        triggers = [row[0] or "" for row in self._rows("triggers", relation)]
        if self.is_direct and self._plan.options.disable_triggers and triggers:
            raise TargetError(
                f"the triggers of table {self.target} cannot be kept from firing while rows are appended to it",
                found=", ".join(triggers),
                expected="`disable_triggers` only where all rows arrive in one transaction",
                hint="Leave `disable_triggers` out, or switch them off yourself: ALTER TABLE ... DISABLE TRIGGER.",
            )

    def _refuse_published(self) -> None:
        publications = texts(self._connection, sql("publications"), (self.hidden_schema,))
        if publications:
            raise TargetError(
                f"rows of table {self.target} that nobody may see yet would be published",
                found=f"publication {', '.join(publications)} takes every table of schema `{self.hidden_schema}`, "
                "hidden ones too",
                hint="Let it name its tables or other schemas: ALTER PUBLICATION; keep the ledger in a schema of its "
                "own: `ledger: {schema: NAME}`; or use `target: append` with `load: single`, which hides nothing.",
            )

    def _refuse_another_owner(self, relation: Relation) -> None:
        """What becomes part of a table belongs to its owner, who could not use or change the table otherwise."""
        ownership = one_row(self._connection, sql("ownership"), (relation.oid,))
        if ownership is not None and ownership != ["t", "t"]:
            raise TargetError(
                f"the new parts of {self.target} cannot be given to its owner {relation.owner}",
                found=(
                    f"the role may not have tables in schema `{self.target.schema}`"
                    if ownership[0] == "t"
                    else "the user may not give tables to that role"
                ),
                hint=f"Load as {relation.owner}, or GRANT {quote(relation.owner)} TO the user of the connection, and "
                f"CREATE ON SCHEMA {quote(self.target.schema)} TO {quote(relation.owner)}",
            )

    def _refuse_too_many_partitions(self) -> None:
        old = len(self._rows("partitions", self.relation)) if self._plan.target == "replace" else 0
        count = len(self.tables) + old
        needed, places = count * LOCKS_PER_PARTITION, int(one_value(self._connection, sql("lock_places")) or 0)
        if places and needed > places:
            raise TargetError(
                f"the server cannot switch {counted(count, 'partition')} of table {self.target} in one transaction",
                found=f"room for {places} locks (max_locks_per_transaction * (max_connections + "
                "max_prepared_transactions))",
                expected=f"about {needed}",
                hint="Raise max_locks_per_transaction and restart the server, or load fewer files at a time.",
            )

    def _refuse_rows_without_partition(self) -> None:
        """The server would have to look whether rows of the default partition belong into a new one."""
        rows = self._rows("partitions", self.relation) if self._plan.target == "append" else []
        for schema, name, bound, _ in rows:
            default = TableName(schema or "", name or "")
            if bound == "DEFAULT" and one_value(self._connection, f"SELECT EXISTS (SELECT FROM {default.sql})") == "t":
                raise TargetError(
                    f"table {self.target} takes no new partition while its default partition has rows",
                    found=f"rows in {default}",
                    hint="Move them into partitions of their own, or use `load: single`.",
                )

    def _exists(self, table: TableName) -> bool:
        return one_value(self._connection, "SELECT pg_catalog.to_regclass($1)", (table.sql,)) is not None

    def _rows(self, query: str, relation: Relation | None) -> list[Row]:
        return [] if relation is None else self._connection.query(sql(query), (relation.oid,)).rows

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

    def _sink_table(self, staging: Staging) -> dict[str, Any]:
        planned = staging.planned
        makes_table = planned.owned and bool(staging.create)
        into = self.target if self.is_direct else staging.table
        lock = [f"LOCK TABLE {into.sql} IN SHARE ROW EXCLUSIVE MODE"] * self._plan.options.lock
        direct = [ddl.DURABLE, *lock] if self.is_direct else []
        return {
            "name": planned.table,
            "partition": planned.partition,
            "slices": list(planned.slices),
            "owned": planned.owned,
            "begin": ddl.begin_unit(self._run_id, staging.create if makes_table else direct),
            "copy": ddl.copy_into(into, self._plan, freeze=makes_table),
            "bounds": None if planned.bounds is None else planned.bounds.to_dict(),
        }

    def _create(self, planned: StagingTable, pattern: Relation | None) -> tuple[str, ...]:
        table = self.hidden[planned.partition]
        if self.is_direct or find_relation(self._connection, table) is not None:
            return ()
        quiet = [ddl.vacuum(table, own=False)] * self.keeps_vacuum_away
        if pattern is None:
            return (ddl.create_new(table, self._plan, planned.bounds), *quiet)
        if pattern.kind == "view":
            return (*ddl.create_like_view(table, self.target, self._plan), *quiet)
        # A partition gets its numbers from the table that it is part of.
        identity = self._plan.switch != "attach"
        if not identity:
            self._refuse_unfilled_identity(pattern)
        storage = one_value(self._connection, sql("storage"), (pattern.oid,)) or ""
        like = ddl.create_like(table, self.target, self._plan, planned.bounds, storage, identity=identity)
        numbers = self._continue_numbers(table, pattern) if self._plan.switch == "rename" else []
        indexes = create_indexes(self._indexes, table) if self._plan.options.indexes == "before" else []
        return (like, *quiet, *numbers, *indexes)

    def _pattern(self) -> Relation | None:
        """The existing table or view that the hidden ones must be like."""
        return None if self.is_direct else self.relation

    def _refuse_unfilled_identity(self, pattern: Relation) -> None:
        filled = {column.target for column in self._plan.columns}
        for sequence in sequences_of(self._connection, pattern.oid):
            if sequence.is_identity and sequence.column not in filled:
                raise TargetError(
                    f"table {self.target} cannot number `{sequence.column}` of rows that come as partitions",
                    hint="Give the column a source column, or use `load: single`.",
                )

    def _continue_numbers(self, table: TableName, pattern: Relation) -> list[str]:
        """A copied identity starts anew; these statements let it go on where the table's own stands."""
        return [
            "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence("
            f"{literal(table.sql)}, {literal(sequence.column)}), last_value, is_called) FROM {sequence.name.sql}"
            for sequence in sequences_of(self._connection, pattern.oid)
            if sequence.is_identity
        ]


def hidden_tables(run_id: str, plan: DataFlowPlan, hidden_schema: str) -> dict[str, TableName]:
    """The hidden tables of a plan by partition."""
    target = TableName(plan.schema or "", plan.table)
    return {
        planned.partition: TableName(hidden_schema, staging_name(run_id, target, planned.partition))
        for planned in plan.staging
    }


def staging_by_slice(run_id: str, plan: DataFlowPlan, hidden_schema: str) -> dict[int, str]:
    """Hidden table by slice, for the ledger; empty for a load straight into the target."""
    if plan.switch == "none":
        return {}
    names = hidden_tables(run_id, plan, hidden_schema)
    return {number: names[table.partition].name for table in plan.staging for number in table.slices}
