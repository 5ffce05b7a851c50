"""What a union is in a plan: the layouts of its sources, where their columns go, what the core is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.model import FIRST, DataType, FileSource, FlowRows, Transform, Union, UnitedColumn, columns_of
from headrace.planning.made_columns import made_notes
from headrace.planning.run_facts import RunFacts, layout_of_run
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.together import as_declared, one_behind_the_other, refuse_common_files, source_number


def united(union: Union, snapshots: Sequence[SourceSnapshot]) -> SourceSnapshot:
    """The files of all sources as those of one. Raises SourceError for a file that two of them name."""
    refuse_common_files(snapshots[: len(union.brought)], union.name)
    refuse_common_files(snapshots)
    return replace(one_behind_the_other(snapshots), name=union.name or " and ".join(own.name for own in snapshots))


@dataclass(frozen=True)
class UnionPlan:
    """The union of a data flow. `layouts`: of its sources, as the core reads them; `first_files`: the number of the
    first file of each, of one without files that of the next one; `columns`: those of the rows; `types`: as which they
    are read; `arriving`: for each source that it brings together the names of the columns that its rows have then.
    """

    union: Union
    layouts: tuple[dict[str, Any], ...]
    first_files: tuple[int, ...]
    columns: tuple[UnitedColumn, ...]
    types: tuple[DataType, ...]
    arriving: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.union.name

    @property
    def sources(self) -> tuple[FileSource, ...]:
        """All of the flow, in the order of their files."""
        return self.union.sources

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of all sources, in the order of their files."""
        return tuple(source.name for source in self.union.sources)

    @property
    def first_apart(self) -> int:
        """How many sources come together, those in front of sources apart."""
        return len(self.union.brought)

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it takes of each source, if any of them have passed transforms."""
        return self.union.inputs if self.union.has_fronts else ()

    @property
    def taken(self) -> tuple[FlowRows, ...]:
        """The same: there are no others."""
        return self.inputs

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all sources by their numbers."""
        return self.source_names

    def meeting_of(self, _number: int) -> str:
        """The name of what rows of a source come to."""
        return self.name

    @property
    def column_names(self) -> list[str]:
        """Those of the rows that come out."""
        return [column.name for column in self.columns]

    @property
    def has_apart(self) -> bool:
        """Whether the flow has further sources, whose rows come together with no others."""
        return bool(self.union.apart)

    def without_apart(self) -> UnionPlan:
        """The same of a flow without these."""
        own, count = replace(self.union, apart=()), self.first_apart
        return replace(self, union=own, layouts=self.layouts[:count], first_files=self.first_files[:count])

    def source_number(self, file: int) -> int:
        """The number of the source that a file is of, from 0."""
        return source_number(self.first_files, file)

    def core_spec(self, run: RunFacts | None, place_of: Callable[[FlowRows], dict[str, Any]]) -> dict[str, Any]:
        """The members of a flow spec that say how rows come together; the layout of the first source is one itself.
        `place_of`: where the core finds rows.
        """
        places = [self._places(number) for number in range(self.first_apart)]
        sources = [
            {
                "name": source.name,
                **({"layout": layout_of_run(layout, run)} if number else {}),
                "first_file": self.first_files[number],
                **({"places": places[number]} if number < len(places) else {"places": [], "apart": True}),
            }
            for number, (source, layout) in enumerate(zip(self.union.sources, self.layouts, strict=True))
        ]
        columns = [
            {"name": own.name, "type": data_type.to_core(), "nullable": self._may_be_null(number, places)}
            for number, (own, data_type) in enumerate(zip(self.columns, self.types, strict=True))
        ]
        # Of sources beside it they mean nothing.
        apart = self.union.apart if self.inputs else ()
        inputs = [place_of(rows) for rows in (*self.inputs, *(FIRST for _ in apart))]
        own = {"name": self.name, "columns": columns, "sources": sources, **({"inputs": inputs} if inputs else {})}
        return {"union": own}

    def _places(self, number: int) -> list[int | None]:
        """For each column which one of the source's rows it is."""
        names = self.arriving[number]
        return [None if (own := column.columns[number]) is None else names.index(own) for column in self.columns]

    def _may_be_null(self, column: int, places: Sequence[Sequence[int | None]]) -> bool:
        if self.union.has_fronts:
            return self.columns[column].may_be_null
        for layout, own in zip(self.layouts, places, strict=False):  # behind these are those of sources apart
            place = own[column]
            if place is None:
                return True
            # What is made is never NULL.
            if place < len(layout["columns"]) and layout["columns"][place]["nullable"]:
                return True
        return False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        names = self.source_names[: self.first_apart]
        lacking = [
            f"{own.name} is NULL in the rows of {' and '.join(own.lacking)}" for own in self.columns if own.lacking
        ]
        inputs = [rows.shown for rows in self.inputs]
        return {
            "name": self.name,
            "sources": list(names),
            **({"inputs": inputs} if inputs else {}),
            "columns": [
                {
                    "name": own.name,
                    "type": str(own.type),
                    "from": dict(zip(names, own.columns, strict=True)),
                }
                for own in self.columns
            ],
            "text": "; ".join([f"{self.name}: the rows of {', then '.join(inputs or names)}", *lacking]),
        }


