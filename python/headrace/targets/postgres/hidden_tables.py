"""What the hidden tables of one task are like, and the statements that make them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from headrace.errors import TargetError
from headrace.planning import ALL_PARTITIONS, DataFlowPlan, HashRule, Partition, PartitionRule, StagingTable
from headrace.targets.postgres import ddl
from headrace.targets.postgres.bounds import implies, read_bound
from headrace.targets.postgres.catalog import Relation, column_types, find_relation, names_in_schema, own_comparison
from headrace.targets.postgres.connection import Connection, one_row, one_value, sql
from headrace.targets.postgres.foreign_keys import ForeignKey, foreign_keys_of
from headrace.targets.postgres.indexes import Index, create_indexes, indexes_of
from headrace.targets.postgres.ledger import Unit
from headrace.targets.postgres.names import TableName, literal, quote, staging_name
from headrace.targets.postgres.sequences import sequences_of
from headrace.targets.postgres.types import form_of

# Texts have collations, and the server's own hash of a partition says nothing about these: it never equals a CHECK.
_WITH_COLLATION: Final = "text"


@dataclass(frozen=True)
class _Pattern:
    """The existing table or view that a hidden one must be like. `storage` stands behind its columns."""

    name: TableName
    relation: Relation
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]
    storage: str
    tablespace: str | None
    sets_autovacuum: bool


@dataclass(frozen=True)
class Staging:
    """One hidden table. `create`: statements that make it; none if a resumed run finds it there.

    `shown`: its name once it is switched in, or of what it is switched into; `part`: the partition that it becomes or
    fills; `like`: the table that it is made like; `indexes` and `foreign_keys`: those that it needs before the switch;
    `has_condition`: a CHECK of its keys; `is_quiet`: autovacuum stays away until the switch.
    """

    partition: str
    shown: str
    table: TableName
    create: tuple[str, ...]
    part: Partition | None = None
    like: TableName | None = None
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    has_condition: bool = False
    is_quiet: bool = False


class HiddenTables:
    """The hidden tables of a plan. `relation`: the target, None if it is new.

    `parent` is a hidden partitioned table: what a new partitioned target becomes, or where the server divides the rows.
    """

    def __init__(
        self, connection: Connection, run_id: str, plan: DataFlowPlan, hidden_schema: str, relation: Relation | None
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._target = TableName(plan.schema or "", plan.table)
        self._relation = relation
        self._run_id = run_id
        self._schema = hidden_schema
        partitioning = plan.partitioning
        self._rules = {part.name: part for part in partitioning.partitions} if partitioning else {}
        self.is_divided_by_server = partitioning is not None and partitioning.way == "server"
        has_parent = plan.switch == "attach" and (relation is None or self.is_divided_by_server)
        self.parent = self._name(ALL_PARTITIONS) if has_parent else None
        # Looked at once, however many partitions there are.
        self._there = names_in_schema(connection, hidden_schema)
        self._target_pattern = None
        if relation is not None and plan.switch != "none":
            self._target_pattern = self._pattern(self._target, relation)
        self._compares_otherwise = (
            partitioning is not None and relation is not None and own_comparison(connection, relation.oid) is not None
        )
        self._hashing_table = self._expression_of_oid() if partitioning is not None else None
        self.tables = tuple(self._tables())

    def create_parent(self, there: Collection[str]) -> list[str]:
        """Statements that make the partitioned table, if its name is not among those that are there."""
        if self.parent is None or self.parent.name in there:
            return []
        if self._relation is None:
            return [ddl.create_parent(self.parent, self._plan)]
        # Not only the same column: operator classes and collations decide where a key belongs.
        key = one_value(self._connection, sql("partition_key"), (self._relation.oid,)) or ""
        return [ddl.create_parent_like(self.parent, self._target, self._plan, key)]

    def _tables(self) -> Iterator[Staging]:
        if self._plan.switch == "none":
            return
        if self.is_divided_by_server:
            for part in self._rules.values():
                yield self._table(StagingTable(part.name, part.table, (), owned=False))
            return
        for planned in self._plan.staging:
            yield self._table(planned)

    def _table(self, planned: StagingTable) -> Staging:
        table, part = self._name(planned.partition), self._rules.get(planned.partition)
        pattern = self._replaced(part) if part is not None and part.action == "exchange" else self._target_pattern
        indexes: tuple[Index, ...] = ()
        foreign_keys: tuple[ForeignKey, ...] = ()
        if pattern is not None and part is not None and part.becomes_partition:
            indexes, foreign_keys = pattern.indexes, pattern.foreign_keys
        elif pattern is not None and self._plan.switch == "rename":
            indexes = pattern.indexes
        condition = self._condition(part)
        # Frozen rows need no vacuum, others not yet; the switch would wait for it. A table's own rule is kept.
        is_quiet = pattern is None or not pattern.sets_autovacuum
        create: tuple[str, ...] = ()
        if table.name not in self._there:
            quiet = [ddl.vacuum(table, own=False)] * is_quiet
            made = self._create(table, part, pattern, condition)
            numbers = self._continue_numbers(table, pattern) if pattern and self._plan.switch == "rename" else []
            first = create_indexes(indexes, table) if self._plan.options.indexes == "before" else []
            create = (*made, *quiet, *numbers, *first, *self._divided(table, part))
        return Staging(
            partition=planned.partition,
            shown=planned.table,
            table=table,
            create=create,
            part=part,
            like=None if pattern is None else pattern.name,
            indexes=indexes,
            foreign_keys=foreign_keys,
            has_condition=condition is not None,
            is_quiet=is_quiet,
        )

    def _create(
        self, table: TableName, part: Partition | None, pattern: _Pattern | None, condition: str | None
    ) -> list[str]:
        tablespace = None if part is None else part.tablespace
        if pattern is None:
            return [ddl.create_new(table, self._plan, condition, tablespace)]
        if pattern.relation.kind == "view":
            return ddl.create_like_view(table, pattern.name, self._plan)
        # A partition gets its numbers from the table that it is part of.
        identity = self._plan.switch != "attach"
        if not identity:
            self._refuse_unfilled_identity(pattern.relation)
        where = tablespace or pattern.tablespace
        storage = f"{pattern.storage}{'' if where is None else f' TABLESPACE {quote(where)}'}"
        return [ddl.create_like(table, pattern.name, self._plan, condition, storage, identity=identity)]

    def _divided(self, table: TableName, part: Partition | None) -> list[str]:
        """Where the server divides the rows, the table is a partition from the beginning."""
        if not self.is_divided_by_server or self.parent is None or part is None:
            return []
        return [ddl.attach(self.parent, table, part.rule)]

    def _condition(self, part: Partition | None) -> str | None:
        """What spares ATTACH its scan; None where nothing is attached, or nothing would spare it."""
        if part is None or not part.becomes_partition or (self.is_divided_by_server and self._relation is None):
            return None
        planned = ddl.partitioning_of(self._plan)
        if self._compares_otherwise and planned.strategy == "list":
            return None  # the column's own equality is another one
        others = [other.rule for other in planned.partitions if other != part] + self._staying()
        return implies(part.rule, quote(planned.column), others, self._hashing_table)

    def _expression_of_oid(self) -> str | None:
        """An expression for the oid of the table whose hash counts; None if it would prove nothing.

        Of a table that exists it is a number: a name would make the hidden tables depend on it, and it could not be
        dropped.
        """
        key = ddl.partitioning_of(self._plan)
        if self._relation is None:
            form = form_of(next(column.type for column in self._plan.columns if column.target == key.column))
            oid = "" if self.parent is None else f"{literal(self.parent.sql)}::pg_catalog.regclass::pg_catalog.oid"
        else:
            found = column_types(self._connection, self._relation.oid).get(key.column)
            form, oid = "" if found is None else found.form, f"{self._relation.oid}::pg_catalog.oid"
        return None if form == _WITH_COLLATION else oid

    def _staying(self) -> list[PartitionRule]:
        """Rules of partitions that exist and are not in the plan, but stay."""
        going = ddl.partitioning_of(self._plan).drops
        if self._relation is None or replaces_all(self._plan):
            return []
        concerned = {*(part.table for part in self._rules.values()), *going}
        rows = self._connection.query(sql("partitions"), (self._relation.oid,)).rows
        rules = (read_bound(bound or "") for _, name, bound, _ in rows if name not in concerned)
        return [rule for rule in rules if rule is not None]

    def _pattern(self, name: TableName, relation: Relation) -> _Pattern:
        oid = (relation.oid,)
        storage, tablespace = one_row(self._connection, sql("storage"), oid) or [None, None]
        keeps_indexes = self._plan.switch in ("rename", "attach")
        return _Pattern(
            name,
            relation,
            indexes_of(self._connection, relation.oid) if keeps_indexes else (),
            foreign_keys_of(self._connection, relation.oid) if self._plan.switch == "attach" else (),
            storage or "",
            tablespace,
            one_value(self._connection, sql("sets_autovacuum"), oid) is not None,
        )

    def _replaced(self, part: Partition) -> _Pattern:
        """The partition whose place is taken."""
        name = TableName(self._target.schema, part.replaces or part.table)
        found = find_relation(self._connection, name)
        if found is None:
            raise TargetError(f"partition {name} is gone", hint="Find out who has dropped it, and run again.")
        return self._pattern(name, found)

    def _name(self, partition: str) -> TableName:
        return TableName(self._schema, staging_name(self._run_id, self._target, partition))

    def _refuse_unfilled_identity(self, pattern: Relation) -> None:
        filled = {column.target for column in self._plan.columns}
        for sequence in sequences_of(self._connection, pattern.oid):
            if sequence.is_identity and sequence.column not in filled:
                raise TargetError(
                    f"table {self._target} cannot number `{sequence.column}` of rows that come as partitions",
                    hint="Give the column a source column, or use `load: single`.",
                )

    def _continue_numbers(self, table: TableName, pattern: _Pattern) -> list[str]:
        """A copied identity starts anew; these statements let it go on where the table's own stands."""
        return [
            "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence("
            f"{literal(table.sql)}, {literal(sequence.column)}), last_value, is_called) FROM {sequence.name.sql}"
            for sequence in sequences_of(self._connection, pattern.relation.oid)
            if sequence.is_identity
        ]


