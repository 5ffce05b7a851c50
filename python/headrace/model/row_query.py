"""Queries over single rows: described and rewritten before the run, and opened in an instance of DuckDB's own.

DuckDB is imported when the first one is described, so that packages without such queries load fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from headrace.model.data_type import DataType
from headrace.model.duckdb_types import described_type, native_type
from headrace.model.embedded_query import EmbeddedQuery, bare_database, columns_of, message_of
from headrace.model.native_casts import cast_of
from headrace.model.query_tree import ROW_NUMBER, Outputs, QueryTree, used_in, walk_query, with_rest
from headrace.model.row_query_error import RowQueryError, not_followed
from headrace.model.row_wise import DISABLED_OPTIMIZERS, STREAM_SCAN, TABLE_SCAN, check_row_wise
from headrace.model.suggest import show_name

if TYPE_CHECKING:
    import duckdb

# Enough to describe any query: nothing is executed.
_DESCRIBING_BYTES: Final = 100_000_000
_SETTINGS: Final = (f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS}'", "SET preserve_insertion_order = false")
# It stands for the rows when a query is described: no row is ever in it.
_STAND_IN: Final = "__headrace_stand_in"
_ROWS: Final = "__headrace_rows"
_PLACED: Final = "getvariable"
# They raise, or are what they are for the same arguments, whatever DuckDB says of them.
_HARMLESS: Final = frozenset({"error"})
# They tell the time, whatever DuckDB says of them; with so many arguments.
_TELL_TIME: Final = frozenset({("age", 1), ("current_localtime", 0), ("current_localtimestamp", 0)})
_LIKE_COLUMNS: Final = frozenset({"localtime", "localtimestamp", "current_time", "current_timestamp"})


@dataclass(frozen=True, slots=True)
class RowColumnType:
    """A column of the rows that a query reads."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class QueryOutput:
    """A column of a query. `origin`: the column of its rows that it is, None if it is computed."""

    name: str
    type: DataType
    origin: str | None


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query that every row of `input` goes through by itself. `columns`: those that it sees; `sql`: gives the
    computed columns, in their order, and behind them the number of the row; `divides`: it has divisions in floating
    point.
    """

    input: str
    columns: tuple[str, ...]
    query: EmbeddedQuery
    sql: str
    outputs: tuple[QueryOutput, ...]
    divides: bool = False


def described_rows(query: EmbeddedQuery, name: str, columns: Sequence[RowColumnType]) -> RowQuery:
    """The query over the rows `name` with these columns. Raises RowQueryError."""
    import duckdb

    try:
        with bare_database(query, _DESCRIBING_BYTES, _SETTINGS) as connection:
            return _described(connection, query, name, columns)
    except duckdb.CatalogException as error:
        hint = (
            f"The query sees `{name}`, constant tables and functions of DuckDB; a `lookup` finds rows of other tables."
        )
        raise RowQueryError("the query is refused", message_of(error), hint=hint) from error
    except duckdb.Error as error:
        raise RowQueryError("the query is refused", message_of(error)) from error


@contextmanager
def row_database(query: RowQuery, memory_bytes: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """An instance for the query, with its values."""
    with bare_database(query.query, memory_bytes, _SETTINGS, spills=False) as connection:
        yield connection


def prepared_rows(connection: duckdb.DuckDBPyConnection, query: RowQuery, rows: object) -> duckdb.DuckDBPyRelation:
    """The query over an object with `__arrow_c_stream__`, which is asked for its rows whenever the query is run.

    Raises RowQueryError if DuckDB would not let them pass one by one.
    """
    connection.register(_ROWS, rows)
    columns = ", ".join(map(quoted, (*query.columns, ROW_NUMBER)))
    connection.execute(f"CREATE TEMP VIEW {quoted(query.input)} AS SELECT {columns} FROM {_ROWS}")
    check_row_wise(connection, query.sql, STREAM_SCAN)
    return connection.sql(query.sql)


def _described(
    connection: duckdb.DuckDBPyConnection, query: EmbeddedQuery, name: str, columns: Sequence[RowColumnType]
) -> RowQuery:
    statement = tree_of(connection, query.text)
    tree = walk_query(statement, name, [column.name for column in columns])
    check_constant(connection, tree, columns)
    declared = ", ".join(f"{quoted(column.name)} {native_type(column.type)}" for column in columns)
    connection.execute(f"CREATE TABLE {_STAND_IN} ({declared}, {ROW_NUMBER} UINTEGER)")
    view = f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT * "
    connection.execute(f"{view} EXCLUDE ({ROW_NUMBER}) FROM {_STAND_IN}")
    found = columns_of(connection, query.text)
    if tree.tables:  # DuckDB knows it: it is one of DuckDB's own, which tell of the session
        raise RowQueryError(
            f"the query reads the table `{show_name(min(tree.tables))}`",
            expected=f"the rows of `{name}`, and constant tables beside them",
            hint="Look rows of other tables and files up with a `lookup`.",
        )
    check_row_wise(connection, query.text, TABLE_SCAN)
    connection.execute(f"{view} FROM {_STAND_IN}")
    text = _text_of(connection, statement)
    numbered = columns_of(connection, text)
    if numbered != [*found, (ROW_NUMBER, "UINTEGER")]:
        raise not_followed("columns that are chosen by a pattern, by a condition or by their places")
    outputs = outputs_of_query(found, tree.outputs, columns)
    computed = [f"c{place}" for place, own in enumerate(outputs) if own.origin is None]
    names = ", ".join([*(f"c{place}" for place in range(len(outputs))), ROW_NUMBER])
    sql = f"SELECT {', '.join([*computed, ROW_NUMBER])} FROM ({text}) AS headrace_result({names})"
    check_row_wise(connection, sql, TABLE_SCAN)
    return RowQuery(name, tuple(column.name for column in columns), query, sql, outputs, tree.divides)


def outputs_of_query(
    found: Sequence[tuple[str, str]], known: Outputs | None, columns: Sequence[RowColumnType]
) -> tuple[QueryOutput, ...]:
    """The columns of a query, of which DuckDB says name and type. Raises RowQueryError."""
    seen: dict[str, str] = {}
    for name, _ in found:
        other = seen.setdefault(name.lower(), name)
        if sum(own.lower() == name.lower() for own, _ in found) > 1:
            raise RowQueryError(
                f"two columns of the query are called `{show_name(other)}`",
                expected="each name once, in letters of any case",
                hint="Give one of them another name with AS, or leave one out with EXCLUDE.",
            )
    types = {column.name: column.type for column in columns}
    origins: list[str | None] = [None] * len(found)
    known = None if known is None else with_rest(known, len(found))
    if known is not None:
        origins = [origin for _, origin in known]
    outputs = []
    for (name, native), origin in zip(found, origins, strict=True):
        if origin is not None and native_type(types[origin]) == native:
            outputs.append(QueryOutput(name, types[origin], origin))
            continue
        own = described_type(native)
        if own is None:
            raise RowQueryError(
                f"column `{show_name(name)}` of the query is of a type that Headrace does not have",
                native,
                "a type of Headrace, such as INTEGER, DECIMAL, VARCHAR, DATE or TIMESTAMP",
                f"Write CAST(... AS {cast_of(native)}) AS {name}.",
            )
        outputs.append(QueryOutput(name, own, None))
    return tuple(outputs)


def tree_of(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, object]:
    """One statement as `json_serialize_sql` has it. Raises RowQueryError."""
    row = connection.execute("SELECT json_serialize_sql($1)", [text]).fetchone()
    tree = json.loads(row[0]) if row else {}
    if tree.get("error"):
        raise RowQueryError("the query is refused", message_of(tree.get("error_message", "")))
    statements = tree["statements"]
    if len(statements) != 1:
        raise RowQueryError("the query is not one statement", expected="SELECT ... FROM ...")
    statement: dict[str, object] = statements[0]
    return statement


def _text_of(connection: duckdb.DuckDBPyConnection, statement: Mapping[str, object]) -> str:
    document = json.dumps({"error": False, "statements": [statement]})
    row = connection.execute("SELECT json_deserialize_sql($1)", [document]).fetchone()
    return str(row[0]) if row else ""


def check_constant(connection: duckdb.DuckDBPyConnection, tree: QueryTree, columns: Sequence[RowColumnType]) -> None:
    """Refuses functions that give something else when the same rows come again: one stream must be 16 streams, and a
    resumed run an undisturbed one.
    """
    own = {column.name.lower() for column in columns}
    names = {*tree.functions, *((name, 0) for name in tree.names - own)}
    seen: set[tuple[str, int]] = set()
    while names:
        seen |= names
        bad = min(((name, count) for name, count in names if _is_volatile(name, count)), default=None)
        if bad is not None:
            raise RowQueryError(
                f"`{show_name(bad[0])}` gives another value each time, or in each session",
                expected="functions whose result depends on nothing but the row",
                hint="Compute it once as a variable of the package, with `expr`, and write `$name` in the query.",
            )
        names = _in_macros(connection, [name for name, _ in names]) - seen


def _is_volatile(name: str, arguments: int) -> bool:
    if (name, arguments) in _TELL_TIME or (arguments == 0 and name in _LIKE_COLUMNS):
        return True
    # What stands in place of values has been written by us: nobody else knows a variable of this session.
    if name in _HARMLESS or name == _PLACED:
        return False
    return name in _functions_of_duckdb().volatile


def _in_macros(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> set[tuple[str, int]]:
    """What the macros among these use."""
    macros = _functions_of_duckdb().macros
    used: set[tuple[str, int]] = set()
    for definition in (definition for name in set(names) for definition in macros.get(name, ())):
        functions, alone = used_in(tree_of(connection, f"SELECT {definition}"))
        used |= {*functions, *((name, 0) for name in alone)}
    return used


@dataclass(frozen=True, slots=True)
class _Functions:
    """`volatile`: those whose result can change from call to call; `macros`: the definitions by name."""

    volatile: frozenset[str]
    macros: Mapping[str, Sequence[str]]


@cache
def _functions_of_duckdb() -> _Functions:
    """Read once in a process, which takes DuckDB 15 ms: nobody adds functions to the instances of queries."""
    sql = "SELECT function_name, stability <> 'CONSISTENT', function_type = 'macro', macro_definition"
    with bare_database(EmbeddedQuery("", ""), _DESCRIBING_BYTES) as connection:
        rows = connection.execute(f"{sql} FROM duckdb_functions()").fetchall()
    macros: dict[str, list[str]] = {}
    for name, _, is_macro, definition in rows:
        if is_macro:
            macros.setdefault(name, []).append(definition)
    return _Functions(frozenset(name for name, is_volatile, _, _ in rows if is_volatile), macros)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
