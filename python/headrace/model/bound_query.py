"""A query of a package that an embedded DuckDB answers: one statement, with the values of its names."""

from __future__ import annotations

from headrace.errors import SqlError
from headrace.model.bound_sql import bound_text
from headrace.model.embedded_query import EmbeddedQuery, parameter
from headrace.model.problems import ProblemCollector
from headrace.model.scope import Scope, is_unknown
from headrace.model.script import script_of_package
from headrace.model.sql_checks import ScriptUse, check_script
from headrace.model.yaml_reader import Document, DocumentPath


def bound_query(
    text: str, document: Document, path: DocumentPath, scope: Scope, problems: ProblemCollector
) -> EmbeddedQuery | None:
    """None with a problem, or if a value in it is not known yet. `path`: of the setting."""
    script = script_of_package(text, document, path)
    statements, found = check_script(script, ScriptUse(names=tuple(scope.values), query_of="the data flow"))
    problems.extend(found)
    if found or any(is_unknown(scope.values[place.name]) for place in statements[0].placeholders):
        return None
    types: list[str] = []

    def placed(number: int, sql_type: str, _value: object) -> str:
        types.append(sql_type)
        return parameter(number)

    try:
        bound, values = bound_text(script, statements[0], scope, placed)
    except SqlError as error:
        problems.add(document, path, error.what, found=error.found, expected=error.expected, hint=error.hint)
        return None
    return EmbeddedQuery(bound, script.text, tuple(zip(types, values, strict=True)), statements[0].is_ordered)
