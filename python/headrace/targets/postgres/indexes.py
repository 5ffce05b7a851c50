"""Indexes and constraints of an existing table, made anew on the hidden table that takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headrace.errors import InternalError
from headrace.targets.postgres.connection import Connection, sql
from headrace.targets.postgres.ddl import WHERE_THE_PATTERN_IS
from headrace.targets.postgres.names import TableName, quote, short_name


@dataclass(frozen=True)
class Index:
    """An index of the old table. `definition`: what follows its name and table, in the server's own words.

    `columns` and `label`: what the server would make a name of.
    """

    name: str
    is_constraint: bool
    is_unique: bool
    definition: str
    columns: str = field(default="", compare=False)
    label: str = field(default="idx", compare=False)

    @property
    def kind(self) -> str:
        """What it is, for messages."""
        return "constraint" if self.is_constraint else "index"

    def create(self, table: TableName, name: str) -> str:
        """The statement that makes it on `table`."""
        text = f"CREATE {'UNIQUE ' if self.is_unique else ''}INDEX {quote(name)} ON {table.sql}{self.definition}"
        if self.is_constraint:
            text = f"ALTER TABLE {table.sql} ADD CONSTRAINT {quote(name)} {self.definition}"
        return f"{WHERE_THE_PATTERN_IS};\n{text}"

    def rename(self, table: TableName, old: str, new: str) -> str:
        """The statement that renames it, once `table` is where it belongs."""
        if self.is_constraint:
            return f"ALTER TABLE {table.sql} RENAME CONSTRAINT {quote(old)} TO {quote(new)}"
        return f"ALTER INDEX {quote(table.schema)}.{quote(old)} RENAME TO {quote(new)}"


def indexes_of(connection: Connection, oid: str) -> tuple[Index, ...]:
    """The indexes of a table, the primary key first. Raises InternalError for one the server describes otherwise."""
    found = []
    for name, is_constraint, is_unique, definition, columns, label in connection.query(sql("rebuild"), (oid,)).rows:
        if definition is None:
            raise InternalError(f"the definition of index {name} is written in an unknown way")
        found.append(Index(name or "", is_constraint == "t", is_unique == "t", definition, columns or "", label or ""))
    return tuple(found)


def create_indexes(indexes: Sequence[Index], table: TableName) -> list[str]:
    """The statements that make them on a hidden table."""
    return [index.create(table, hidden_index_name(table, number)) for number, index in enumerate(indexes, start=1)]


def built(indexes: Sequence[Index], table: TableName) -> dict[str, Index]:
    """By name what `create_indexes` makes of them, to be compared with `built_on`."""
    names = [hidden_index_name(table, number) for number in range(1, len(indexes) + 1)]
    return {name: replace(index, name=name) for name, index in zip(names, indexes, strict=True)}


def built_on(connection: Connection, oid: str) -> dict[str, Index]:
    """The indexes of a table by name."""
    return {index.name: index for index in indexes_of(connection, oid)}


def hidden_index_name(table: TableName, number: int) -> str:
    """Name of the `number`th index while its table is hidden: unique in the schema, because the table's name is."""
    return short_name(table.name, f"_i{number}")
