"""Why a query is none over single rows."""

from __future__ import annotations

from typing import Final

IN_THE_DESTINATION: Final = (
    "Load the rows as they are, and do this in the destination: with a task of kind `build` or `sql`."
)


class RowQueryError(ValueError):
    """A query that no stream can run over its rows. `found` may be DuckDB's own message."""

    # Set if it may be a query over all rows.
    needs_all = False

    def __init__(self, what: str, found: str | None = None, expected: str | None = None, hint: str | None = None):
        super().__init__(what)
        self.what = what
        self.found = found
        self.expected = expected
        self.hint = hint


def not_row_wise(found: str, hint: str = IN_THE_DESTINATION) -> RowQueryError:
    """Of one that needs more than a row at a time; `found`: what it has that does."""
    error = RowQueryError(
        "the query needs more than one row at a time",
        found,
        "columns computed of each row, WHERE, CASE, and joins with small constant tables",
        hint,
    )
    error.needs_all = True
    return error


def not_followed(found: str) -> RowQueryError:
    """Of one whose result nobody knows with the number of the row beside its columns; `found`: what hides it."""
    return RowQueryError(
        "the query cannot be followed row by row",
        found,
        "columns with their names",
        "Name the columns, or write `*` without conditions.",
    )
