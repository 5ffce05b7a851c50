"""Moves the rows of a hidden table into one that exists, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.errors import TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import find_relation
from headrace.targets.postgres.connection import Connection, rows_done, sql
from headrace.targets.postgres.names import TableName

CHANGED_MEANWHILE: Final = "Run again, and change the table before or after the load."


def move(connection: Connection, plan: DataFlowPlan, hidden: TableName, table: TableName) -> int:
    """How many. Raises TargetError if the table got other types meanwhile: the server would round, and say nothing."""
    done = connection.query(ddl.move_rows(table, hidden, plan))
    refuse_other_types(connection, plan, hidden, table)
    return rows_done(done.tag)


def refuse_other_types(connection: Connection, plan: DataFlowPlan, hidden: TableName, table: TableName) -> None:
    """Behind the INSERT, whose lock keeps the types of the table as they are until the transaction ends."""
    was, now = (_types(connection, name) for name in (hidden, table))
    names = [column.target for column in plan.columns]
    changed = [
        f"column {name}, now {now.get(name)}, was {was.get(name)}" for name in names if now.get(name) != was.get(name)
    ]
    if changed:
        raise TargetError(
            f"table {table} was changed while it was loaded", found="\n".join(changed), hint=CHANGED_MEANWHILE
        )


def _types(connection: Connection, table: TableName) -> Mapping[str | None, str | None]:
    relation = find_relation(connection, table)
    rows = [] if relation is None else connection.query(sql("signature"), (relation.oid,)).rows
    return {row[0]: row[1] for row in rows}
