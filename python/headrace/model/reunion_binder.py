"""Bind unions of rows that have gone different ways: the columns of their rows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.data_type import DataType
from headrace.model.duckdb_types import native_type
from headrace.model.flow_rows import FlowRows, rows_of
from headrace.model.problems import ProblemCollector
from headrace.model.reunion import Reunion
from headrace.model.spec_unions import ReunionSpec
from headrace.model.sql_transform import ComputedColumn
from headrace.model.sql_transform_binder import FlowColumn
from headrace.model.suggest import show_name
from headrace.model.yaml_reader import Document, DocumentPath

# The columns of an input by their names without regard to case, each with its name.
_Own = Mapping[str, tuple[str, FlowColumn]]


class ReunionBinder:
    """Of one package's unions. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def bind(
        self, name: str, spec: ReunionSpec, columns: Sequence[Mapping[str, FlowColumn] | None], path: DocumentPath
    ) -> Reunion | None:
        """None with a problem. `columns`: those of each input, None if they are not known; `path`: of `union`."""
        inputs = tuple(rows_of(own) for own in spec.inputs)
        known = [_by_name(own) for own in columns if own is not None]
        if len(known) < len(columns):
            return Reunion(name, inputs)
        paths: list[DocumentPath] = [(*path, "inputs", number) for number in range(len(inputs))]
        is_right = spec.missing == "null" or self._have_all(inputs, known, paths)
        if not (self._have_equal_types(inputs, known, paths) and is_right):
            return None
        names = dict.fromkeys(key for own in known for key in own)
        united = [_united(name, key, known) for key in names]
        bound = [own for own in united if own is not None]
        if len(bound) < len(united):
            return Reunion(name, inputs)
        origins = tuple(tuple(own[key][0] if key in own else None for key in names) for own in known)
        return Reunion(name, inputs, tuple(bound), origins, is_described=True)

    def _have_all(self, inputs: Sequence[FlowRows], columns: Sequence[_Own], paths: Sequence[DocumentPath]) -> bool:
        is_right = True
        for rows, own, path in zip(inputs, columns, paths, strict=True):
            lacking: dict[str, str] = {}
            for other, theirs in zip(inputs, columns, strict=True):
                for key, (column, _) in theirs.items():
                    if key not in own:
                        lacking.setdefault(key, f"`{show_name(column)}` (`{show_name(other.shown)}` has it)")
            if lacking:
                is_right = False
                self._problems.add(
                    self._document,
                    path,
                    f"the rows of `{show_name(rows.shown)}` lack {'a column' if len(lacking) == 1 else 'columns'} of "
                    "the union",
                    found=", ".join(lacking.values()),
                    expected="the same columns in all inputs, in any order",
                    hint="Write `missing: null` in the union for NULL in these rows, or add what is missing by a query "
                    "in front of it.",
                )
        return is_right

    def _have_equal_types(
        self, inputs: Sequence[FlowRows], columns: Sequence[_Own], paths: Sequence[DocumentPath]
    ) -> bool:
        first: dict[str, tuple[FlowRows, str, DataType]] = {}
        is_right = True
        for rows, own, path in zip(inputs, columns, paths, strict=True):
            for key, (column, known) in own.items():
                if known.type is None:
                    continue
                whose, wanted, wanted_type = first.setdefault(key, (rows, column, known.type))
                if _common(wanted_type, known.type) is not None:
                    continue
                is_right = False
                cast = f"CAST({column} AS {native_type(wanted_type)}) AS {column}"
                self._problems.add(
                    self._document,
                    path,
                    f"the column `{show_name(wanted)}` has different types in the inputs of the union",
                    found=f"`{show_name(wanted)}` of `{show_name(whose.shown)}` is {wanted_type}; "
                    f"`{show_name(column)}` of `{show_name(rows.shown)}` is {known.type}",
                    expected="one type",
                    hint=f"Write `{cast}` in a query in front of the union.",
                )
        return is_right


def _by_name(columns: Mapping[str, FlowColumn]) -> _Own:
    return {name.lower(): (name, own) for name, own in columns.items()}


def _united(transform: str, key: str, columns: Sequence[_Own]) -> ComputedColumn | None:
    """None if the type of one is not known."""
    found = [own.get(key) for own in columns]
    there = [own for own in found if own is not None]
    together: DataType | None = None
    for _, known in there:
        if known.type is None:
            return None
        together = known.type if together is None else _common(together, known.type)
    if together is None:
        return None
    fields = {None if own is None else own[1].field for own in found}
    nullable = len(there) < len(found) or any(known.nullable for _, known in there)
    field = fields.pop() if len(fields) == 1 else None
    return ComputedColumn(there[0][0], together, nullable, transform, field=field, kind="union")


def _common(one: DataType, other: DataType) -> DataType | None:
    """The type of both: equal ones, or the longer one of texts. What is computed has no length."""
    if one == other:
        return one
    if not {one.kind, other.kind} <= {"string", "varchar"}:
        return None
    if "string" in (one.kind, other.kind):
        return one if one.kind == "string" else other
    return max(one, other, key=lambda own: own.length or 0)
