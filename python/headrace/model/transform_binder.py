"""Bind the transforms of a data flow: their order, the columns of the rows between them, keys and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.model.annotations import value_at
from headrace.model.bound import Lookup, Transform
from headrace.model.data_type import DataType
from headrace.model.literals import default_text
from headrace.model.lookup import NOT_DESCRIBED, AddedColumn, LookupColumn, LookupKey, LookupTable
from headrace.model.lookup_keys import is_text, key_family, key_types
from headrace.model.lookup_rows import LayoutOf, LookupRows, LookupRowsBinder
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.scope import Scope
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_transforms import (
    REJECT,
    LookupSpec,
    LookupTransformSpec,
    NoMatchSpec,
    SqlTransformSpec,
    TransformSpec,
)
from headrace.model.sql_transform import SqlTransform
from headrace.model.sql_transform_binder import FlowColumn, SqlTransformBinder
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.validation import place_name
from headrace.model.yaml_reader import Document, DocumentPath

_Step = LookupTransformSpec | SqlTransformSpec


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the rows come from that pass the transforms of a flow: its source, or its join. `columns`: theirs, None if
    one of it is wrong; `sources`: the names of all sources.
    """

    name: str
    sources: tuple[str, ...]
    columns: Mapping[str, FlowColumn] | None


@dataclass(frozen=True, slots=True)
class _Flow:
    """Where the transforms of a flow stand: `path` is that of the flow, `reader` that of the destination's `input`."""

    path: DocumentPath
    beginning: Beginning
    transforms: Mapping[str, TransformSpec]
    reader: DocumentPath
    input: str


class TransformBinder:
    """Binds the transforms of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings, layout: LayoutOf) -> None:
        self._document = document
        self._problems = problems
        self._names = names
        self._rows = LookupRowsBinder(document, problems, names, layout)
        self._queries = SqlTransformBinder(document, problems)

    def bind(
        self,
        transforms: Mapping[str, TransformSpec],
        path: DocumentPath,
        beginning: Beginning,
        reader: tuple[DocumentPath, str],
        scope: Scope,
        tables: Mapping[str, LookupTable],
    ) -> tuple[Transform, ...] | None:
        """In the order in which rows pass them; None with a problem, or if a value in them is not known yet. `path` is
        that of the data flow, `reader` path and value of the destination's `input`, `tables` those that lookups read,
        as far as they are known.
        """
        order = self._order(_Flow(path, beginning, transforms, *reader))
        if order is None or beginning.columns is None:
            return None
        columns: dict[str, FlowColumn] | None = dict(beginning.columns)
        bound: list[Transform] = []
        for name, spec in order.items():
            own = (*path, "transforms", name)
            if isinstance(spec, SqlTransformSpec):
                query = self._queries.bind(name, spec, columns, (*own, "sql"), scope)
                if query is None:
                    return None
                columns = _computed(query)
                bound.append(query)
                continue
            types = None if columns is None else {column: known.type for column, known in columns.items()}
            lookup = self._lookup(name, spec.lookup, types, (*own, "lookup"), scope, tables.get(name))
            if lookup is None:
                return None
            if columns is not None:
                columns |= _added(lookup)
            bound.append(lookup)
        return tuple(bound)

    def _order(self, flow: _Flow) -> dict[str, _Step] | None:
        """The transforms from the beginning to the destination. None unless each of them is on that way."""
        sources, transforms = flow.beginning.sources, flow.transforms
        steps: dict[str, _Step] = {
            name: own for name, own in transforms.items() if not isinstance(own, JoinTransformSpec)
        }
        names = {**dict.fromkeys(sources), **transforms}
        readers = [(flow.reader, flow.input)]
        readers += [(self._input_path(flow, name), own.input) for name, own in steps.items()]
        both = [name for name in sources if name in transforms]
        for name in both:
            self._problems.add(
                self._document,
                (*flow.path, "transforms", name),
                f"a source and a transform are called `{show_name(name)}`",
                expected="different names",
                hint="Rename one of them.",
                at_key=True,
            )
        if both:
            return None
        kind = "source or transform" if transforms else "source"
        found = [self._names.look_up(names, name, path, kind) is not None or name in names for path, name in readers]
        if not all(found) or self._goes_in_a_circle(flow, steps):
            return None
        order: list[str] = []
        name = flow.input
        while name in steps:
            order.insert(0, name)
            name = steps[name].input
        unread = [own for own in transforms if own not in order and own != name]
        for own in unread:
            self._problems.add(
                self._document,
                (*flow.path, "transforms", own),
                f"the rows of the transform `{show_name(own)}` do not reach the destination",
                found=f"the destination reads `{show_name(flow.input)}`",
                expected="every transform on the way from the source to the destination",
                hint=f"Set `input: {show_name(own)}` where they should arrive, or remove the transform.",
                at_key=True,
            )
        return None if unread else {own: steps[own] for own in order}

    def _goes_in_a_circle(self, flow: _Flow, steps: Mapping[str, _Step]) -> bool:
        seen: set[str] = set()
        for start in steps:
            way: list[str] = []
            name = start
            while name in steps and name not in seen and name not in way:
                way.append(name)
                name = steps[name].input
            seen.update(way)
            if name in way:
                circle = [*way[way.index(name) :], name]
                self._problems.add(
                    self._document,
                    self._input_path(flow, way[-1]),
                    "the inputs of transforms go in a circle",
                    found=" reads ".join(f"`{show_name(own)}`" for own in circle),
                    expected="a way from the source to the destination",
                    hint=f"Let one of them read `{show_name(flow.beginning.name)}`.",
                )
                return True
        return False

    def _input_path(self, flow: _Flow, name: str) -> DocumentPath:
        return (*flow.path, "transforms", name, "input")

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
            name, rows.source, bound, added, spec.no_match == REJECT, spec.duplicates == "first", ignores_case
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
                added.append(AddedColumn(new, NOT_DESCRIBED, name, theirs, True, None, spec.no_match == REJECT))
                continue
            column = rows.columns[theirs]
            default = self._default(new, column, spec, (*path, "no_match", "default"))
            is_right = is_right and default is not None
            text = default.text if default is not None else None
            added.append(AddedColumn(new, column.type, name, theirs, column.nullable, text, spec.no_match == REJECT))
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


def _computed(query: SqlTransform) -> dict[str, FlowColumn] | None:
    """The columns behind a query; None if they are not known."""
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
