"""DuckDB instances in memory for Headrace's own queries.

DuckDB is imported when the first one is made, so that packages that need none load fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def new_instance(
    config: Mapping[str, str | bool | int | float | list[str]] | None = None,
) -> duckdb.DuckDBPyConnection:
    """A connection to a new instance, which draws nothing: in notebooks, and wherever Python runs no file, DuckDB would
    draw a bar on standard output for queries of more than two seconds. Raises duckdb.Error.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(config or {}))
    connection.execute("SET enable_progress_bar = false")
    return connection
