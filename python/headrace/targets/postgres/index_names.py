"""Names of indexes and constraints as the server chooses them for a new table: `orders_1_pkey`, `orders_1_day_idx`.

As `ChooseRelationName` and `makeObjectName` do in src/backend/commands/indexcmds.c of PostgreSQL.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from headrace.targets.postgres.capabilities import MAXIMUM_NAME_BYTES


def server_name(table: str, columns: str, label: str, taken: Collection[str]) -> str:
    """A name that is not taken. `columns`: those of the index, with a line between them, empty for a primary key;
    `label`: what stands at the end.
    """
    numbers = itertools.chain([""], map(str, itertools.count(1)))
    names = (_joined(table, columns, f"{label}{number}") for number in numbers)
    return next(name for name in names if name not in taken)


def _joined(table: str, columns: str, label: str) -> str:
    """With lines between them; what does not fit is cut from the longer one of the first two."""
    first, second = table.encode(), columns.encode()
    room = MAXIMUM_NAME_BYTES - len(label.encode()) - (2 if columns else 1)
    first_length, second_length = len(first), len(second)
    while first_length + second_length > room:
        if first_length > second_length:
            first_length -= 1
        else:
            second_length -= 1
    parts = (first[:first_length].decode(errors="ignore"), second[:second_length].decode(errors="ignore"), label)
    return "_".join(part for part in parts if part)
