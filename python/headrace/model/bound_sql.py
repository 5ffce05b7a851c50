"""A statement with something in place of each `$name`: of the values that are bound, and of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.errors import SqlError
from headrace.model.rows import Rows
from headrace.model.scope import Scope
from headrace.model.script import Script
from headrace.model.sql_text import Statement

# What stands in the text for a value: its number from 1, its DuckDB type, and the value itself.
Parameter = Callable[[int, str, object], str]


def bound_text(
    script: Script, statement: Statement, scope: Scope, parameter: Parameter, names: Mapping[str, str] | None = None
) -> tuple[str, list[object]]:
    """The text of the statement, and the values in the order of their numbers; each stands there once. `names`: texts
    for what is pasted. Raises SqlError for rows.
    """
    names = names or {}
    values: list[object] = []
    parameters: dict[str, str] = {}
    text, end = "", statement.begin
    for place in statement.placeholders:
        text += script.text[end : place.begin]
        end = place.end
        if place.name in names:
            text += names[place.name]
            continue
        if place.name not in parameters:
            value = scope.values[place.name]
            if isinstance(value, Rows):
                raise SqlError(
                    f"`${place.name}` holds rows, which no statement takes",
                    at=script.at(place.begin),
                    expected="a single value or a list",
                    hint="Loop over them with `foreach: {rows: ...}`.",
                )
            values.append(value)
            parameters[place.name] = parameter(len(values), scope.sql_type(place.name), value)
        text += parameters[place.name]
    return text + script.text[end : statement.begin + len(statement.text)], values
