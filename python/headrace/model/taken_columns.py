"""Settings that say which columns rows get, and how they are called then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from headrace.model.layout_column import check_column_name
from headrace.model.settings import errors_below, own_error


def _check_taken(taken: object) -> dict[str, str]:
    """New name: column. A list keeps the names."""
    if isinstance(taken, list):
        for number, name in enumerate(taken):
            if not isinstance(name, str):
                raise own_error("this is not the name of a column", expected="text", path=(number,))
            if name in taken[:number]:
                raise own_error("a column stands in the list twice", expected="each column once", path=(number,))
        taken = {name: name for name in taken}
    if not isinstance(taken, Mapping):
        raise own_error("this does not say which columns are meant", expected="a list, or new name: column")
    if not taken:
        raise own_error("no column is named", expected="at least one column")
    seen: dict[str, str] = {}
    for name, column in taken.items():
        if not isinstance(column, str):
            raise own_error("this is not the name of a column", expected="text", path=(name,))
        with errors_below(name):
            check_column_name(name)
        # Databases compare names of columns without regard to case.
        if seen.setdefault(name.lower(), name) != name:
            raise own_error("two new columns differ only in case", expected="each name once", path=(name,))
    return dict(taken)


TakenColumns = Annotated[
    Any,
    PlainValidator(_check_taken),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "minItems": 1, "items": {"type": "string"}},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
            ]
        }
    ),
]
