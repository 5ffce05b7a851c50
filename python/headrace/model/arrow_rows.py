"""Rows that DuckDB gives as an Arrow C stream, in batches that are small whatever the rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import duckdb

# As many as DuckDB computes at once, and no more: by itself it gives 131,072 rows, 35 MB of rows of 270 bytes, and
# several batches wait for the streams. Smaller ones were not slower.
ROWS_PER_BATCH: Final = 2048


def arrow_rows(connection: duckdb.DuckDBPyConnection, query: str) -> object:
    """The capsule of the stream; most rows are computed when they are asked for. Raises duckdb.Error."""
    relation: Any = connection.sql(query)
    # What `to_arrow_reader(batch_size)` calls; that one needs pyarrow for what it makes of the stream.
    submit = getattr(relation, "_submit", None)
    capsule: object = (
        relation.__arrow_c_stream__() if submit is None else submit("stream", ROWS_PER_BATCH).arrow_capsule()
    )
    return capsule
