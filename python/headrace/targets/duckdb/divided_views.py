"""What a view shows that a load has made: the tables of its partitions, kept in the ledger of the same file."""

from __future__ import annotations

import json
from collections.abc import Sequence

import duckdb

from headrace.planning import CatalogPartition, CatalogPartitioning, rule_from_dict
from headrace.targets.duckdb.connection import sql


def read_divided_view(connection: duckdb.DuckDBPyConnection, schema: str, view: str) -> CatalogPartitioning | None:
    """None for a view that no load has made, or that somebody has made anew."""
    if connection.execute(sql("divided_views_exist")).fetchone() is None:
        return None
    found = connection.execute(sql("divided_view"), {"schema": schema, "table": view}).fetchone()
    if found is None:
        return None
    strategy, column, members = found
    parts = [CatalogPartition(part["table"], rule_from_dict(part["rule"])) for part in json.loads(members)]
    return CatalogPartitioning(strategy, (column,), tuple(parts))


def keep_divided_view(
    connection: duckdb.DuckDBPyConnection,
    names: tuple[str, str],
    key: tuple[str, str],
    parts: Sequence[CatalogPartition],
) -> None:
    """Writes down the view as it is now, in the transaction that has made it. `names`: schema and view; `key`: strategy
    and column.
    """
    schema, view = names
    strategy, column = key
    members = [{"table": part.name, "rule": None if part.rule is None else part.rule.to_dict()} for part in parts]
    place = {"schema": schema, "table": view}
    connection.execute(sql("forget_view"), place)
    values = {**place, "strategy": strategy, "column": column, "members": json.dumps(members)}
    connection.execute(sql("keep_view"), values)
