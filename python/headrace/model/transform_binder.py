"""Bind the transforms of a data flow: their order, the columns of the rows between them, keys and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.model.annotations import value_at
from headrace.model.bound import Lookup, Source, Transform
from headrace.model.data_type import DataType
from headrace.model.flow_graph import FlowGraph, Reader
from headrace.model.flow_rows import FlowRows, rows_of
from headrace.model.flow_steps import Step, inputs_of, outputs_of
from headrace.model.fronts import Fronts
from headrace.model.literals import default_text
from headrace.model.lookup import NOT_DESCRIBED, AddedColumn, LookupColumn, LookupKey, LookupTable
from headrace.model.lookup_keys import is_text, key_family, key_types
from headrace.model.lookup_rows import LayoutOf, LookupRows, LookupRowsBinder
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.reunion import Reunion
from headrace.model.reunion_binder import ReunionBinder
from headrace.model.scope import Scope
from headrace.model.spec_transforms import (
    OUTPUT,
    REJECT,
    LookupSpec,
    NoMatchSpec,
    SplitTransformSpec,
    SqlTransformSpec,
    TogetherSpec,
    TransformSpec,
)
from headrace.model.spec_unions import ReunionTransformSpec
from headrace.model.split_binder import SplitBinder
from headrace.model.sql_transform import SqlTransform
from headrace.model.sql_transform_binder import FlowColumn, SqlTransformBinder
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.together import Join, Together
from headrace.model.together_binder import TogetherBinder
from headrace.model.union import UnitedColumn
from headrace.model.validation import place_name
from headrace.model.yaml_reader import Document, DocumentPath

_Columns = dict[str, FlowColumn]


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the rows of a flow come from. `sources`: None for one that is wrong itself; `fronts`: where their rows come
    together, if they do, None with one source.
    """

    sources: Mapping[str, Source | None]
    fronts: Fronts | None


@dataclass(frozen=True, slots=True)
class BoundWays:
    """For each destination what rows may pass on their way to it, each behind what it reads; those in front of
    `together`, or beside it, come first, by their sources.
    """

    transforms: Mapping[str, tuple[Transform, ...]]
    together: Together | None


class Rebinding:
    """Binds the transforms of a data flow once more, when the tables of their lookups are known. All destinations of
    the flow ask for the same, one after the other: it is done once. `bind` raises BindingError for what does not fit.
    """

    def __init__(self, bind: Callable[[Mapping[str, LookupTable]], BoundWays]) -> None:
        self._bind = bind
        self._known: tuple[Mapping[str, LookupTable], BoundWays] | None = None

    def bound(self, tables: Mapping[str, LookupTable]) -> BoundWays:
        """With these tables."""
        if self._known is None or self._known[0] != tables:
            self._known = dict(tables), self._bind(tables)
        return self._known[1]


