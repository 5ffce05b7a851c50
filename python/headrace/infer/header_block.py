"""Rows above the data that are as wide as it: titles, names, units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.infer.text_class import is_data, is_typed

_MOST_ROWS: Final = 5
# So many rows of data tell of what type a column is.
_FEWEST_ROWS_OF_DATA: Final = 2
_FEWEST_TEXTS: Final = 2


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """How many rows it has, and which of them, from 0, has the names."""

    rows: int
    names: int


def header_block(head: Sequence[Sequence[str]], fields: int) -> HeaderBlock:
    """The rows in front that say nothing of the type that their columns have in all rows behind them."""
    rows = []
    for row in head:
        if len(row) != fields:
            break
        rows.append([text.strip() for text in row])
    for last in range(min(_MOST_ROWS, len(rows) - _FEWEST_ROWS_OF_DATA) - 1, 0, -1):
        front, data = rows[: last + 1], rows[last + 1 :]
        typed = [place for place in range(fields) if _is_typed([row[place] for row in data])]
        own = [front[last][place] for place in typed]
        if any(is_data(text) for text in own):
            continue
        counts = [len({text for text in row if text and not is_typed(text)}) for row in front]
        names = counts.index(max(counts))
        # One text could be a value that is none of its type: it takes two of each row, and no row is lost.
        if any(sum(bool(row[place]) for place in typed) < _FEWEST_TEXTS for row in front[names:]):
            continue
        # A row with a value in every column of a type is data, and what stands behind it too.
        if any(all(is_data(row[place]) for place in typed) for row in front):
            continue
        return HeaderBlock(last + 1, names)
    return HeaderBlock(0, 0)


def _is_typed(texts: Sequence[str]) -> bool:
    return any(is_typed(text) for text in texts) and all(is_data(text) for text in texts if text)
