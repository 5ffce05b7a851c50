"""Bind the join of a data flow: its two sources, its keys, and the columns of the rows that come out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from headrace.model.annotations import value_at
from headrace.model.bound import FileSource, Join, Source
from headrace.model.data_type import DataType
from headrace.model.join import JoinedColumn, JoinKey, Side
from headrace.model.lookup_keys import key_family, key_types
from headrace.model.named_things import NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.sources_read import SourcesRead
from headrace.model.spec_joins import JoinSpec
from headrace.model.suggest import did_you_mean, one_of, quote, show_name
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

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings) -> None:
        self._document = document
        self._problems = problems
        self._read = SourcesRead(document, problems, names, "join", "joined")

    def bind(
        self,
        name: str,
        spec: JoinSpec,
        path: DocumentPath,
        sources: Mapping[str, Source | None],
        transforms: Collection[str],
    ) -> Join | None:
        """`path` is that of `join`; `sources`: those of the flow, None for one that is wrong itself; `transforms`: the
        names of those.
        """
        if not self._read.are_sources({(*path, "left"): spec.left, (*path, "right"): spec.right}, sources, transforms):
            return None
        left = self._read.find(spec.left, (*path, "left"), sources)
        right = self._read.find(spec.right, (*path, "right"), sources)
        if left is None or right is None:
            return None
        keys = [self._key(own, theirs, left, right, (*path, "on", own)) for own, theirs in spec.on.items()]
        taken: dict[str, JoinedColumn] = {}
        columns = (
            *self._columns(name, spec, "left", left, path, taken),
            *self._columns(name, spec, "right", right, path, taken),
        )
        bound = tuple(key for key in keys if key is not None)
        if len(bound) < len(keys) or None in columns:
            return None
        return Join(name, spec.type, left, right, bound, tuple(column for column in columns if column is not None))

    def _key(self, own: str, theirs: str, left: FileSource, right: FileSource, path: DocumentPath) -> JoinKey | None:
        is_known = self._known(own, left, path, at_key=True)
        if not (self._known(theirs, right, path) and is_known):
            return None
        types = [_types(source)[name] for source, name in ((left, own), (right, theirs))]
        families = [key_family(data_type) for data_type in types]
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
                "Declare both alike in their layouts.",
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
        source: FileSource,
        path: DocumentPath,
        taken: dict[str, JoinedColumn],
    ) -> list[JoinedColumn | None]:
        """Those of a side. `taken`: by their names in lower case, those before them."""
        key = f"{side}_columns"
        chosen: Mapping[str, str] | None = getattr(spec, key)
        written = value_at(self._document.value, (*path, key)) if chosen is not None else None
        by_name = {column.name: column for column in source.layout.fields}
        wanted = chosen if chosen is not None else {own: own for own in by_name}
        columns: list[JoinedColumn | None] = []
        for number, (new, own) in enumerate(wanted.items()):
            place: DocumentPath = (*path, key, number if isinstance(written, list) else new)
            if not self._known(own, source, place if chosen is not None else path):
                columns.append(None)
                continue
            column = by_name[own]
            joined = JoinedColumn(
                new, column.type, side, source.name, own, column.nullable, side in _MISSING[spec.type]
            )
            first = taken.setdefault(new.lower(), joined)
            if first is not joined:
                self._problems.add(
                    self._document,
                    place if chosen is not None else path,
                    f"both sides of the join `{show_name(name)}` have a column `{show_name(new)}`",
                    found=f"`{show_name(first.column)}` of `{show_name(first.source)}` and `{show_name(own)}` of "
                    f"`{show_name(source.name)}`",
                    expected="each name once in the rows that come out",
                    hint="Write `right_columns` with the columns to keep, as a list or as `new name: column`.",
                )
                columns.append(None)
                continue
            columns.append(joined)
        return columns

    def _known(self, name: str, source: FileSource, path: DocumentPath, *, at_key: bool = False) -> bool:
        columns = _types(source)
        made = next((column for column in source.layout.made if column.name == name), None)
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
            self._problems.add(
                self._document,
                path,
                f"the source `{show_name(source.name)}` has no column `{show_name(name)}`",
                found=quote(name),
                expected=one_of(columns),
                hint=did_you_mean(name, columns) or "Name a column of the layout.",
                at_key=at_key,
            )
        return name in columns


def _types(source: FileSource) -> dict[str, DataType]:
    return {column.name: column.type for column in source.layout.fields}
