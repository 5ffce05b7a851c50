"""Bind the union of a data flow: its sources, and the columns of their rows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.file_source import FileSource
from headrace.model.layout_column import Column
from headrace.model.meeting_rows import MeetingRows
from headrace.model.problems import ProblemCollector
from headrace.model.reunion import Reunion
from headrace.model.reunion_binder import ReunionBinder
from headrace.model.spec_unions import ReunionSpec, UnionSpec
from headrace.model.suggest import show_name
from headrace.model.together import Union
from headrace.model.union import UnitedColumn
from headrace.model.yaml_reader import Document, DocumentPath

# The columns of a source by their names, without regard to case.
_Own = Mapping[str, Column]


class UnionBinder:
    """Binds the unions of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems
        self._reunions = ReunionBinder(document, problems)

    def of_sources(self, name: str, spec: UnionSpec, path: DocumentPath, rows: Sequence[MeetingRows]) -> Union | None:
        """`path` is that of `union`; `rows`: of each source. None with a problem."""
        united = tuple(own.files for own in rows)
        columns = [{column.name.lower(): column for column in own.layout.columns} for own in united]
        paths: list[DocumentPath] = [(*path, "sources", number) for number in range(len(rows))]
        if not self._have_equal_types(united, columns, paths):
            return None
        if spec.missing == "error" and not self._have_all(united, columns, paths):
            return None
        names = dict.fromkeys(key for own in columns for key in own)
        inputs = tuple(own.rows for own in rows)
        return Union(name, united, tuple(_united(key, united, columns) for key in names), inputs)

    def of_inputs(self, name: str, spec: ReunionSpec, path: DocumentPath, rows: Sequence[MeetingRows]) -> Union | None:
        """The same of rows that have passed transforms in front of it, some of them at least."""
        bound = self._reunions.bind(name, spec, [own.columns for own in rows], path)
        if bound is None:
            return None
        sources, inputs = tuple(own.files for own in rows), tuple(own.rows for own in rows)
        if not bound.is_described:
            return Union(name, sources, (), inputs, is_described=False)
        return Union(name, sources, _of_reunion(bound, rows), inputs)

    def _have_equal_types(
        self, sources: Sequence[FileSource], columns: Sequence[_Own], paths: Sequence[DocumentPath]
    ) -> bool:
        first: dict[str, tuple[FileSource, Column]] = {}
        is_right = True
        for source, own, path in zip(sources, columns, paths, strict=True):
            for key, column in own.items():
                whose, wanted = first.setdefault(key, (source, column))
                if column.type == wanted.type:
                    continue
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"the column `{show_name(wanted.name)}` has different types in the sources of the union",
                    found=f"{_place(whose, wanted)}; {_place(source, column)}",
                    expected="one type",
                    hint="Declare it alike in both layouts, or rename one of the two columns.",
                )
        return is_right

    def _have_all(self, sources: Sequence[FileSource], columns: Sequence[_Own], paths: Sequence[DocumentPath]) -> bool:
        is_right = True
        for source, own, path in zip(sources, columns, paths, strict=True):
            lacking: dict[str, str] = {}
            for other, theirs in zip(sources, columns, strict=True):
                for key, column in theirs.items():
                    if key not in own:
                        lacking.setdefault(key, f"`{show_name(column.name)}` (`{show_name(other.name)}` has it)")
            if lacking:
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"the source `{show_name(source.name)}` lacks {'a column' if len(lacking) == 1 else 'columns'} of "
                    "the union",
                    found=", ".join(lacking.values()),
                    expected="the same columns in all sources, in any order",
                    hint="Write `missing: null` in the union for NULL in these rows, or correct the names in the "
                    "layouts.",
                )
        return is_right


def _place(source: FileSource, column: Column) -> str:
    number = source.layout.columns.index(column) + 1
    return f"`{show_name(column.name)}` of `{show_name(source.name)}` (column {number} of its layout) is {column.type}"


def _united(key: str, sources: Sequence[FileSource], columns: Sequence[_Own]) -> UnitedColumn:
    found = [own.get(key) for own in columns]
    there = [(source, column) for source, column in zip(sources, found, strict=True) if column is not None]
    lacking = tuple(source.name for source, column in zip(sources, found, strict=True) if column is None)
    made = [column.from_ for _, column in there if column.from_ is not None]
    first = there[0][1]
    return UnitedColumn(
        first.name,
        first.type,
        nullable=bool(lacking) or any(column.nullable for _, column in there),
        may_be_null=bool(lacking)
        or any(
            column.from_ is None and (column.nullable or column.name in source.layout.ignoring)
            for source, column in there
        ),
        columns=tuple(None if column is None else column.name for column in found),
        lacking=lacking,
        from_=made[0] if made else None,
        is_made_alike=len(made) == len(there) and len(set(made)) == 1,
    )


def _of_reunion(bound: Reunion, rows: Sequence[MeetingRows]) -> tuple[UnitedColumn, ...]:
    columns = []
    for place, own in enumerate(bound.columns):
        origins = tuple(of_input[place] for of_input in bound.origins)
        lacking = tuple(item.files.name for item, origin in zip(rows, origins, strict=True) if origin is None)
        columns.append(UnitedColumn(own.name, own.type, own.nullable, own.nullable, origins, lacking))
    return tuple(columns)
