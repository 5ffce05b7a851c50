"""Reads a table from the server's catalog: what a plan must know before row 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.errors import TargetError
from headrace.planning import (
    CatalogColumn,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    QueryColumn,
)
from headrace.targets.postgres.bounds import read_bound
from headrace.targets.postgres.connection import Connection, Row, one_row, one_value, snapshot, sql, texts
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.types import ServerType, server_type

_ALTERS: Final = {"jsonb": "keeps the last of repeated keys, and neither blanks nor the order of keys"}


@dataclass(frozen=True)
class Relation:
    """A table, a view or whatever else has the name."""

    oid: str
    kind: str
    partitioned: bool
    owner: str
    is_owner: bool


def find_relation(connection: Connection, table: TableName) -> Relation | None:
    """What has this name; None if nothing has."""
    row = one_row(connection, sql("relation"), (table.schema, table.name))
    if row is None:
        return None
    return Relation(_text(row[0]), _text(row[1]), row[2] == "t", _text(row[3]), row[4] == "t")


def read_table(connection: Connection, table: TableName) -> CatalogTable | None:
    """The table or view as it is now, None if there is none and one can be made.

    Raises TargetError if the schema does not exist, or if the user lacks a right without which no load can work.
    """
    with snapshot(connection):
        relation = find_relation(connection, table)
        if relation is None:
            _require_schema(connection, table)
            return None
        return _described(connection, table, relation)


def column_types(connection: Connection, oid: str) -> dict[str, ServerType]:
    """How the columns of a table are filled, by name; columns that cannot be filled are left out."""
    rows = connection.query(sql("columns"), (oid,)).rows
    found = {_text(row[0]): _server_type(row) for row in rows}
    return {name: column for name, column in found.items() if column is not None}


def query_columns(connection: Connection, oid: str) -> list[QueryColumn]:
    """The columns of a table that was made of a query."""
    found = [_column(row) for row in connection.query(sql("columns"), (oid,)).rows]
    return [QueryColumn(column.name, column.native_type, column.type) for column in found]


def names_in_schema(connection: Connection, schema: str) -> frozenset[str]:
    """Names that a new table of the schema cannot have."""
    return frozenset(texts(connection, sql("names_in_schema"), (schema,)))


def _described(connection: Connection, table: TableName, relation: Relation) -> CatalogTable:
    oid = (relation.oid,)
    columns = tuple(_column(row) for row in connection.query(sql("columns"), oid).rows)
    if relation.kind != "table":
        shown = texts(connection, sql("view_tables"), oid) if relation.kind == "view" else ()
        hanging = texts(connection, sql("hanging_on_members"), oid) if shown else ()
        return CatalogTable(
            table.schema, table.name, columns, relation.kind, prevents_replace=hanging, view_tables=shown
        )
    may_insert, may_select, may_truncate = one_row(connection, sql("rights"), oid) or ["f", "f", "f"]
    if may_insert != "t":
        raise TargetError(
            f"the user may not insert rows into table {table}",
            found=f"it belongs to {relation.owner}",
            hint=f"Ask its owner: GRANT SELECT, INSERT, TRUNCATE ON {table.sql} TO the user of the connection",
        )
    hanging = ("its partitions",) if relation.partitioned else texts(connection, sql("hanging"), oid)
    missing = [right for right, has in (("SELECT", may_select), ("TRUNCATE", may_truncate)) if has != "t"]
    prevents_replace = () if relation.is_owner else tuple(f"the missing right to {right}" for right in missing)
    partitioning = None
    if relation.partitioned:
        hanging_on = [(_text(name), part) for name, part in connection.query(sql("hanging_on_partitions"), oid).rows]
        partitioning = _partitioning(connection, relation.oid, hanging_on)
        prevents_replace += tuple(dict.fromkeys(name for name, _ in hanging_on))
    else:
        children = texts(connection, sql("children"), oid)
        prevents_replace += tuple(f"table {name}, which inherits from it and would be emptied too" for name in children)
    return CatalogTable(
        schema=table.schema,
        name=table.name,
        columns=columns,
        kind=relation.kind,
        indexes=texts(connection, sql("indexes"), oid),
        referenced_by=texts(connection, sql("referenced_by"), oid),
        prevents_rename=hanging,
        prevents_replace=prevents_replace,
        checks=texts(connection, sql("checks"), oid),
        triggers=texts(connection, sql("triggers"), oid),
        partitioning=partitioning,
    )


def _column(row: Row) -> CatalogColumn:
    name, native, _, _, nullable, has_default, generated, identity, *_ = row
    found = _server_type(row)
    return CatalogColumn(
        name=_text(name),
        type=None if found is None else found.type,
        native_type=_text(native),
        nullable=nullable == "t",
        has_default=has_default == "t" or identity == "t",
        generated=generated == "t",
        identity=identity == "t",
        alters=_ALTERS.get(found.form) if found else None,
    )


def _server_type(row: Row) -> ServerType | None:
    return server_type(row[2], int(row[3] or -1))


def own_comparison(connection: Connection, oid: str) -> str | None:
    """What compares the keys of a partitioned table, if that is not what the server has for everybody."""
    return one_value(connection, sql("key_comparison"), (oid,)) or None


def _partitioning(
    connection: Connection, oid: str, hanging_on: Sequence[tuple[str, str | None]]
) -> CatalogPartitioning:
    """`hanging_on`: what hangs on partitions, and their oids, None for all."""
    keys = connection.query(sql("partitioning"), (oid,)).rows
    partitions = connection.query(sql("partitions"), (oid,)).rows
    return CatalogPartitioning(
        strategy=_text(keys[0][0]),
        key=tuple(_text(row[1]) for row in keys),
        partitions=tuple(
            CatalogPartition(
                _text(name), read_bound(_text(bound)), tuple(text for text, part in hanging_on if part in (own, None))
            )
            for _, name, bound, own in partitions
        ),
        comparison=own_comparison(connection, oid),
    )


def _require_schema(connection: Connection, table: TableName) -> None:
    rights = one_row(connection, sql("schema_rights"), (table.schema,))
    if rights is None:
        # Schemas are the administrator's; they are not created silently.
        raise TargetError(
            f"the database has no schema `{table.schema}`",
            expected=f"one of: {', '.join(texts(connection, sql('schemas')))}",
            hint=f"Create it first: CREATE SCHEMA {quote(table.schema)}",
        )
    if rights != ["t", "t"]:
        raise TargetError(
            f"the user may not create table {table}",
            found=f"no right to create tables in schema `{table.schema}`",
            hint=f"Ask its owner: GRANT USAGE, CREATE ON SCHEMA {quote(table.schema)} TO the user of the connection",
        )


def _text(value: str | None) -> str:
    return value or ""