class TransformBinder:
    """Binds the transforms of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings, layout: LayoutOf) -> None:
        self._document = document
        self._problems = problems
        self._names = names
        self._rows = LookupRowsBinder(document, problems, names, layout)
        self._queries = SqlTransformBinder(document, problems)
        self._splits = SplitBinder(document, problems)
        self._reunions = ReunionBinder(document, problems)
        self._together = TogetherBinder(document, problems, names)

    def bind(
        self,
        transforms: Mapping[str, TransformSpec],
        path: DocumentPath,
        beginning: Beginning,
        readers: Sequence[Reader],
        scope: Scope,
        tables: Mapping[str, LookupTable],
    ) -> BoundWays | None:
        """None with a problem, or if a value in them is not known yet. `path` is that of the data flow, `readers` the
        destinations, `tables` those that lookups read, as far as they are known.
        """
        sources, fronts = beginning.sources, beginning.fronts
        if fronts is not None and not self._together.are_right(fronts, transforms, sources, path):
            return None
        graph = FlowGraph(self._document, self._problems, path, fronts, tuple(sources), transforms, readers)
        order = graph.order()
        if order is None or None in sources.values():
            return None
        behind: dict[FlowRows, _Columns | None] = {
            FlowRows(name): _first_columns(source) for name, source in sources.items() if source is not None
        }
        bound: dict[str, Transform] = {}
        joins: dict[str, Join] = {}
        together: Together | None = self._together.apart(fronts, sources)
        for name, spec in order.items():
            columns = [behind.get(rows) for rows in inputs_of(spec)]
            if fronts is not None and name in fronts.meetings:
                place = (*path, "transforms", name)
                meeting = self._together.bind(fronts, name, spec, place, {**sources, **joins}, columns)
                if meeting is None:
                    return None
                behind[FlowRows(name)] = _together_columns(meeting)
                if isinstance(meeting, Join) and name in fronts.inner:
                    joins[name] = meeting
                    continue
                is_beside = any(fronts.source_of(rows_of(reader.input)) is not None for reader in readers)
                together = replace(self._together.with_apart(meeting, fronts, sources), is_beside=is_beside)
                continue
            assert not isinstance(spec, TogetherSpec)
            own = self._transform(name, spec, columns, (*path, "transforms", name), scope, tables)
            if own is None or not self._may_stand_there(own, fronts, path):
                return None
            front_of = None if fronts is None else fronts.places.get(name)
            bound[name] = own if front_of is None else replace(own, front_of=front_of)
            behind |= dict.fromkeys((FlowRows(name, output) for output in outputs_of(spec)), columns[0])
            if isinstance(own, SqlTransform | Reunion):
                behind[FlowRows(name)] = _computed(own)
            elif isinstance(own, Lookup):
                behind[FlowRows(name)] = None if columns[0] is None else columns[0] | _added(own)
        ways = {
            reader.name: tuple(bound[name] for name in graph.way(reader.input) if name in bound) for reader in readers
        }
        return BoundWays({name: tuple(sorted(way, key=_place_of_front)) for name, way in ways.items()}, together)

    def _may_stand_there(self, own: Transform, fronts: Fronts | None, path: DocumentPath) -> bool:
        """Whether it is not a query over all rows of one of several sources."""
        is_gathered = isinstance(own, SqlTransform) and own.gathered is not None
        if not is_gathered or fronts is None or own.name not in fronts.places:
            return True
        is_apart = len(fronts.entries) <= fronts.places[own.name] < len(fronts.sources)
        where = (
            "its data flow has sources whose rows do not come together"
            if is_apart
            else f"stands in front of `{show_name(fronts.together)}`"
        )
        self._problems.add(
            self._document,
            (*path, "transforms", own.name),
            f"the query `{show_name(own.name)}` needs all rows, and {where}, which is not possible in this version",
            expected="a query that each row goes through by itself",
            hint="Write a data flow of its own for its source."
            if is_apart
            else "Put it behind, or load its rows into a table by a data flow of its own.",
            at_key=True,
        )
        return False

    def _transform(
        self,
        name: str,
        spec: Step,
        inputs: Sequence[_Columns | None],
        path: DocumentPath,
        scope: Scope,
        tables: Mapping[str, LookupTable],
    ) -> Transform | None:
        """`inputs`: the columns of the rows that arrive, by each input."""
        columns = inputs[0]
        if isinstance(spec, ReunionTransformSpec):
            return self._reunions.bind(name, spec.union, inputs, (*path, "union"))
        if isinstance(spec, SqlTransformSpec):
            return self._queries.bind(name, spec, columns, (*path, "sql"), scope)
        if isinstance(spec, SplitTransformSpec):
            return self._splits.bind(name, spec, columns, (*path, "split"), scope)
        types = None if columns is None else {column: known.type for column, known in columns.items()}
        own = self._lookup(name, spec.lookup, types, (*path, "lookup"), scope, tables.get(name))
        return None if own is None else replace(own, input=spec.input)

    def _lookup(
        self,
        name: str,
        spec: LookupSpec,
        types: Mapping[str, DataType | None] | None,
        path: DocumentPath,
        scope: Scope,
        found: LookupTable | None,
    ) -> Lookup | None:
        """`types`: those of the rows that arrive, as far as they are known, None if not even their names are; `found`:
        the table that it reads.
        """
        rows = self._rows.bind(name, spec, path, scope, found)
        if rows is None:
            return None
        columns = rows.columns
        keys = [self._key(own, theirs, types, rows, (*path, "on", own)) for own, theirs in spec.on.items()]
        added = self._added(name, spec, types, rows, path)
        if added is None or not all(keys):
            return None
        bound = tuple(key for key in keys if key is not None)
        if not self._compare_alike(spec, bound, rows, path):
            return None
        ignores_case = spec.case == "ignore"
        if ignores_case and rows.is_described and not any(is_text(columns[key.lookup_column].type) for key in bound):
            self._problems.add(
                self._document,
                (*path, "case"),
                "`case: ignore` means nothing for this key",
                found=", ".join(f"`{show_name(name)}` {columns[name].type}" for name in spec.on.values()),
                expected="a key with a text in it",
                hint="Remove `case`.",
            )
            return None
        return Lookup(
            name,
            rows.source,
            bound,
            added,
            spec.no_match == REJECT,
            spec.duplicates == "first",
            ignores_case,
            spec.no_match == OUTPUT,
        )

    def _compare_alike(self, spec: LookupSpec, keys: Sequence[LookupKey], rows: LookupRows, path: DocumentPath) -> bool:
        """Whether it is said how texts are compared that their database does not compare by their bytes."""
        other = next((name for key in keys if (name := key.lookup_column) and _compares(rows, name)), None)
        if other is None or "case" in spec.model_fields_set:
            return True
        self._problems.add(
            self._document,
            (*path, "on"),
            f"the database does not compare `{show_name(other)}` byte by byte, as lookups do",
            found=f"`{show_name(other)}` of the lookup has {_compares(rows, other)}",
            expected="`case: ignore`, or `case: exact` if bytes are meant",
            hint="Write `case: ignore`.",
        )
        return False

    def _key(
        self,
        own: str,
        theirs: str,
        types: Mapping[str, DataType | None] | None,
        rows: LookupRows,
        path: DocumentPath,
    ) -> LookupKey | None:
        is_known = types is None or self._known(own, types, path, "the rows have", at_key=True)
        if not (self._known_in(rows, theirs, path) and is_known):
            return None
        found = None if types is None else types[own]
        if found is None or not rows.is_described:
            return LookupKey(own, theirs)
        wanted = rows.columns[theirs].type
        families = key_family(found), key_family(wanted)
        if families[0] is not None and families[0] == families[1]:
            return LookupKey(own, theirs)
        if None in families:
            what = f"a column of type {found if families[0] is None else wanted} cannot be a key"
            expected = "another column: floats and json have several texts for one value"
        else:
            what = f"a key of type {wanted} cannot be found by {found}"
            expected = f"`{show_name(own)}` of type {key_types(wanted)}"
        self._problems.add(
            self._document,
            path,
            what,
            found=f"`{show_name(own)}` is {found}, `{show_name(theirs)}` of the lookup is {wanted}",
            expected=expected,
            hint=rows.mend,
        )
        return None

    def _added(
        self,
        name: str,
        spec: LookupSpec,
        types: Mapping[str, DataType | None] | None,
        rows: LookupRows,
        path: DocumentPath,
    ) -> tuple[AddedColumn, ...] | None:
        taken = {own.lower(): own for own in types or ()}
        never_misses = spec.no_match in (REJECT, OUTPUT)
        added, is_right = [], True
        for number, (new, theirs) in enumerate(spec.add.items()):
            written = value_at(self._document.value, (*path, "add"))
            place: DocumentPath = (*path, "add", number if isinstance(written, list) else new)
            if not self._known_in(rows, theirs, place):
                is_right = False
                continue
            if new.lower() in taken:
                is_right = False
                self._problems.add(
                    self._document,
                    place,
                    f"the rows have a column `{show_name(taken[new.lower()])}` before the lookup `{show_name(name)}`",
                    found=quote(new),
                    expected="another name for the new column",
                    hint=f"Write `add: {{NEW: {show_name(theirs)}}}`.",
                )
            if not rows.is_described:
                added.append(AddedColumn(new, NOT_DESCRIBED, name, theirs, True, None, never_misses))
                continue
            column = rows.columns[theirs]
            default = self._default(new, column, spec, (*path, "no_match", "default"))
            is_right = is_right and default is not None
            text = default.text if default is not None else None
            added.append(AddedColumn(new, column.type, name, theirs, column.nullable, text, never_misses))
        return tuple(added) if self._only_defaults_of(spec, (*path, "no_match", "default")) and is_right else None

    def _only_defaults_of(self, spec: LookupSpec, path: DocumentPath) -> bool:
        """Whether every default belongs to a column that is added."""
        given = spec.no_match.default if isinstance(spec.no_match, NoMatchSpec) else None
        others = [name for name in given if name not in spec.add] if isinstance(given, Mapping) else []
        for name in others:
            self._problems.add(
                self._document,
                (*path, name),
                f"no column `{show_name(name)}` is added",
                found=quote(name),
                expected=one_of(spec.add),
                hint=did_you_mean(name, spec.add) or "Remove the default.",
                at_key=True,
            )
        return not others

    def _default(self, new: str, column: LookupColumn, spec: LookupSpec, path: DocumentPath) -> _Default | None:
        """None with a problem noted if the column does not hold it, or it is missing."""
        if not isinstance(spec.no_match, NoMatchSpec):
            return _Default(None)
        value = spec.no_match.default
        if isinstance(value, Mapping):
            if new not in value:
                self._problems.add(
                    self._document,
                    path,
                    f"the column `{show_name(new)}` has no default",
                    expected=f"{show_name(new)}: a value of type {column.type}, or null",
                    hint=f"Add `{show_name(new)}`.",
                    at_key=True,
                )
                return None
            path, value = (*path, new), value[new]
        if value is None:
            return _Default(None)
        try:
            return _Default(default_text(value, column.type))
        except ValueError as error:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} is no value of the column `{show_name(new)}`",
                found=show_value(value),
                expected=f"{error}: the column is of type {column.type}",
                hint="Give each column its own default: `default: {column: value}`." if len(spec.add) > 1 else None,
            )
            return None

    def _known_in(self, rows: LookupRows, name: str, path: DocumentPath) -> bool:
        """Whether the lookup has the column, as far as that is known."""
        return not rows.is_described or self._known(name, rows.columns, path, "the lookup has", rows.word)

    def _known(
        self,
        name: str,
        columns: Mapping[str, object],
        path: DocumentPath,
        whose: str,
        word: str = "layout",
        *,
        at_key: bool = False,
    ) -> bool:
        if name not in columns:
            self._problems.add(
                self._document,
                path,
                f"{whose} no column `{show_name(name)}`",
                found=quote(name),
                expected=one_of(columns),
                hint=did_you_mean(name, columns) or f"Name a column of the {word}.",
                at_key=at_key,
            )
        return name in columns


def _place_of_front(own: Transform) -> float:
    return float("inf") if own.front_of is None else own.front_of


def _first_columns(source: Source) -> _Columns:
    """Those that the rows of a source have."""
    ignoring = source.layout.ignoring
    return {
        own.name: FlowColumn(own.type, (own.nullable or own.name in ignoring) and own.from_ is None, own.name)
        for own in source.layout.columns
    }


def _together_columns(together: Together) -> _Columns | None:
    """Those of the rows that have come together; None if they are not known."""
    if not together.is_described:
        return None
    return {
        own.name: FlowColumn(own.type, own.may_be_null if isinstance(own, UnitedColumn) else own.nullable, own.name)
        for own in together.columns
    }


def _computed(query: SqlTransform | Reunion) -> dict[str, FlowColumn] | None:
    """The columns behind a query, or a union; None if they are not known."""
    if not query.is_described:
        return None
    return {column.name: FlowColumn(column.type, column.nullable, column.field) for column in query.columns}


def _added(lookup: Lookup) -> dict[str, FlowColumn]:
    types = {column.name: column.type if lookup.is_described else None for column in lookup.added}
    return {column.name: FlowColumn(types[column.name], column.nullable) for column in lookup.added}


def _compares(rows: LookupRows, name: str) -> str | None:
    return rows.columns[name].compares if name in rows.columns else None


@dataclass(frozen=True, slots=True)
class _Default:
    """Canonical text, None for NULL."""

    text: str | None