def replaces_all(plan: DataFlowPlan) -> bool:
    """True if all partitions that exist go: not only some of them are loaded anew."""
    parts = plan.partitioning.partitions if plan.partitioning else ()
    return plan.target == "replace" and not any(part.action == "exchange" for part in parts)


def planned_units(run_id: str, plan: DataFlowPlan, hidden_schema: str, target_oid: str | None) -> list[Unit]:
    """The units of a plan, for the ledger. `target_oid`: of a table that exists; its hash is its own."""
    target = TableName(plan.schema or "", plan.table)
    parts = {part.name: part for part in plan.partitioning.partitions} if plan.partitioning else {}
    units = []
    for planned in plan.staging:
        name = None if plan.switch == "none" else staging_name(run_id, target, planned.partition)
        part = parts.get(planned.partition)
        takes: object = None if part is None else _takes(part.rule, target_oid)
        if planned.partition == ALL_PARTITIONS:
            takes = {name: _takes(part.rule, target_oid) for name, part in parts.items()}
        text = None if takes is None else json.dumps(takes, ensure_ascii=False, sort_keys=True)
        units.append(Unit(planned.partition, name, text))
    return units


def _takes(rule: PartitionRule, target_oid: str | None) -> dict[str, object]:
    hashed = {"table_oid": target_oid} if isinstance(rule, HashRule) and target_oid is not None else {}
    return {**rule.to_dict(), **hashed}
