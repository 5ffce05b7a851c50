"""Bind splits: each condition by itself, and the one query that gives the output of a row."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.model.bound_query import embedded_query, read_query
from headrace.model.embedded_query import EmbeddedQuery
from headrace.model.flow_rows import rows_of
from headrace.model.flow_steps import outputs_of
from headrace.model.problems import ProblemCollector
from headrace.model.row_query import RowColumnType, RowQuery, described_rows
from headrace.model.row_query_error import RowQueryError
from headrace.model.scope import Scope
from headrace.model.spec_transforms import SplitTransformSpec
from headrace.model.split import Split
from headrace.model.sql_transform_binder import FlowColumn, known_columns
from headrace.model.suggest import show_name
from headrace.model.yaml_reader import Document, DocumentPath


class SplitBinder:
    """Of one package's splits. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def bind(
        self,
        name: str,
        spec: SplitTransformSpec,
        columns: Mapping[str, FlowColumn] | None,
        path: DocumentPath,
        scope: Scope,
    ) -> Split | None:
        """None with a problem, or if a value in it is not known yet. `columns`: those of its rows, None if they are not
        known; `path`: of the setting `split`.
        """
        outputs = outputs_of(spec)
        table = rows_of(spec.input).name
        known = None if columns is None else known_columns(columns)
        is_right = True
        for output, condition in spec.conditions.items():
            own = self._query(f"SELECT ((\n{condition}\n)) AS condition FROM {_quoted(table)}", (*path, output), scope)
            if own is None or (known is not None and not self._is_condition(own, table, known, (*path, output))):
                is_right = False
        if not is_right:
            return None
        cases = "".join(
            f" WHEN (\n{condition}\n) THEN {number}" for number, condition in enumerate(spec.conditions.values())
        )
        text = f"SELECT CASE{cases} ELSE {len(outputs) - 1} END AS output FROM {_quoted(table)}"
        query = self._query(text, path, scope)
        if query is None:
            return None
        rows = None
        if known is not None:
            rows = self._described(query, table, known, path)
            if rows is None:
                return None
        return Split(name, spec.input, spec.conditions, outputs, rows)

    def _query(self, text: str, path: DocumentPath, scope: Scope) -> EmbeddedQuery | None:
        read = read_query(text, self._document, path, scope, self._problems)
        return (
            None if read is None else embedded_query(read, self._document, path, self._problems, types_are_fixed=True)
        )

    def _is_condition(self, query: EmbeddedQuery, table: str, columns: list[RowColumnType], path: DocumentPath) -> bool:
        rows = self._described(query, table, columns, path)
        if rows is None:
            return False
        found = [str(own.type) for own in rows.outputs]
        if found == ["bool"]:
            return True
        self._problems.add(
            self._document,
            path,
            f"the condition of `{show_name(str(path[-1]))}` must be true or false",
            found=f"a value of type {found[0]}" if len(found) == 1 else f"{len(found)} values",
            expected="one condition, such as `amount > 1000`",
            hint="Make it a comparison.",
        )
        return False

    def _described(
        self, query: EmbeddedQuery, table: str, columns: list[RowColumnType], path: DocumentPath
    ) -> RowQuery | None:
        try:
            return described_rows(query, table, columns)
        except RowQueryError as error:
            self._problems.add(
                self._document, path, error.what, found=error.found, expected=error.expected, hint=error.hint
            )
            return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
