"""Bind where the rows of a lookup come from: files with a layout, or a query that describes itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.model.bound_query import embedded_query, read_query
from headrace.model.connections import FilesConnection
from headrace.model.embedded_query import EmbeddedQuery, EmbeddedQueryError, described
from headrace.model.file_source import FileSource
from headrace.model.layout import Layout
from headrace.model.lookup import LookupColumn, LookupTable, query_columns
from headrace.model.lookup_sources import DatabaseQuerySource, DatabaseSource, QuerySource, TableSource
from headrace.model.named_things import DATABASES, NamedThings
from headrace.model.native_casts import cast_of
from headrace.model.problems import ProblemCollector
from headrace.model.scope import Scope
from headrace.model.spec_files import STREAM_PLACEHOLDER
from headrace.model.spec_transforms import LookupSpec
from headrace.model.suggest import quote, show_name
from headrace.model.yaml_reader import Document, DocumentPath

LayoutOf = Callable[[str | Layout, DocumentPath], Layout | None]

_CONVERT: Final = "Convert one of them by CAST."


@dataclass(frozen=True, slots=True)
class LookupRows:
    """Rows, and their columns by name. `word`: what says which columns there are; `mend`: how a column becomes another
    one. `is_described`: whether the columns are known.
    """

    source: FileSource | QuerySource | DatabaseSource
    columns: Mapping[str, LookupColumn]
    word: str
    mend: str
    is_described: bool = True


class LookupRowsBinder:
    """Of one package's lookups. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings, layout: LayoutOf) -> None:
        self._document = document
        self._problems = problems
        self._names = names
        self._layout = layout

    def bind(
        self, name: str, spec: LookupSpec, path: DocumentPath, scope: Scope, found: LookupTable | None
    ) -> LookupRows | None:
        """None with a problem, or if a value in a query is not known yet. `name`, `path`: of the lookup; `found`: the
        table or query of a database that it reads, if that is known.
        """
        if spec.table is not None:
            return self._table(name, spec, spec.table, path, found)
        if spec.connection is not None and spec.query is not None:
            return self._database_query(name, spec, spec.query, path, scope, found)
        return self._files(name, spec, path) if spec.query is None else self._query(name, spec, spec.query, path, scope)

    def _table(
        self, name: str, spec: LookupSpec, table: str, path: DocumentPath, found: LookupTable | None
    ) -> LookupRows | None:
        given = spec.connection or ""
        connection = self._names.connection(given, (*path, "connection"), "a lookup of a table", DATABASES)
        if spec.duplicates == "first":
            self._problems.add(
                self._document,
                (*path, "duplicates"),
                "the rows of a table have no order, so that none of them is the first",
                expected="duplicates: error",
                hint="Leave `duplicates` out, and rows that repeat a key out of the table.",
            )
            return None
        if connection is None:
            return None
        self._names.table_fits(connection, table, (*path, "table"), "the table")
        for key, columns in (("on", spec.on), ("add", spec.add)):
            for column in columns.values():
                self._names.fits(connection, column, (*path, key), "a column of the table")
        schema, _, own = table.rpartition(".")
        source = TableSource(name, connection, schema or None, own, found)
        if found is not None and not self._has_usable_types(spec, found, (*path, "table")):
            return None
        mend = "Look rows up by a query that converts the column by CAST."
        return LookupRows(source, source.columns, "table", mend, is_described=found is not None)

    def _has_usable_types(self, spec: LookupSpec, found: LookupTable, path: DocumentPath) -> bool:
        before = len(self._problems)
        native = {column.name: column.native_type for column in found.columns if column.type is None}
        for column in dict.fromkeys([*spec.on.values(), *spec.add.values()]):
            if column in native:
                self._unusable(
                    "table", column, native[column], path, "Look rows up by a query that converts it by CAST."
                )
        return len(self._problems) == before

    def _unusable(self, word: str, column: str, native: str, path: DocumentPath, hint: str) -> None:
        self._problems.add(
            self._document,
            path,
            f"column `{show_name(column)}` of the {word} is of a type that Headrace does not have",
            found=native,
            expected="a type of Headrace, such as INTEGER, DECIMAL, VARCHAR, DATE or TIMESTAMP",
            hint=hint,
        )

    def _files(self, name: str, spec: LookupSpec, path: DocumentPath) -> LookupRows | None:
        if spec.connection is None or spec.files is None or spec.layout is None:
            return None
        layout = self._layout(spec.layout, (*path, "layout"))
        connection = self._names.connection(spec.connection, (*path, "connection"), "a lookup", ("files",))
        if layout is None or not isinstance(connection, FilesConnection):
            return None
        if not self._has_names_of_its_own(spec.files, (*path, "files")):
            return None
        # An empty lookup is told when it is read: every row gets its default then.
        source = FileSource(name, spec.connection, connection.path, spec.files, layout, empty="allow")
        columns = {
            column.name: LookupColumn(column.name, column.type, column.nullable or column.name in layout.ignoring)
            for column in layout.columns
        }
        return LookupRows(source, columns, "layout", "Declare one of the columns otherwise in its layout.")

    def _has_names_of_its_own(self, files: list[str], path: DocumentPath) -> bool:
        """Whether the rows of the lookup do not depend on how many streams there are."""
        by_stream = next((pattern for pattern in files if STREAM_PLACEHOLDER in pattern), None)
        if by_stream is not None:
            self._problems.add(
                self._document,
                path,
                f"`{STREAM_PLACEHOLDER}` has no meaning in the files of a lookup: all streams look for all of its rows",
                found=quote(by_stream),
                expected="a pattern that names the files",
                hint=f"Write {quote(by_stream.replace(STREAM_PLACEHOLDER, '*'))}.",
            )
        return by_stream is None

    def _query(self, name: str, spec: LookupSpec, text: str, path: DocumentPath, scope: Scope) -> LookupRows | None:
        own: DocumentPath = (*path, "query")
        read = read_query(text, self._document, own, scope, self._problems)
        query = None if read is None else embedded_query(read, self._document, own, self._problems)
        described = None if query is None else self._described(query, own)
        if query is None or described is None:
            return None
        found = LookupTable(query_columns(described), None)
        if not self._is_usable(spec, query.is_ordered, found, path):
            return None
        columns = found.readable
        places = {column: place for place, (column, _) in enumerate(described)}
        return LookupRows(QuerySource(name, query, places, columns), columns, "query", _CONVERT)

    def _database_query(
        self, name: str, spec: LookupSpec, text: str, path: DocumentPath, scope: Scope, found: LookupTable | None
    ) -> LookupRows | None:
        own: DocumentPath = (*path, "query")
        given = spec.connection or ""
        connection = self._names.connection(given, (*path, "connection"), "the query of a lookup", DATABASES)
        query = read_query(text, self._document, own, scope, self._problems, connection)
        # Whatever the database writes in place of a value: only what can be one is asked here.
        if connection is None or query is None or embedded_query(query, self._document, own, self._problems) is None:
            return None
        if not self._is_usable(spec, query.is_ordered, found, path):
            return None
        source = DatabaseQuerySource(name, connection, query, found)
        return LookupRows(source, source.columns, "query", _CONVERT, is_described=found is not None)

    def _described(self, query: EmbeddedQuery, path: DocumentPath) -> list[tuple[str, str]] | None:
        try:
            return list(described(query))
        except EmbeddedQueryError as error:
            self._problems.add(
                self._document, path, "the query of a lookup is refused", found=error.text, hint=error.hint
            )
            return None

    def _is_usable(self, spec: LookupSpec, is_ordered: bool, found: LookupTable | None, path: DocumentPath) -> bool:
        """Whether the columns of a query that are wanted are there once, in types that lookups have, as far as they
        are known.
        """
        before = len(self._problems)
        if spec.duplicates == "first" and not is_ordered:
            self._problems.add(
                self._document,
                (*path, "duplicates"),
                "the rows of the query have no order, so that none of them is the first",
                expected="ORDER BY at the end of the query, outside of all parentheses",
                hint="Add ORDER BY with columns that tell rows of one key apart.",
            )
        columns = () if found is None else found.columns
        count = Counter(column.name for column in columns)
        native = {column.name: column for column in columns}
        for column in dict.fromkeys([*spec.on.values(), *spec.add.values()]):
            if count[column] > 1:
                self._problems.add(
                    self._document,
                    (*path, "query"),
                    f"{count[column]} columns of the query are called `{show_name(column)}`",
                    expected="each name once",
                    hint="Give one of them another name, with AS.",
                )
            elif column in native and native[column].type is None:
                hint = f"Write CAST({column} AS {cast_of(native[column].native_type)}) AS {column}."
                self._unusable("query", column, native[column].native_type, (*path, "query"), hint)
        return len(self._problems) == before
