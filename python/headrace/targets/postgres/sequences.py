"""Sequences that belong to the columns of a table: of identity columns, and of `serial` ones."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.targets.postgres.connection import Connection, sql
from headrace.targets.postgres.names import TableName, literal, quote


@dataclass(frozen=True)
class OwnedSequence:
    """The sequence `name` gives the numbers of `column`. Only that of an identity goes and comes with its table."""

    column: str
    name: TableName
    is_identity: bool

    def go_on_from(self, other: OwnedSequence) -> str:
        """The statement that lets this sequence, a copy of `other`, go on there if that one is further by now."""
        return (
            f"SELECT pg_catalog.setval({literal(self.name.sql)}::regclass, other.last_value, other.is_called)\n"
            f"FROM {self.name.sql} AS own, {other.name.sql} AS other, pg_catalog.pg_sequence AS kind\n"
            f"WHERE kind.seqrelid = {literal(self.name.sql)}::regclass::oid\n"
            "  AND (other.last_value::numeric * pg_catalog.sign(kind.seqincrement::numeric), other.is_called)\n"
            "    > (own.last_value::numeric * pg_catalog.sign(kind.seqincrement::numeric), own.is_called)"
        )

    def give_to(self, table: TableName) -> str:
        """The statement that lets it belong to the same column of another table."""
        return f"ALTER SEQUENCE {self.name.sql} OWNED BY {table.sql}.{quote(self.column)}"


def sequences_of(connection: Connection, oid: str) -> tuple[OwnedSequence, ...]:
    """The sequences of a table in column order."""
    rows = connection.query(sql("sequences"), (oid,)).rows
    return tuple(
        OwnedSequence(column or "", TableName(schema or "", name or ""), is_identity == "t")
        for column, schema, name, is_identity in rows
    )
