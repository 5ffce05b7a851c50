"""Queries of a package: one statement that only reads, and what DuckDB is asked in its place."""

from __future__ import annotations

from typing import Final

from headrace.errors import SqlError
from headrace.model.connections import Connection
from headrace.model.embedded_query import EmbeddedQuery, parameter
from headrace.model.lookup_query import DatabaseQuery
from headrace.model.problems import ProblemCollector
from headrace.model.scope import Scope, is_unknown
from headrace.model.script import script_of_package
from headrace.model.sql_checks import ScriptUse, check_script
from headrace.model.yaml_reader import Document, DocumentPath

# Greatest value of BIGINT and one. Whole numbers of parameters are HUGEINT, of which expressions have types that no
# column has.
_MOST: Final = 2**63


def read_query(
    text: str,
    document: Document,
    path: DocumentPath,
    scope: Scope,
    problems: ProblemCollector,
    connection: Connection | None = None,
) -> DatabaseQuery | None:
    """None with a problem, or if a value in it is not known yet. `path`: of the setting; `connection`: of the database
    that answers it, None for a DuckDB of its own.
    """
    script = script_of_package(text, document, path)
    use = ScriptUse(names=tuple(scope.values), query_of="the data flow", connection=connection)
    statements, found = check_script(script, use)
    problems.extend(found)
    if found or any(is_unknown(scope.values[place.name]) for place in statements[0].placeholders):
        return None
    return DatabaseQuery(script, statements[0], scope)


def with_variables(query: DatabaseQuery, *, types_are_fixed: bool = False) -> EmbeddedQuery:
    """The query with variables of DuckDB in place of its values. `types_are_fixed`: those of expressions do not depend
    on values, as they do in DuckDB, for which 5 is narrower than 5,000,000,000. Raises SqlError for rows.
    """
    types: list[str] = []

    def placed(number: int, sql_type: str, value: object) -> str:
        is_narrow = types_are_fixed and sql_type == "HUGEINT" and isinstance(value, int) and -_MOST <= value < _MOST
        types.append("BIGINT" if is_narrow else sql_type)
        return f"CAST({parameter(number)} AS {types[-1]})" if types_are_fixed else parameter(number)

    text, values = query.bound(placed)
    return EmbeddedQuery(text, query.written, tuple(zip(types, values, strict=True)), query.is_ordered)


def embedded_query(
    query: DatabaseQuery,
    document: Document,
    path: DocumentPath,
    problems: ProblemCollector,
    *,
    types_are_fixed: bool = False,
) -> EmbeddedQuery | None:
    """The same; None with a problem."""
    try:
        return with_variables(query, types_are_fixed=types_are_fixed)
    except SqlError as error:
        problems.add(document, path, error.what, found=error.found, expected=error.expected, hint=error.hint)
        return None
