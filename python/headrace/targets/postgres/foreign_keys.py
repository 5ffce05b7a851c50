"""Foreign keys of a table to others: new partitions get them before they are attached, so that nobody waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.targets.postgres.connection import Connection, sql
from headrace.targets.postgres.names import TableName, quote


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key. `definition`: what follows its name, in the words of the server; `refers_to`: the other table
    `may_lock`: whether the user may.
    """

    name: str
    definition: str
    refers_to: TableName
    may_lock: bool

    def create(self, table: TableName) -> str:
        """The statement that gives it to another table. Names of constraints are those of their table alone."""
        return f"ALTER TABLE {table.sql} ADD CONSTRAINT {quote(self.name)} {self.definition}"


def foreign_keys_of(connection: Connection, oid: str) -> tuple[ForeignKey, ...]:
    """Those of a table, by the tables to which they refer."""
    return tuple(
        ForeignKey(name or "", definition or "", TableName(schema or "", table or ""), may_lock == "t")
        for name, definition, schema, table, may_lock in connection.query(sql("foreign_keys"), (oid,)).rows
    )
