"""The result set of a query as the value of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAXIMUM_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns by name, and rows of values. Values are those of variables: text, int, Decimal, bool, date, datetime,
    None.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
