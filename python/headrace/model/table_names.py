"""Names of tables in packages."""

from __future__ import annotations

from typing import Final

from headrace.model.settings import own_error

RESERVED_SCHEMA: Final = "headrace"


def check_table(table: str) -> str:
    """Raises an own error unless it names a table that users may load."""
    parts = table.split(".")
    if len(parts) > 2 or any(not part.strip() or any(ord(character) < 32 for character in part) for part in parts):
        raise own_error("this cannot be a table", expected="`table` or `schema.table`")
    if len(parts) == 2 and parts[0].lower() == RESERVED_SCHEMA:
        raise own_error(
            f"the schema {RESERVED_SCHEMA} holds the ledger", expected="another schema", hint="Choose another schema."
        )
    return table
