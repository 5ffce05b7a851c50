"""What to look for in the rows of a source, when a destination has refused them without saying which row it was."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class SearchedColumn:
    """A column of the source that a constraint is about.

    `name`: that of the table's column. `engine_type`: the DuckDB type in which the table compares it; None: that of the
    source does. `is_padded`: trailing blanks do not count.
    """

    source: str
    name: str
    engine_type: str | None = None
    is_padded: bool = False


@dataclass(frozen=True)
class Constraint:
    """A rule of the table. `text`: as its owner knows it.

    Without `condition` it is a key that no two rows share; `nulls_equal` says whether two NULLs are the same. With one,
    DuckDB's SQL over the table's columns, it is for no row false.
    """

    text: str
    columns: tuple[SearchedColumn, ...]
    condition: str | None = None
    nulls_equal: bool = False


@dataclass(frozen=True)
class RowSearch:
    """The constraints of which one was broken.

    `table`: name by which conditions may call it. `engine`: the DuckDB instance that has the table; None: the table is
    elsewhere. `rows_before`: how DuckDB calls the table, or those of its rows that have a key again: if they count too.
    `place`: that of the only rows that go into the table, as the flow's routing numbers places; None: all rows do.
    """

    constraints: tuple[Constraint, ...]
    table: str
    engine: duckdb.DuckDBPyConnection | None = None
    rows_before: str | None = None
    place: int | None = None
