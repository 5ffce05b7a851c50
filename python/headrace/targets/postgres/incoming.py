"""The table that becomes a partition: what keeps it from that, and what it is given before anybody is locked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.errors import HeadraceError, TargetError
from headrace.targets.partition_exchange import other_columns, row_outside, row_refused
from headrace.targets.postgres.catalog import Relation, names_in_schema
from headrace.targets.postgres.connection import Connection, one_row, one_value, sql, texts, transaction
from headrace.targets.postgres.ddl import BOUNDS_CONSTRAINT
from headrace.targets.postgres.failures import sqlstate
from headrace.targets.postgres.foreign_keys import foreign_keys_of
from headrace.targets.postgres.index_names import server_name
from headrace.targets.postgres.indexes import Index, indexes_of
from headrace.targets.postgres.names import TableName, quote

_NULL_VALUE: Final = "23502"
_CHECK_VIOLATION: Final = "23514"
_SHOWN_KEY_CHARACTERS: Final = 200
_CLEAN_UP_WAIT: Final = "SET LOCAL lock_timeout = '1s'"


@dataclass(frozen=True)
class Gift:
    """What the incoming table lacks: its name for people, and the statement that makes it. `broken_by`: a condition of
    rows that are in its way; None if it does not look at single rows.
    """

    name: str
    statement: str
    broken_by: str | None = None


class Incoming:
    """`pattern`: the partitioned table; `old`: the partition whose place it takes, if it takes one."""

    def __init__(
        self,
        connection: Connection,
        table: TableName,
        relation: Relation,
        pattern: tuple[TableName, Relation],
        partition: TableName,
        old: Relation | None,
    ) -> None:
        self._connection = connection
        self.table = table
        self.relation = relation
        self._pattern, self._pattern_relation = pattern
        self._partition = partition
        self._old = old

    def check(self) -> None:
        """Raises TargetError for a table that cannot become a partition."""
        if self.relation.kind != "table" or self.relation.partitioned:
            raise TargetError(
                f"{self.table} cannot become a partition of {self._pattern}",
                found="a partitioned table" if self.relation.partitioned else f"a {self.relation.kind}",
                expected="a plain table",
            )
        if not self.relation.is_owner:
            raise TargetError(
                f"the user is not the owner of {self.table}, which is to become a partition",
                found=f"it belongs to {self.relation.owner}",
                hint=f"Run as a member of role {self.relation.owner}.",
            )
        in_the_way = texts(self._connection, sql("incoming"), (self.relation.oid,))
        if in_the_way:
            raise TargetError(
                f"table {self.table} cannot become a partition of {self._pattern}",
                found=", ".join(in_the_way),
                hint="Remove what stands in the way: it would mean something else behind the exchange.",
            )
        differences = [*self._other_columns(), *self._other_rules()]
        if differences:
            like = f"CREATE TABLE ... (LIKE {self._pattern.sql})"
            raise other_columns(str(self.table), str(self._pattern), differences, like)

    def give_missing(self, keys: Sequence[str] | None) -> tuple[str, ...]:
        """Makes what a partition needs and this table lacks, each in a transaction of its own; what was made. `keys`:
        the columns of the key; None for an expression. Raises TargetError with the first row that is in its way.
        """
        missing = self.missing()
        for gift in missing:
            try:
                with transaction(self._connection):
                    self._connection.execute(gift.statement)
            except HeadraceError as error:
                if gift.broken_by is None or sqlstate(error) not in (_NULL_VALUE, _CHECK_VIOLATION):
                    raise
                row = self._first_row(gift.broken_by, keys)
                raise row_refused(str(self.table), str(self._pattern), row, gift.name) from error
        return tuple(gift.name for gift in missing)

    def missing(self) -> Sequence[Gift]:
        """NOT NULL, CHECK constraints, indexes and foreign keys that ATTACH would else look for or make under its lock.
        Indexes of the old partition alone are among them.
        """
        return [*self._missing_not_null(), *self._missing_checks(), *self._missing_indexes(), *self._missing_keys()]

    def prove(self, condition: str, keys: Sequence[str] | None) -> None:
        """Adds the condition of the partition as a constraint, which spares ATTACH the scan. Readers and writers of the
        table go on meanwhile. `keys`: the columns of the key; None for an expression.

        Raises TargetError with the first row that does not fulfil it.
        """
        table, name = self.table.sql, quote(BOUNDS_CONSTRAINT)
        self.forget_proof()
        self._connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID")
        try:
            self._connection.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
        except HeadraceError as error:
            if sqlstate(error) != _CHECK_VIOLATION:
                raise
            raise row_outside(
                str(self.table), str(self._partition), self._first_row(f"({condition}) IS NOT TRUE", keys), condition
            ) from error

    def _first_row(self, condition: str, keys: Sequence[str] | None) -> str:
        """The key of the first row that fulfils a condition, as people read it."""
        return first_row(self._connection, self.table, condition, keys) or "a row that is gone by now"

    @property
    def has_proof(self) -> bool:
        """Whether the constraint of `prove` is there."""
        found = one_value(self._connection, sql("has_constraint"), (self.table.sql, BOUNDS_CONSTRAINT))
        return found is not None

    def forget_proof(self) -> None:
        """Takes the constraint of an earlier try away."""
        if self.has_proof:
            with transaction(self._connection):
                self._connection.execute(_CLEAN_UP_WAIT)
                self._connection.execute(f"ALTER TABLE {self.table.sql} DROP CONSTRAINT {quote(BOUNDS_CONSTRAINT)}")

    def _other_columns(self) -> list[str]:
        theirs = {row[0] or "": row for row in self._columns(self._pattern_relation)}
        ours = {row[0] or "": row for row in self._columns(self.relation)}
        differences = [f"no column {name}" for name in theirs if name not in ours]
        differences += [f"additional column {name}" for name in ours if name not in theirs]
        for name, (_, kind, collation, _, _, generated, value, *_) in theirs.items():
            own = ours.get(name)
            if own is None:
                continue
            if own[1] != kind:
                differences.append(f"column {name} is {own[1]} instead of {kind}")
            elif own[2] != collation:
                differences.append(f"column {name} has another collation")
            elif own[5] != generated or (generated and own[6] != value):
                differences.append(f"column {name} is not generated in the same way")
        return differences

    def _other_rules(self) -> list[str]:
        ours = self._checks(self.relation)
        return [
            f"constraint {name} is {ours[name]} instead of {text}"
            for name, text in self._checks(self._pattern_relation).items()
            if ours.get(name, text) != text
        ]

    def _missing_not_null(self) -> list[Gift]:
        theirs, ours = (
            {row[0] or "" for row in self._columns(relation) if row[3] == "t"}
            for relation in (self._pattern_relation, self.relation)
        )
        return [
            Gift(
                f"NOT NULL of {name}",
                f"ALTER TABLE {self.table.sql} ALTER COLUMN {quote(name)} SET NOT NULL",
                f"{quote(name)} IS NULL",
            )
            for name in sorted(theirs - ours)
        ]

    def _missing_checks(self) -> list[Gift]:
        ours = self._checks(self.relation)
        return [
            Gift(
                f"constraint {name}",
                f"ALTER TABLE {self.table.sql} ADD CONSTRAINT {quote(name)} {text}",
                f"NOT {text.removeprefix('CHECK ')}" if text.endswith(")") else None,
            )
            for name, text in self._checks(self._pattern_relation).items()
            if name not in ours
        ]

    def _missing_indexes(self) -> list[Gift]:
        there = {_unnamed(index) for index in indexes_of(self._connection, self.relation.oid)}
        patterns = [self._pattern_relation, *([] if self._old is None else [self._old])]
        wanted = {
            _unnamed(index): index for relation in patterns for index in indexes_of(self._connection, relation.oid)
        }
        taken: set[str] = set()
        if wanted.keys() - there:
            for schema in {self.table.schema, self._partition.schema}:
                taken |= names_in_schema(self._connection, schema)
        gifts = []
        for index in (index for unnamed, index in wanted.items() if unnamed not in there):
            name = server_name(self._partition.name, index.columns, index.label, taken)
            taken.add(name)
            gifts.append(Gift(f"{index.kind} {name}", index.create(self.table, name)))
        return gifts

    def _missing_keys(self) -> list[Gift]:
        there = {key.definition for key in foreign_keys_of(self._connection, self.relation.oid)}
        return [
            Gift(f"foreign key {key.name}", key.create(self.table))
            for key in foreign_keys_of(self._connection, self._pattern_relation.oid)
            if key.definition not in there
        ]

    def _columns(self, relation: Relation) -> list[list[str | None]]:
        return self._connection.query(sql("signature"), (relation.oid,)).rows

    def _checks(self, relation: Relation) -> dict[str, str]:
        rows = self._connection.query(sql("constraints"), (relation.oid,)).rows
        return {row[0] or "": row[1] or "" for row in rows if row[3] == "t" and row[0] != BOUNDS_CONSTRAINT}


def first_row(connection: Connection, table: TableName, condition: str, keys: Sequence[str] | None) -> str | None:
    """The key of the first row that fulfils a condition, as people read it; None if none does."""
    shown = (
        "candidate::pg_catalog.text" if keys is None else ", ".join(f"{quote(key)}::pg_catalog.text" for key in keys)
    )
    row = one_row(connection, f"SELECT {shown} FROM {table.sql} AS candidate WHERE {condition} LIMIT 1")
    if row is None:
        return None
    values = ["NULL" if value is None else value[:_SHOWN_KEY_CHARACTERS] for value in row]
    if keys is None:
        return values[0]
    return ", ".join(f"{key} = {value}" for key, value in zip(keys, values, strict=True))


def _unnamed(index: Index) -> Index:
    return replace(index, name="")
