"""The models of variables: values that tasks of a package write and read."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema, model_validator

from headrace.model.names import VariableName
from headrace.model.settings import SettingKind, SpecModel, own_error, setting

# `rows` is the result set of a query: a list of rows, whose columns are declared where they are used.
VariableType = Literal["string", "integer", "decimal", "boolean", "date", "timestamp", "path", "list", "rows"]
ItemType = Literal["string", "integer", "decimal", "boolean", "date", "timestamp", "path"]


class VariableSpec(SpecModel):
    """A value that tasks can change."""

    type: VariableType = setting("Type of the value.")
    value: Any = setting(
        "Value at the beginning of what it belongs to; without it, and without `expr`, null.",
        default=None,
        kind=SettingKind.VALUE,
    )
    expr: str | None = setting(
        "DuckDB SQL that gives that value.", default=None, kind=SettingKind.EXPRESSION, min_length=1
    )
    items: ItemType = setting("For a list, the type of its items.", default="string")
    secret: bool | None = setting(
        "Whether its values are hidden in everything that is shown and stored. By default those that come from "
        "`${env:X}` or `${file:X}` are; with `false` those in `value` may be shown.",
        default=None,
    )
    description: str | None = setting("What the variable is for.", default=None, kind=SettingKind.PROSE)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if "items" in self.model_fields_set and self.type != "list":
            raise own_error("`items` means nothing here", expected="`items` with `type: list`", path=("items",))
        if self.type == "rows" and (self.value is not None or self.expr is not None):
            raise own_error(
                "a variable of type rows has no value at the beginning", expected="an `sql` task with `rows`"
            )
        return self


Variables = dict[VariableName, VariableSpec]


def check_columns_of_rows(columns: dict[str, Any]) -> dict[str, Any]:
    """Of the rows of a foreach."""
    if not columns:
        raise own_error("`as` names no column", expected="column: type, at least one")
    return columns


RowColumns = Annotated[dict[VariableName, ItemType], AfterValidator(check_columns_of_rows)]


def _check_expression(value: object) -> object:
    """Numbers and booleans are what they are; a text is SQL."""
    if isinstance(value, (bool, int, Decimal)) or (isinstance(value, str) and value.strip()):
        return value
    raise own_error("an expression must be DuckDB SQL", expected="a text with SQL, a number, true or false")


Expression = Annotated[
    Any,
    BeforeValidator(_check_expression),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}, {"type": "boolean"}]}),
]
