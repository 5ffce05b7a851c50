"""What tables and queries give to lookups: asked by a transaction that only reads, without executing them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from headrace.errors import HeadraceError
from headrace.model import DatabaseQuery, LookupTable, TableColumn
from headrace.targets.postgres.catalog import find_relation
from headrace.targets.postgres.connection import Connection, array, one_row, snapshot, sql
from headrace.targets.postgres.failures import statement_failure
from headrace.targets.postgres.lookup_rows import (
    BEGIN_LOOKUP,
    LEAST_PAGES,
    Connect,
    ResultColumn,
    command_of,
    described_columns,
    select,
)
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.sql_values import written
from headrace.targets.postgres.types import ServerType, readable_type
from headrace.targets.sql import Command, interrupted

_NO_ROWS: Final = frozenset({"sequence", "composite type", "index"})
# Of types that no column of rows has, those whose name alone does not say why.
_WORDS: Final = {"numeric": "numeric without precision and scale", "bpchar": "bpchar without a length"}


def lookup_table(connection: Connection, table: TableName) -> LookupTable | None:
    """What can be read by that name. Raises what the server says, also if the user may not read it."""
    with snapshot(connection):
        relation = find_relation(connection, table)
        if relation is None or relation.kind in _NO_ROWS:
            return None
        rows = connection.query(sql("columns"), (relation.oid,)).rows
        is_table = relation.kind == "table"
        columns = []
        for name, native, receive, modifier, nullable, *_, compares in rows:
            found = readable_type(receive, int(modifier or -1))
            # Nobody holds other tables to it.
            may_be_null = nullable == "t" or not is_table
            columns.append(_column(name or "", found, native or "", may_be_null, compares))
        about = _estimated_rows(connection, Command(select([column.name for column in columns], table)))
        plain, pages = one_row(connection, sql("is_plain"), (relation.oid,)) or [None, None]
        parts = max(1, int(pages or 0) // LEAST_PAGES) if plain == "t" else 1
        return LookupTable(tuple(columns), about if is_table else None, is_plain=plain == "t", parts=parts)


def lookup_query(connect: Connect, query: DatabaseQuery, is_cancelled: Callable[[], bool]) -> LookupTable:
    """What a query gives. Raises SqlError if the server refuses it."""
    connection = connect()
    try:
        with interrupted(is_cancelled, connection.cancel):
            connection.execute(BEGIN_LOOKUP)
            command = command_of(query)
            described = described_columns(connection, command.text)
            # The server finds errors that nobody sees before it plans the query, such as a missing right.
            _estimated_rows(connection, command)
            compared = _compared(connection, command, described)
    except HeadraceError as error:
        raise statement_failure(error) from error
    finally:
        connection.close()
    columns = (_column(own.name, own.type, own.native, True, compared.get(own.name)) for own in described)
    return LookupTable(tuple(columns), None)


def _compared(connection: Connection, command: Command, described: Sequence[ResultColumn]) -> dict[str, str]:
    """How the server compares columns of a query that it does not compare by their bytes. Nothing is executed: the
    query is joined to a row on a condition that is never true.
    """
    found = {own.name: "type citext" for own in described if own.receive == "citextrecv"}
    all_names = [own.name for own in described]
    names = [own.name for own in described if own.is_collatable and all_names.count(own.name) == 1]
    names = [name for name in names if name not in found]
    if not names:
        return found
    asked = ", ".join(f"pg_catalog.pg_collation_for(q.{quote(name)})" for name in names)
    text = f"SELECT {asked} FROM (SELECT) AS one LEFT JOIN ({command.text}\n) AS q ON false"
    collations = one_row(connection, text, [written(value) for value in command.values]) or []
    rows = connection.query(sql("comparisons"), (array(collations),)).rows
    return found | {name: own for name, (own,) in zip(names, rows, strict=True) if own is not None}


def _estimated_rows(connection: Connection, command: Command) -> int | None:
    """About how many rows the server expects."""
    values = [written(value) for value in command.values]
    lines = connection.query(f"EXPLAIN (FORMAT JSON) {command.text}", values).rows
    with suppress(ValueError, LookupError, TypeError):
        return int(json.loads("\n".join(row[0] or "" for row in lines))[0]["Plan"]["Plan Rows"])
    return None


def _column(name: str, found: ServerType | None, native: str, nullable: bool, compares: str | None) -> TableColumn:
    shown = native if found is not None else _WORDS.get(native, native)
    return TableColumn(name, None if found is None else found.type, shown, nullable, compares)
