"""Bind the join of a data flow: its two sides, its keys, and the columns of the rows that come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.model.annotations import value_at
from headrace.model.data_type import DataType
from headrace.model.join import JoinedColumn, JoinKey, Side
from headrace.model.lookup_keys import key_family, key_types
from headrace.model.meeting_rows import MeetingRows
from headrace.model.problems import ProblemCollector
from headrace.model.spec_joins import JoinSpec
from headrace.model.sql_transform_binder import FlowColumn
from headrace.model.suggest import did_you_mean, one_of, quote, show_name
from headrace.model.together import Join
from headrace.model.yaml_reader import Document, DocumentPath

# Sides of which rows may be missing in what comes out.
_MISSING: Final[Mapping[str, tuple[Side, ...]]] = {
    "inner": (),
    "left": ("right",),
    "right": ("left",),
    "full": ("left", "right"),
}


class JoinBinder:
    """Binds the joins of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def bind(self, name: str, spec: JoinSpec, path: DocumentPath, left: MeetingRows, right: MeetingRows) -> Join | None:
        """`path` is that of `join`. None with a problem."""
        sources, inputs = (left.source, right.source), (left.rows, right.rows)
        if not (left.are_described and right.are_described):
            keys = tuple(JoinKey(own, theirs) for own, theirs in spec.on.items())
            so_far = (*_known_so_far(spec, "left", left), *_known_so_far(spec, "right", right))
            return Join(name, spec.type, *sources, keys, so_far, inputs, is_described=False)
        found = [self._key(own, theirs, left, right, (*path, "on", own)) for own, theirs in spec.on.items()]
        taken: dict[str, JoinedColumn] = {}
        columns = (
            *self._columns(name, spec, "left", left, path, taken),
            *self._columns(name, spec, "right", right, path, taken),
        )
        bound = tuple(key for key in found if key is not None)
        if len(bound) < len(found) or None in columns:
            return None
        known = tuple(column for column in columns if column is not None)
        return Join(name, spec.type, *sources, bound, known, inputs)

    def _key(self, own: str, theirs: str, left: MeetingRows, right: MeetingRows, path: DocumentPath) -> JoinKey | None:
        is_known = self._known(own, left, path, at_key=True)
        if not (self._known(theirs, right, path) and is_known):
            return None
        types = [_types(side)[name] for side, name in ((left, own), (right, theirs))]
        families = [key_family(data_type) for data_type in types]
        has_fronts = left.has_front or right.has_front
        if families[0] is not None and families[0] == families[1]:
            return JoinKey(own, theirs)
        if None in families:
            what = f"a column of type {types[0] if families[0] is None else types[1]} cannot be a key"
            expected, hint = (
                "another column: floats and json have several texts for one value",
                "Join by another column.",
            )
        else:
            what = f"keys of the types {types[0]} and {types[1]} cannot be compared"
            expected, hint = (
                f"`{show_name(theirs)}` of type {key_types(types[0])}",
                "Declare both alike in their layouts, or convert one of them by CAST in a query in front of the join."
                if has_fronts
                else "Declare both alike in their layouts.",
            )
        self._problems.add(
            self._document,
            path,
            what,
            found=f"`{show_name(own)}` is {types[0]}, `{show_name(theirs)}` is {types[1]}",
            expected=expected,
            hint=hint,
        )
        return None

    def _columns(
        self,
        name: str,
        spec: JoinSpec,
        side: Side,
        rows: MeetingRows,
        path: DocumentPath,
        taken: dict[str, JoinedColumn],
    ) -> list[JoinedColumn | None]:
        """Those of a side. `taken`: by their names in lower case, those before them."""
        key = f"{side}_columns"
        chosen: Mapping[str, str] | None = getattr(spec, key)
        written = value_at(self._document.value, (*path, key)) if chosen is not None else None
        by_name = _columns(rows)
        wanted = chosen if chosen is not None else {own: own for own in by_name}
        columns: list[JoinedColumn | None] = []
        for number, (new, own) in enumerate(wanted.items()):
            place: DocumentPath = (*path, key, number if isinstance(written, list) else new)
            if not self._known(own, rows, place if chosen is not None else path):
                columns.append(None)
                continue
            column = by_name[own]
            assert column.type is not None
            is_missing = side in _MISSING[spec.type]
            joined = JoinedColumn(new, column.type, side, rows.source.name, own, column.nullable, is_missing)
            first = taken.setdefault(new.lower(), joined)
            if first is not joined:
                self._problems.add(
                    self._document,
                    place if chosen is not None else path,
                    f"both sides of the join `{show_name(name)}` have a column `{show_name(new)}`",
                    found=f"`{show_name(first.column)}` of `{show_name(first.source)}` and `{show_name(own)}` of "
                    f"`{show_name(rows.source.name)}`",
                    expected="each name once in the rows that come out",
                    hint="Write `right_columns` with the columns to keep, as a list or as `new name: column`.",
                )
                columns.append(None)
                continue
            columns.append(joined)
        return columns

    def _known(self, name: str, rows: MeetingRows, path: DocumentPath, *, at_key: bool = False) -> bool:
        columns = _columns(rows)
        source = rows.source
        fields = () if rows.has_front or isinstance(source, Join) else source.layout.made
        made = next((own for own in fields if own.name == name), None)
        if made is not None:
            self._problems.add(
                self._document,
                path,
                f"column `{show_name(name)}` is made from `{made.from_}`, and cannot be in a join yet",
                expected=one_of(columns),
                hint="Leave it out, or join the loaded tables with a task of kind `build`.",
                at_key=at_key,
            )
        elif name not in columns:
            whose = rows.shown if rows.has_front else f"the source `{show_name(rows.source.name)}` has"
            self._problems.add(
                self._document,
                path,
                f"{whose} no column `{show_name(name)}`",
                found=quote(name),
                expected=one_of(columns),
                hint=did_you_mean(name, columns)
                or ("Name one of its columns." if rows.has_front else "Name a column of the layout."),
                at_key=at_key,
            )
        return name in columns


def _known_so_far(spec: JoinSpec, side: Side, rows: MeetingRows) -> list[JoinedColumn]:
    """Columns of a side whose types are known, as long as not all are: then it is said what is wrong with them."""
    known = {} if rows.columns is None else _columns(rows)
    chosen: Mapping[str, str] = getattr(spec, f"{side}_columns") or {own: own for own in known}
    return [
        JoinedColumn(new, found.type, side, rows.source.name, own, found.nullable, side in _MISSING[spec.type])
        for new, own in chosen.items()
        if (found := known.get(own)) is not None and found.type is not None
    ]


def _columns(rows: MeetingRows) -> Mapping[str, FlowColumn]:
    """Those of a side. Of a source itself the ones that stand in its files: `row_number` would be of which side?"""
    if isinstance(rows.source, Join) or (rows.has_front and rows.columns is not None):
        return rows.columns or {}
    return {own.name: FlowColumn(own.type, own.nullable, own.name) for own in rows.source.layout.fields}


def _types(rows: MeetingRows) -> dict[str, DataType]:
    return {name: own.type for name, own in _columns(rows).items() if own.type is not None}
