"""The rows of a query, for a loop over them: read in portions, and fitted to the types that the loop declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from headrace.errors import HeadraceError, SqlError
from headrace.model.suggest import show_value
from headrace.model.variable_values import UnfitValueError, fitted
from headrace.run.sql.prepared import PreparedStatement
from headrace.run.sql.results import column_place, each
from headrace.run.sql.wording import placed
from headrace.targets.sql import SqlRows, SqlSessions


@contextmanager
def query_rows(
    sessions: SqlSessions,
    query: PreparedStatement,
    columns: Mapping[str, str],
    task: str,
    is_cancelled: Callable[[], bool],
) -> Iterator[Iterator[tuple[object, ...]]]:
    """The rows of a query as tuples of the wanted columns, in their order. `columns`: column: type of a variable; the
    query must be one that only reads. Raises SqlError, also while rows are read.
    """
    with sessions.session(task, is_cancelled) as session:
        try:
            session.begin(only_reads=True)
            rows = session.query(query.command)
            if rows is None:
                raise SqlError("the statement gives no rows", expected="a query")
            places = [(column_place(rows.columns, name), name, kind) for name, kind in columns.items()]
        except HeadraceError as error:
            raise placed(error, task, query.at) from error
        yield _fitted(rows, places, task, query)


def _fitted(
    rows: SqlRows, places: Sequence[tuple[int, str, str]], task: str, query: PreparedStatement
) -> Iterator[tuple[object, ...]]:
    try:
        for number, row in enumerate(each(rows), start=1):
            yield tuple(_value(row[place], name, kind, number) for place, name, kind in places)
    except HeadraceError as error:
        raise placed(error, task, query.at) from error


def _value(value: object, name: str, kind: str, row: int) -> object:
    try:
        return fitted(kind, "", value)
    except UnfitValueError as error:
        raise SqlError(
            f"a value of column `{name}` is not of type {kind}",
            found=f"{show_value(value)} in row {row:,}",
            expected=error.expected,
            hint=f"Convert it in the query, or declare another type: `as: {{{name}: ...}}`.",
        ) from error