def apart(union: Union, layouts: Sequence[dict[str, Any]], source: SourceSnapshot) -> UnionPlan:
    """Of sources whose rows do not come together, or do not any more: it says which file is of which source, no more.
    It has no columns, and nobody behind it.
    """
    return UnionPlan(union, tuple(layouts), tuple(part.first_file for part in source.parts), (), (), ())


def plan_union(
    union: Union,
    transforms: Sequence[Transform],
    types: Mapping[str, DataType],
    not_null: Collection[str],
    source: SourceSnapshot,
) -> UnionPlan:
    """With the types and the NOT NULL of columns that the destination has; behind transforms as layouts have them.
    Columns that are made are there if they are among `types`. `transforms`: of the flow.
    """
    columns = tuple(own for own in union.columns if own.from_ is None or own.name in types)

    def layout(number: int) -> dict[str, Any]:
        if union.has_fronts or number >= len(union.brought):
            return as_declared(union.sources[number])
        own = [(name, column) for column in columns if (name := column.columns[number]) is not None]
        # Where rows lack it, a column that may not be NULL was refused.
        never_null = {name for name, column in own if column.name in not_null}
        read_as = {name: types.get(column.name, column.type) for name, column in own}
        return union.sources[number].layout.to_core(never_null, read_as)

    def arriving(number: int) -> tuple[str, ...]:
        # As the core has them: made ones behind those that are read.
        read = [*layouts[number]["columns"], *layouts[number].get("made", ())]
        if not union.has_fronts:
            return tuple(own["name"] for own in read)
        declared = {own.name: own for own in union.sources[number].layout.columns}
        first = [declared[own["name"]] for own in read]
        return tuple(own.name for own in columns_of(first, transforms, union.inputs[number]))

    layouts = tuple(layout(number) for number in range(len(union.sources)))
    return UnionPlan(
        union,
        layouts,
        tuple(part.first_file for part in source.parts),
        columns,
        tuple(types.get(own.name, own.type) for own in columns),
        tuple(arriving(number) for number in range(len(union.brought))),
    )


def made_notes_of_union(union: Union, loaded: Collection[str], source: SourceSnapshot) -> list[str]:
    """Which columns are made, by source, and what that costs."""
    notes = []
    for number, own in enumerate(union.brought):
        asked = {column.columns[number] for column in union.columns if column.name in loaded}
        known = {name for name in asked if name is not None}
        notes += [f"{own.name}: {note}" for note in made_notes(own.layout.made, known, source.part(number))]
    return notes


def lacking_types(union: Union) -> list[list[DataType]]:
    """For each source the types of the columns that its rows get as NULL; none for sources apart."""
    brought = [
        [column.type for column in union.columns if column.columns[number] is None]
        for number in range(len(union.brought))
    ]
    return [*brought, *([] for _ in union.apart)]
