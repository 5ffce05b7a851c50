"""Evaluate expression settings: DuckDB SQL over the parameters, without access to files or network.

DuckDB is imported when the first expression is evaluated, so that packages without expressions load fast.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from headrace.model.duckdb_instance import new_instance
from headrace.model.scope import Scope, is_unknown, usable_names

if TYPE_CHECKING:
    import duckdb

# No files, no network, no extensions, and no setting that an expression could change.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "1",
    "memory_limit": "100MB",
}


# An expression computes a value; whatever takes longer belongs into an `sql` task.
MAXIMUM_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 0.5
_WORD: Final = re.compile(r"\w+")


class ExpressionError(ValueError):
    """The expression cannot be evaluated; the text is DuckDB's own message or says what the result lacks."""


class ExpressionEvaluator:
    """One in-memory database for all expressions of a package."""

    def __init__(self) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.Lock()
        self._watch: _Watch | None = None
        # By statement: the same expressions stand in every turn of a loop, and are asked for more than once.
        self._types: dict[str, str] = {}

    def close(self) -> None:
        """Release the database, if there was an expression."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._types.clear()

    def reserved_words(self) -> frozenset[str]:
        """Words that SQL allows as names in double quotes only, in small letters."""
        if self._connection is None:
            return frozenset()
        sql = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
        return frozenset(str(row[0]) for row in self._connection.execute(sql).fetchall())

    def evaluate(self, expression: str, scope: Scope) -> object:
        """The value of an expression; names are columns of one row. Raises ExpressionError."""
        import duckdb

        try:
            return self._evaluated(expression, used_names(expression, scope))
        except ExpressionError as error:
            if not isinstance(error.__cause__, duckdb.BinderException):
                raise
        # The message about a name that does not exist shows those that do.
        return self._evaluated(expression, scope)

    def _evaluated(self, expression: str, scope: Scope) -> object:
        import duckdb

        sql, bound = _statement(expression, scope)
        with self._lock:
            try:
                connection = self._opened()
                _require_one(connection, sql)
                with self._limited(connection):
                    cursor = connection.execute(sql, bound or None)
                columns = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchmany(2)
            except duckdb.Error as error:
                raise ExpressionError(_message_of(error)) from error
        # Closing the parenthesis early would make another statement out of the expression.
        if columns != ["value"] or len(rows) != 1:
            raise ExpressionError("the text is not one expression")
        return _exact(rows[0][0])

    def type_of(self, expression: str, scope: Scope) -> str:
        """DuckDB type of an expression whose names have types, but not all of them values; nothing is executed. Raises
        ExpressionError.
        """
        import duckdb

        try:
            return self._type_of(expression, used_names(expression, scope))
        except ExpressionError as error:
            if not isinstance(error.__cause__, duckdb.BinderException):
                raise
        return self._type_of(expression, scope)

    def _type_of(self, expression: str, scope: Scope) -> str:
        import duckdb

        columns = [f'CAST(NULL AS {scope.sql_type(name)}) AS "{name}"' for name in _usable(scope)]
        for name, members, sql_type in (("given", scope.given, "BOOLEAN"), ("system", scope.system, "VARCHAR")):
            if members:
                fields = ", ".join(f'"{member}" {sql_type}' for member in members)
                columns.append(f'CAST(NULL AS STRUCT({fields})) AS "{name}"')
        source = f" FROM (SELECT {', '.join(columns)}) AS names" if columns else ""
        statement = f"DESCRIBE SELECT (\n{expression}\n) AS value{source}"
        with self._lock:
            if statement in self._types:
                return self._types[statement]
            try:
                connection = self._opened()
                _require_one(connection, statement)
                rows = connection.execute(statement).fetchall()
            except duckdb.Error as error:
                raise ExpressionError(_message_of(error)) from error
        if len(rows) != 1 or rows[0][0] != "value":
            raise ExpressionError("the text is not one expression")
        found = self._types[statement] = str(rows[0][1]).strip('"')
        return found

    def _limited(self, connection: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
        if self._watch is None:
            self._watch = _Watch(connection)
        return self._watch.limited()

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = new_instance(_CONFIG)
            connection.execute("SET lock_configuration = true")
            self._connection = connection
        return self._connection


def _require_one(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Closing the parenthesis early would make several statements out of the expression."""
    if len(connection.extract_statements(sql)) != 1:
        raise ExpressionError("the text is not one expression")


class _Watch:
    """Interrupts an expression that takes too long: whoever waits for it can do nothing else meanwhile."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._deadline: float | None = None
        self._is_over = threading.Event()
        threading.Thread(target=self._watch, name="time limit of expressions", daemon=True).start()

    def close(self) -> None:
        """Ends the thread."""
        self._is_over.set()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Inside, one expression is evaluated."""
        self._deadline = time.monotonic() + MAXIMUM_SECONDS
        try:
            yield
        finally:
            self._deadline = None

    def _watch(self) -> None:
        while not self._is_over.wait(_WATCH_SECONDS):
            deadline = self._deadline
            if deadline is not None and time.monotonic() > deadline:
                self._connection.interrupt()


def used_names(expression: str, scope: Scope) -> Scope:
    """The scope with only those names that may stand in the expression: the fewer, the faster."""
    words = {word.lower() for word in _WORD.findall(expression)}
    return replace(
        scope,
        values={name: value for name, value in scope.values.items() if name.lower() in words},
        given=scope.given if "given" in words else {},
        system=scope.system if "system" in words else {},
    )


def _usable(scope: Scope) -> list[str]:
    """Names whose type is known."""
    return [name for name in usable_names(scope) if scope.has_sql_type(name)]


def _statement(expression: str, scope: Scope) -> tuple[str, dict[str, object]]:
    """The query of an expression, and the values bound to it."""
    columns = []
    bound: dict[str, object] = {}
    structs = {"given": (scope.given, "BOOLEAN"), "system": (scope.system, "VARCHAR")}
    for number, name in enumerate(_usable(scope)):
        value = scope.values[name]
        # Only what the expression does not use has no value: see `BindingLeaves.expression`.
        bound[f"headrace_{number}"] = None if is_unknown(value) else value
        columns.append(f'CAST($headrace_{number} AS {scope.sql_type(name)}) AS "{name}"')
    for name, (members, sql_type) in structs.items():
        if members:
            bound[f"headrace_{name}"] = {key: None if is_unknown(member) else member for key, member in members.items()}
            fields = ", ".join(f'"{member}" {sql_type}' for member in members)
            columns.append(f'CAST($headrace_{name} AS STRUCT({fields})) AS "{name}"')
    source = f" FROM (SELECT {', '.join(columns)}) AS names" if columns else ""
    # The line breaks end a comment at the end of the expression.
    return f"SELECT (\n{expression}\n) AS value{source}", bound


def _message_of(error: Exception) -> str:
    """DuckDB's message without the excerpt of our statement that follows it."""
    if type(error).__name__ == "InterruptException":
        return f"it takes longer than {MAXIMUM_SECONDS:g} seconds: compute it in an `sql` task"
    return str(error).split("\n\nLINE ")[0].strip()


def _exact(value: object) -> object:
    """Binary floats become the decimal number that they print as; settings hold no floats."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError(f"the result is {value}, which is not a number")
        return Decimal(repr(value))
    return value
