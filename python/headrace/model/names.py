"""Rules for the names that a package gives to things."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from headrace.model.settings import own_error

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_-]*"
VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
MAXIMUM_NAME_CHARACTERS = 63
# Names with a meaning of their own in `${...}` and in expressions.
RESERVED_VARIABLES = ("env", "file", "given", "system")


def _check_name(name: str) -> str:
    if len(name) > MAXIMUM_NAME_CHARACTERS or not re.fullmatch(NAME_PATTERN, name):
        raise own_error(
            "this name cannot be used",
            expected=f"letters, digits, `_` and `-`, not starting with a digit, at most {MAXIMUM_NAME_CHARACTERS}",
        )
    return name


def _check_variable(name: str) -> str:
    if len(name) > MAXIMUM_NAME_CHARACTERS or not re.fullmatch(VARIABLE_PATTERN, name):
        raise own_error(
            "this name cannot be used in `${...}` and in expressions",
            expected=f"letters, digits and `_`, not starting with a digit, at most {MAXIMUM_NAME_CHARACTERS}",
        )
    if name.lower() in RESERVED_VARIABLES:
        raise own_error("this name is reserved", expected=f"a name other than {', '.join(RESERVED_VARIABLES)}")
    return name


# Tasks, connections, layouts, sources, destinations, packages.
Name = Annotated[str, AfterValidator(_check_name), Field(json_schema_extra={"pattern": f"^{NAME_PATTERN}$"})]
# Parameters and foreach items: they become SQL names.
VariableName = Annotated[
    str, AfterValidator(_check_variable), Field(json_schema_extra={"pattern": f"^{VARIABLE_PATTERN}$"})
]
