"""Tables of a query that nobody has analyzed: the server plans as if it knew them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.planning import counted
from headrace.targets.postgres.connection import Connection, array, one_value, sql
from headrace.targets.postgres.failures import statement_failure
from headrace.targets.postgres.names import TableName
from headrace.targets.postgres.row_wise import Node
from headrace.targets.postgres.sql_values import written
from headrace.targets.sql import Command

_MOST_NAMED: Final = 4
_NOTE: Final = (
    "no statistics of {}: the server guesses how many rows they have, and may take slow joins; ANALYZE them before, or "
    "load them with `analyze: true`"
)


def notes_on_statistics(connection: Connection, query: Command) -> Sequence[str]:
    """What to say of tables of 1 MB and more that `query` reads without statistics. Raises SqlError if the server
    refuses the query.
    """
    try:
        found = one_value(
            connection, f"EXPLAIN (VERBOSE, FORMAT JSON)\n{query.text}", [written(value) for value in query.values]
        )
        plans: list[dict[str, Any]] = json.loads(found or "[]")
        tables = sorted({table for plan in plans for table in _tables(plan["Plan"])})
        schemas, names = [schema for schema, _ in tables], [name for _, name in tables]
        rows = connection.query(sql("unanalyzed"), (array(schemas), array(names))).rows
    except HeadraceError as error:
        raise statement_failure(error) from error
    unknown = [TableName(str(row[0]), str(row[1])) for row in rows]
    if not unknown:
        return ()
    shown = ", ".join(map(str, unknown[:_MOST_NAMED]))
    more = f" and {counted(len(unknown) - _MOST_NAMED, 'table')} more" if len(unknown) > _MOST_NAMED else ""
    return (_NOTE.format(f"{shown}{more}"),)


def _tables(plan: Node) -> Iterator[tuple[str, str]]:
    if "Relation Name" in plan:
        yield str(plan["Schema"]), str(plan["Relation Name"])
    for part in plan.get("Plans", ()):
        yield from _tables(part)
