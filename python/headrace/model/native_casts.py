"""The CAST to write for a column of a type of DuckDB or PostgreSQL that no column of rows can have."""

from __future__ import annotations

import re
from typing import Final

_CASTS: Final = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "UBIGINT": "DECIMAL(20,0)",
    "oid": "BIGINT",
    "money": "DECIMAL(18,2)",
}
_WHOLE_NUMBER: Final = re.compile(r"U?(TINYINT|SMALLINT|INTEGER)")
_MOMENT: Final = re.compile(r"TIMESTAMP_(S|MS|NS)")


def cast_of(native: str) -> str:
    """The type to convert it to."""
    if _WHOLE_NUMBER.fullmatch(native):
        return "BIGINT"
    if native.startswith("numeric"):
        return "DECIMAL(18,2)"
    return "TIMESTAMP" if _MOMENT.fullmatch(native) else _CASTS.get(native, "VARCHAR")
