"""SQL that finds the first row of a source, in file order, that breaks a constraint of a table.

Each query gives at most one row: its position, that of the row whose key it repeats (NULL: there is none), and the
values of the constraint's columns as text. DuckDB's memory limit holds: what is kept of the rows is keys and positions,
and those can spill.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.run.second_pass import SourceRows
from headrace.targets import Constraint, SearchedColumn

REPEATED: Final = "headrace_repeated"
DROP_REPEATED: Final = f"DROP TABLE IF EXISTS {REPEATED}"
_SHOWN_CHARACTERS: Final = 100


def collect_repeated(key: Constraint, source: SourceRows) -> str:
    """Makes a temporary table of the keys that several rows have, each with the position of the first one."""
    names = ", ".join(_names(key))
    return (
        f"CREATE TEMP TABLE {REPEATED} AS SELECT {names}, min({source.position}) AS first\n"
        f"FROM ({_keys(key, source)}) GROUP BY {names} HAVING count(*) > 1"
    )


def first_repeat(key: Constraint, source: SourceRows) -> str:
    """The first row whose key is in that table and that is not the first one of its key."""
    same = " AND ".join(f"own.{name} IS NOT DISTINCT FROM known.{name}" for name in _names(key))
    return _first(
        f"own.{source.position}, known.first, {_shown([f'own.{name}' for name in _names(key)])}",
        f"({_keys(key, source)}) AS own JOIN {REPEATED} AS known ON {same} WHERE own.{source.position} > known.first",
    )


def first_known(key: Constraint, source: SourceRows, table: str) -> str:
    """The first row whose key `table` has already."""
    pairs = zip(key.columns, _names(key), strict=True)
    same = " AND ".join(_equal(column, f"stored.{_quote(column.name)}", f"own.{name}") for column, name in pairs)
    return _first(
        f"own.{source.position}, NULL, {_shown([f'own.{name}' for name in _names(key)])}",
        f"({_keys(key, source)}) AS own WHERE EXISTS (SELECT 1 FROM {table} AS stored WHERE {same})",
    )


def first_breach(check: Constraint, source: SourceRows, table_name: str) -> str:
    """The first row for which the condition of `check` is false; it may call the table `table_name`."""
    columns = "".join(f"{_value(column)} AS {_quote(column.name)}, " for column in check.columns)
    values = _shown([_quote(column.name) for column in check.columns])
    return _first(
        f"{source.position}, NULL, {values}",
        f"(SELECT {columns}{source.position} FROM {source.sql}) AS {_quote(table_name)} WHERE NOT ({check.condition})",
    )


def _first(columns: str, rest: str) -> str:
    return f"SELECT {columns}\nFROM {rest}\nORDER BY 1 LIMIT 1"


def _keys(key: Constraint, source: SourceRows) -> str:
    """Keys as the table compares them; names of columns may differ in case only, so these have names of our own."""
    pairs = list(zip(_names(key), key.columns, strict=True))
    columns = ", ".join(f"{_value(column)} AS {name}" for name, column in pairs)
    filled = " AND ".join(f"{name} IS NOT NULL" for name, _ in pairs)
    rows = f"SELECT {columns}, {source.position} FROM {source.sql}"
    return rows if key.nulls_equal else f"SELECT * FROM ({rows}) WHERE {filled}"


def _names(key: Constraint) -> list[str]:
    return [f"key_{number}" for number in range(1, len(key.columns) + 1)]


def _value(column: SearchedColumn) -> str:
    value = _quote(column.source)
    if column.is_padded:
        value = f"rtrim({value}, ' ')"
    return value if column.engine_type is None else f"CAST({value} AS {column.engine_type})"


def _equal(column: SearchedColumn, stored: str, own: str) -> str:
    """Keys of text are compared byte by byte, whatever collation the column has."""
    return f"encode({stored}) = encode({own})" if column.engine_type == "VARCHAR" else f"{stored} = {own}"


def _shown(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_shown_value, values))}]"


def _shown_value(value: str) -> str:
    text, limit = f"CAST({value} AS VARCHAR)", _SHOWN_CHARACTERS
    quote = f"CASE typeof({value}) WHEN 'VARCHAR' THEN '''' ELSE '' END"
    dots = f"CASE WHEN length({text}) > {limit} THEN '...' ELSE '' END"
    return f"coalesce({quote} || left({text}, {limit}) || {dots} || {quote}, 'NULL')"


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
