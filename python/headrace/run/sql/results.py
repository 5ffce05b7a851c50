"""What a task keeps of the rows of its last statement: one row, or all of them within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from headrace.errors import SqlError
from headrace.model.rows import MAXIMUM_ROWS, Rows
from headrace.model.suggest import one_of
from headrace.targets.sql import SqlRows

MAXIMUM_BYTES: Final = 64_000_000
# What a value needs beside its text.
_VALUE_BYTES: Final = 8


def all_rows(rows: SqlRows) -> Rows:
    """All rows. Raises SqlError if there are too many."""
    kept: list[Sequence[object]] = []
    size = 0
    for row in each(rows):
        kept.append(row)
        size += sum(_size(value) for value in row)
        if len(kept) > MAXIMUM_ROWS or size > MAXIMUM_BYTES:
            raise SqlError(
                "the result is too large for a variable",
                found=f"more than {MAXIMUM_ROWS:,} rows" if len(kept) > MAXIMUM_ROWS else "more than 64 MB",
                expected=f"at most {MAXIMUM_ROWS:,} rows and 64 MB",
                hint="Ask for less, or loop over the query itself: `foreach: {query: ...}` reads it in portions.",
            )
    return Rows(tuple(rows.columns), kept)


def one_row(columns: Sequence[str], rows: Iterable[Sequence[object]], wanted: Mapping[str, str]) -> dict[str, object]:
    """The values of the only row, by variable. `wanted`: variable: column. Raises SqlError if there is not just one."""
    places = {variable: column_place(columns, column) for variable, column in wanted.items()}
    found: Sequence[object] | None = None
    for number, row in enumerate(rows):
        if number:
            raise _not_one("more than one row")
        found = row
    if found is None:
        raise _not_one("no row")
    return {variable: found[place] for variable, place in places.items()}


def column_place(columns: Sequence[str], wanted: str) -> int:
    """The place of a column: of the very name, or of the only one that differs in case alone. Raises SqlError."""
    exact = [place for place, name in enumerate(columns) if name == wanted]
    places = exact or [place for place, name in enumerate(columns) if name.lower() == wanted.lower()]
    if len(places) == 1:
        return places[0]
    raise SqlError(
        f"the result has {'several columns' if places else 'no column'} `{wanted}`",
        found=one_of(columns),
        expected=f"one column `{wanted}`",
        hint=f"Name it in the query: ... AS {wanted}",
    )


def each(rows: SqlRows) -> Iterator[Sequence[object]]:
    """One row after the other."""
    for portion in rows.portions():
        yield from portion


def _not_one(found: str) -> SqlError:
    return SqlError(
        "the query for `row` must give exactly one row",
        found=found,
        expected="one row",
        hint="Use an aggregate or LIMIT, or `rows` for all of them.",
    )


def _size(value: object) -> int:
    return _VALUE_BYTES + (len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else _VALUE_BYTES)
