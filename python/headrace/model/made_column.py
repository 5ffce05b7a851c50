"""Columns of a layout that are made, and not read: what they may say, and what may stand beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from headrace.model.settings import own_error

if TYPE_CHECKING:
    from headrace.model.layout_column import Column

MadeFrom = Literal[
    "file_name", "file_path", "row_number", "byte_offset", "slice", "load_time", "run_id", "package_hash"
]

# What only a run can tell.
OF_RUN: Final = frozenset({"load_time", "run_id", "package_hash"})
# The one type that each has.
MADE_TYPES: Final[dict[str, str]] = {
    "file_name": "string",
    "file_path": "string",
    "row_number": "int64",
    "byte_offset": "int64",
    "slice": "int64",
    "load_time": "timestamptz",
    "run_id": "string",
    "package_hash": "string",
}
_BESIDE: Final = frozenset({"from_", "name", "type", "nullable"})


def check_made(column: Column) -> None:
    """Raises an own error unless a column with `from` has its type, and nothing that says how fields are read."""
    made_from = column.from_
    if made_from is None:
        return
    if str(column.type) != MADE_TYPES[made_from]:
        raise own_error(
            f"a column that is made from `{made_from}` cannot be of type {column.type}",
            expected=MADE_TYPES[made_from],
            path=("type",),
        )
    for key in type(column).model_fields:
        if key in column.model_fields_set and key not in _BESIDE:
            raise own_error(
                f"`{key}` means nothing for a column that is made from `{made_from}`: no field is read",
                expected="`name`, `type` and `nullable` beside `from`",
                hint=f"Remove `{key}`.",
                path=(key,),
            )
