"""Evaluate expression settings: DuckDB SQL over the parameters, without access to files or network.

DuckDB is imported when the first expression is evaluated, so that packages without expressions load fast.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from headrace.model.scope import Scope

if TYPE_CHECKING:
    import duckdb

# No files, no network, no extensions, and no setting that an expression could change.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
    "threads": "1",
    "memory_limit": "100MB",
}


class ExpressionError(ValueError):
    """The expression cannot be evaluated; the text is DuckDB's own message or says what the result lacks."""


class ExpressionEvaluator:
    """One in-memory database for all expressions of a package."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """Release the database, if there was an expression."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reserved_words(self) -> frozenset[str]:
        """Words that SQL allows as names in double quotes only, in small letters."""
        if self._connection is None:
            return frozenset()
        sql = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
        return frozenset(str(row[0]) for row in self._connection.execute(sql).fetchall())

    def evaluate(self, expression: str, scope: Scope) -> object:
        """The value of an expression; names are columns of one row. Raises ExpressionError."""
        import duckdb

        if self._connection is None:
            self._connection = duckdb.connect(":memory:", config=_CONFIG)
        sql, bound = _statement(expression, scope)
        try:
            cursor = self._connection.execute(sql, bound or None)
            columns = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchmany(2)
        except duckdb.Error as error:
            raise ExpressionError(_message_of(error)) from error
        # Closing the parenthesis early would make another statement out of the expression.
        if columns != ["value"] or len(rows) != 1:
            raise ExpressionError("the text is not one expression")
        return _exact(rows[0][0])


def _statement(expression: str, scope: Scope) -> tuple[str, dict[str, object]]:
    """The query of an expression, and the values bound to it."""
    columns = []
    bound: dict[str, object] = {}
    structs = {"given": (scope.given, "BOOLEAN"), "system": (scope.system, "VARCHAR")}
    for number, (name, value) in enumerate(scope.values.items()):
        bound[f"headrace_{number}"] = value
        columns.append(f'CAST($headrace_{number} AS {scope.sql_type(name)}) AS "{name}"')
    for name, (members, sql_type) in structs.items():
        if members:
            bound[f"headrace_{name}"] = dict(members)
            fields = ", ".join(f'"{member}" {sql_type}' for member in members)
            columns.append(f'CAST($headrace_{name} AS STRUCT({fields})) AS "{name}"')
    source = f" FROM (SELECT {', '.join(columns)}) AS names" if columns else ""
    # The line breaks end a comment at the end of the expression.
    return f"SELECT (\n{expression}\n) AS value{source}", bound


def _message_of(error: Exception) -> str:
    """DuckDB's message without the excerpt of our statement that follows it."""
    return str(error).split("\n\nLINE ")[0].strip()


def _exact(value: object) -> object:
    """Binary floats become the decimal number that they print as; settings hold no floats."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(f"the result is {value}, which is not a number")
        return Decimal(repr(value))
    return value
