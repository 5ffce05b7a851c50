"""Which keys are in no list of a partitioned table that compares them in a way of its own: the server is asked."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.targets.postgres.catalog import find_relation
from headrace.targets.postgres.connection import Connection, array, one_row, sql
from headrace.targets.postgres.names import TableName


def unlisted_keys(
    connection: Connection, table: TableName, keys: Sequence[str], values: Sequence[str]
) -> Sequence[str] | None:
    """Those of the keys that equal none of the values, in their order; None if the key has no operator that compares
    two values of one type.
    """
    relation = find_relation(connection, table)
    equality = None if relation is None else one_row(connection, sql("key_equality"), (relation.oid,))
    if equality is None:
        return None
    type_name, operator, collation = equality
    text = sql("unlisted_keys").format(type=type_name, operator=operator, collation=collation or "")
    rows = connection.query(text, (array(keys), array(values))).rows
    return [keys[int(place or 0) - 1] for (place,) in rows]
