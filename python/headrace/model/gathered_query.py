"""Queries over all rows of a data flow: GROUP BY, DISTINCT, ORDER BY with LIMIT, window functions, PIVOT, any SELECT.

DuckDB is imported when the first one is described, so that packages without such queries load fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.model.arrow_rows import arrow_rows
from headrace.model.duckdb_types import native_type
from headrace.model.embedded_query import EmbeddedQuery, bare_database, columns_of, message_of
from headrace.model.gathered_tree import check_gathered, depends_on_float_order, ties
from headrace.model.query_tree import (
    QueryTree,
    check_table_functions,
    check_table_names,
    nodes_of,
    not_read,
    tables_of,
    used_in,
)
from headrace.model.row_query import QueryOutput, RowColumnType, check_constant, outputs_of_query, quoted, tree_of
from headrace.model.row_query_error import RowQueryError
from headrace.model.row_wise import DISABLED_OPTIMIZERS, STREAM_SCAN, TABLE_SCAN
from headrace.model.suggest import show_name

if TYPE_CHECKING:
    import duckdb

# Enough to describe any query: nothing is executed.
_DESCRIBING_BYTES: Final = 100_000_000
# A table would be read twice by some, in the place of a stream, which cannot.
_READ_TWICE: Final = "late_materialization,window_self_join,top_n_window_elimination"
_SETTINGS: Final = (f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS},{_READ_TWICE}'",)
# Stands for the rows when a query is described: no row is ever in it.
_STAND_IN: Final = "__headrace_stand_in"
_ROWS: Final = "__headrace_rows"
_KEPT: Final = "__headrace_kept"
_RESULT: Final = "__headrace_result"


@dataclass(frozen=True, slots=True)
class GatheredQuery:
    """A query over all rows of `input`. `columns`: those of its rows; `streams`: whether they go through it as they
    come; else all of them are kept first, because it reads them more than once, or on the side of a join that is kept.
    `divides`: it has divisions in floating point; `sums_floats`: the last digits of its floats depend on the order in
    which rows come; `ties`: what takes any one of rows that are equal where it compares them.
    """

    input: str
    columns: tuple[RowColumnType, ...]
    query: EmbeddedQuery
    outputs: tuple[QueryOutput, ...]
    streams: bool
    divides: bool
    sums_floats: bool
    ties: tuple[str, ...] = ()


def described_gathered(query: EmbeddedQuery, name: str, columns: Sequence[RowColumnType]) -> GatheredQuery:
    """The query over the rows `name` with these columns. Raises RowQueryError."""
    import duckdb

    try:
        with bare_database(query, _DESCRIBING_BYTES, _SETTINGS) as connection:
            return _described(connection, query, name, columns)
    except duckdb.Error as error:
        raise RowQueryError("the query is refused", message_of(error)) from error


@contextmanager
def gathering_database(
    query: GatheredQuery, memory_bytes: int, threads: int, spill_folder: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for the query, with its values. What does not fit into its memory goes to the folder."""
    with bare_database(query.query, memory_bytes, _SETTINGS, threads=threads, spill_folder=spill_folder) as connection:
        yield connection


def gather_rows(connection: duckdb.DuckDBPyConnection, query: GatheredQuery, rows: object) -> int:
    """Runs the query over an object with `__arrow_c_stream__`, which is asked for its rows once, and keeps the result.
    The number of its rows. Raises duckdb.Error.
    """
    import duckdb

    # DuckDB refuses to register rows as long as the result of the statement before was not read to its end.
    connection.execute("SELECT 1").fetchall()
    connection.register(_ROWS, rows)
    try:
        columns = ", ".join(
            f"CAST({quoted(own.name)} AS {native_type(own.type)}) AS {quoted(own.name)}" for own in query.columns
        )
        view = f"CREATE OR REPLACE TEMP VIEW {quoted(query.input)} AS SELECT"
        connection.execute(f"{view} {columns} FROM {_ROWS}")
        # What goes into the plan is the true stream: DuckDB takes it for one row, and might keep all of it.
        if not _is_streamed(connection, query.query.text, STREAM_SCAN):
            connection.execute(f"CREATE TEMP TABLE {_KEPT} AS SELECT * FROM {quoted(query.input)}")
            connection.execute(f"{view} * FROM {_KEPT}")
        connection.execute(f"CREATE TEMP TABLE {_RESULT} AS {query.query.text}\n")
    finally:
        with suppress(duckdb.Error):
            connection.execute("SELECT 1").fetchall()
            connection.unregister(_ROWS)
    counted: list[tuple[int]] = connection.execute(f"SELECT count(*) FROM {_RESULT}").fetchall()
    return counted[0][0]


def gathered_rows(connection: duckdb.DuckDBPyConnection) -> object:
    """The capsule of an Arrow C stream with the rows of the result."""
    connection.execute("SELECT 1").fetchall()
    return arrow_rows(connection, f"SELECT * FROM {_RESULT}")


def _described(
    connection: duckdb.DuckDBPyConnection, query: EmbeddedQuery, name: str, columns: Sequence[RowColumnType]
) -> GatheredQuery:
    statement = tree_of(connection, query.text)
    check_table_functions(statement, name)
    check_table_names(statement, name)
    tables = tables_of(statement)
    if name.lower() not in tables:
        raise not_read(name)
    others = tables - {name.lower()}
    if others:
        raise RowQueryError(
            f"the query reads the table `{show_name(min(others))}`",
            expected=f"the rows of `{name}`, and constant tables beside them",
            hint="Look rows of other tables and files up with a `lookup`.",
        )
    check_gathered(statement)
    functions, names = used_in(statement)
    tree = QueryTree(None, functions, names, frozenset())
    check_constant(connection, tree, columns)
    declared = ", ".join(f"{quoted(own.name)} {native_type(own.type)}" for own in columns)
    connection.execute(f"CREATE TABLE {_STAND_IN} ({declared})")
    connection.execute(f"CREATE VIEW {quoted(name)} AS SELECT * FROM {_STAND_IN}")
    found = columns_of(connection, query.text)
    floats = tree.divides or any(own.type.kind in ("float32", "float64") for own in columns) or _makes_floats(statement)
    return GatheredQuery(
        name,
        tuple(columns),
        query,
        outputs_of_query(found, None, ()),
        _is_streamed(connection, query.text, TABLE_SCAN),
        tree.divides,
        depends_on_float_order(statement, floats=floats),
        ties(statement),
    )


def _makes_floats(statement: Any) -> bool:
    """Whether a CAST to a float stands in it."""
    casts = (node.get("cast_type") or {} for node in nodes_of(statement) if node.get("class") == "CAST")
    return any(kind.get("id") in ("FLOAT", "DOUBLE") or "DOUBLE" in str(kind) or "FLOAT" in str(kind) for kind in casts)


def _is_streamed(connection: duckdb.DuckDBPyConnection, sql: str, scan: str) -> bool:
    """Whether DuckDB reads the rows once, and to their end: a join whose other side is empty, and a limit, do not."""
    answer = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    (tree,) = json.loads(answer[0][1])
    return _scans(tree, scan) == 1 and _passes(tree, scan)


def _scans(node: Mapping[str, Any], scan: str) -> int:
    return int(node["name"] == scan) + sum(_scans(child, scan) for child in node["children"])


def _passes(node: Mapping[str, Any], scan: str) -> bool:
    """Whether nothing stands above the rows that keeps them aside, or stops to ask for them."""
    if node["name"] == scan:
        return True
    children = node["children"]
    return len(children) == 1 and "LIMIT" not in node["name"] and _passes(children[0], scan)
