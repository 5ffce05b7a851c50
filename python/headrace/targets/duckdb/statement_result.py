"""What DuckDB gives back for a statement. DuckDB's own parser says which kind of statement it is: words of the text may
stand in values, comments and names, and a column of a query may be called as that of a count.
"""

from __future__ import annotations

from typing import Final, Literal

import duckdb

# Rows of a query; rows that the statement has changed (RETURNING); their number alone; nothing of these.
StatementResult = Literal["rows", "changed rows", "count", "nothing"]

_KIND: Final = duckdb.StatementType
_CHANGES: Final = frozenset({_KIND.INSERT, _KIND.UPDATE, _KIND.DELETE, _KIND.MERGE_INTO})
_QUERIES: Final = frozenset({_KIND.SELECT, _KIND.EXPLAIN})
# They give a number of rows in one column of this name, or rows. EXECUTE gives what the prepared statement gives.
_MAY_COUNT: Final = frozenset({_KIND.CREATE, _KIND.COPY, _KIND.EXECUTE})
_COUNT: Final = [("Count", "BIGINT")]
_SUCCESS: Final = [("Success", "BOOLEAN")]
# The clause stands once, and at the end.
_RETURNING: Final = "\nRETURNING 1"


def expected_result(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> StatementResult | None:
    """What a statement will give; None if only the columns of its result tell."""
    if statement.type in _QUERIES:
        return "rows"
    if statement.type in _CHANGES:
        return "changed rows" if _returns(connection, statement.query) else "count"
    return None


def described_result(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> StatementResult:
    """What a statement of any other kind has given, which was just executed."""
    described = [(str(column[0]), str(column[1])) for column in connection.description or ()]
    if described == _COUNT and statement.type in _MAY_COUNT:
        return "count"
    return "rows" if described and described != _SUCCESS else "nothing"


def _returns(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Whether a statement that changes rows gives them back: with the clause once more it does not parse."""
    try:
        connection.extract_statements(text.rstrip().rstrip(";") + _RETURNING)
    except duckdb.ParserException:
        return True
    return False
