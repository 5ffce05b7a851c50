"""Bind queries over the rows of a data flow: `$name`, their columns, and what no stream can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.model.bound_query import embedded_query, read_query
from headrace.model.data_type import DataType
from headrace.model.embedded_query import EmbeddedQuery
from headrace.model.flow_rows import rows_of
from headrace.model.gathered_query import described_gathered
from headrace.model.lookup_query import DatabaseQuery
from headrace.model.problems import ProblemCollector
from headrace.model.row_query import RowColumnType, RowQuery, described_rows
from headrace.model.row_query_error import RowQueryError
from headrace.model.scope import Scope
from headrace.model.spec_transforms import SqlTransformSpec
from headrace.model.sql_transform import ComputedColumn, SqlTransform
from headrace.model.yaml_reader import Document, DocumentPath


@dataclass(frozen=True, slots=True)
class FlowColumn:
    """A column of rows between two transforms. `type`: None if its table was not looked at yet; `field`: the column of
    the source that it is.
    """

    type: DataType | None
    nullable: bool
    field: str | None = None


class SqlTransformBinder:
    """Of one package's queries. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def bind(
        self,
        name: str,
        spec: SqlTransformSpec,
        columns: Mapping[str, FlowColumn] | None,
        path: DocumentPath,
        scope: Scope,
    ) -> SqlTransform | None:
        """None with a problem, or if a value in it is not known yet. `columns`: those of its rows, None if they are not
        known; `path`: of the setting `sql`.
        """
        read = read_query(spec.sql, self._document, path, scope, self._problems)
        query = None if read is None else self._embedded(read, path)
        if query is None:
            return None
        table = rows_of(spec.input).name
        known = None if columns is None else known_columns(columns)
        if columns is None or known is None:
            return SqlTransform(name, spec.input, query.written, None)
        try:
            rows = self._row_wise(query, table, known)
            if rows is None:
                gathered = described_gathered(query, table, known)
                # Behind it they are those of a source.
                made = tuple(ComputedColumn(own.name, own.type, True, name, field=own.name) for own in gathered.outputs)
                return SqlTransform(name, spec.input, query.written, None, made, gathered)
        except RowQueryError as error:
            self._problems.add(
                self._document, path, error.what, found=error.found, expected=error.expected, hint=error.hint
            )
            return None
        outputs = []
        for own in rows.outputs:
            before = None if own.origin is None else columns[own.origin]
            nullable, field = (True, None) if before is None else (before.nullable, before.field)
            outputs.append(ComputedColumn(own.name, own.type, nullable, name, own.origin, field))
        return SqlTransform(name, spec.input, query.written, rows, tuple(outputs))

    def _row_wise(self, query: EmbeddedQuery, table: str, columns: Sequence[RowColumnType]) -> RowQuery | None:
        """None if the query needs all rows. Raises RowQueryError."""
        try:
            return described_rows(query, table, columns)
        except RowQueryError as error:
            if error.needs_all:
                return None
            raise

    def _embedded(self, query: DatabaseQuery, path: DocumentPath) -> EmbeddedQuery | None:
        return embedded_query(query, self._document, path, self._problems, types_are_fixed=True)


def known_columns(columns: Mapping[str, FlowColumn]) -> list[RowColumnType] | None:
    """The columns, if all of their types are known."""
    known = [RowColumnType(name, own.type) for name, own in columns.items() if own.type is not None]
    return known if len(known) == len(columns) else None
