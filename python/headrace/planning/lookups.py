"""What a lookup is in a plan: the columns of the rows that look for something, its memory, what the core is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace import units
from headrace.errors import MemoryLimitError, TypeMismatchError
from headrace.model import AddedColumn, Column, DataType, FileSource, FlowRows, Lookup, UnitedColumn, key_family
from headrace.planning.lookup_reading import LookupReading, planned_reading
from headrace.planning.memory import MemorySplit, memory_for_lookups, value_bytes
from headrace.planning.run_facts import RunFacts
from headrace.planning.source_snapshot import SourceSnapshot

# Bytes for each row of an index while it is built, beside its columns: number and key of the row are there as long as
# the table is filled, which takes up to 15.6 bytes in its worst form (crates/transform/src/lookup).
_ENTRY_BYTES: Final = 32
# A text or a composite key is kept beside its hash.
_LENGTH_BYTES: Final = 4
# What the builder of a stream holds back: 256 partitions of 64 entries of 12 bytes.
_BUILDER_BYTES: Final = 256 * 64 * 12
# What an index takes whatever its rows are: a builder, and a first chunk of each column.
_LEAST_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class LookupPlan:
    """One lookup of a data flow. `reading`: how its rows are read; `key_types`: those of the key columns in the
    rows that arrive.

    `bytes`: what its rows need at most, while they are read; of an unknown number of rows nothing is known. `not_null`:
    columns that go into one that is NOT NULL. `taken`: the outputs by which rows go on.
    """

    lookup: Lookup
    reading: LookupReading
    key_types: tuple[DataType, ...]
    bytes: int
    not_null: frozenset[str] = frozenset()
    taken: tuple[FlowRows, ...] = ()

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.lookup.name

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return self.lookup.inputs

    @property
    def front_of(self) -> int | None:
        """The number of the source in front of whose meeting with others it stands, None behind that."""
        return self.lookup.front_of

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its outputs, in the order of their numbers."""
        return self.lookup.outputs

    @property
    def no_match(self) -> str:
        """What becomes of rows that find nothing: reject, output or default."""
        if self.lookup.sends_misses:
            return "output"
        return "reject" if self.lookup.rejects_misses else "default"

    def transform_spec(self) -> dict[str, Any]:
        """The member of `transforms` of a flow spec."""
        added = [
            {"name": column.name, "type": column.type.to_core(), "nullable": self._may_be_null(column)}
            for column in self.lookup.added
        ]
        keys = [key.column for key in self.lookup.keys]
        return {"name": self.name, "lookup": {"keys": keys, "added": added, "no_match": self.no_match}}

    def _may_be_null(self, column: AddedColumn) -> bool:
        return column.nullable and column.name not in self.not_null

    def core_spec(self, budget_bytes: int, run: RunFacts | None) -> dict[str, Any]:
        """The spec of `core.Lookup`."""
        keys = zip(self.lookup.keys, self.key_types, strict=True)
        return {
            **self._content(budget_bytes, run),
            "keys": [{"column": key.lookup_column, "input": own.to_core()} for key, own in keys],
        }

    def _content(self, budget_bytes: int = 0, run: RunFacts | None = None) -> dict[str, Any]:
        """Its specification but for the types of its keys in the rows that arrive."""
        lookup = self.lookup
        return {
            "name": lookup.name,
            **self.reading.core_spec(run),
            "keys": [key.lookup_column for key in lookup.keys],
            "added": [{"column": column.lookup_column, "default": column.default} for column in lookup.added],
            "keeps_first": lookup.keeps_first,
            "ignores_case": lookup.ignores_case,
            "streams": self.reading.streams,
            "budget_bytes": budget_bytes,
        }

    def is_alike(self, other: LookupPlan) -> bool:
        """Whether both are found in the same rows, by keys of the same columns and types, and add the same: one index
        is enough for both, as for the four dates of a sale. Of one on another way of the flow the types of keys are not
        known: they are taken for the same.
        """
        one, two = (own.lookup.source for own in (self, other))
        is_same_source = isinstance(one, FileSource) or one == replace(two, name=one.name)
        has_same_keys = self.key_types == other.key_types or not (self.key_types and other.key_types)
        if type(one) is not type(two) or not is_same_source or not has_same_keys:
            return False
        return {**self._content(), "name": ""} == {**other._content(), "name": ""}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name,
            "kind": "lookup",
            **self.reading.to_dict(),
            "streams": self.reading.streams,
            "no_match": self.no_match,
            **({"taken": [rows.shown for rows in self.taken]} if self.lookup.sends_misses else {}),
            "duplicates": "first" if self.lookup.keeps_first else "error",
            "case": "ignore" if self.lookup.ignores_case else "exact",
            "on": {key.column: key.lookup_column for key in self.lookup.keys},
            "added": [
                {
                    "name": column.name,
                    "from": column.lookup_column,
                    "type": str(column.type),
                    "nullable": self._may_be_null(column),
                    "default": column.default,
                }
                for column in self.lookup.added
            ],
            "rows": self.reading.rows,
            "bytes": self.bytes,
            "text": self.text(),
        }

    def text(self) -> str:
        """One sentence for plans."""
        about, words = self.reading.rows, self.reading.words
        rows = f"rows of {words}" if about is None else f"about {units.plural(about, 'row')} of {words}"
        size = "" if about is None else f", up to {units.size(self.bytes)} while they are read"
        added = ", ".join(f"{column.name} {column.type}" for column in self.lookup.added)
        misses = "rows that find nothing go on here" if any(rows.output for rows in self.taken) else ""
        finds = "" if misses and len(self.taken) == 1 else f"adds {added}"
        adds = "; ".join(filter(None, (finds, misses)))
        return f"{self.name}: {rows}{size}; {adds}; no match: {_no_match(self.lookup)}"


def plan_lookup(
    lookup: Lookup,
    source: SourceSnapshot,
    types: Mapping[str, DataType],
    streams: int,
    memory_bytes: int,
    table_name: str,
    not_null: Collection[str],
    taken: tuple[FlowRows, ...],
) -> LookupPlan:
    """One lookup of a data flow. `types`: those of the rows that arrive; `source`: what the lookup reads;
    `memory_bytes`: the budget of the run; `not_null`: columns of rows that go into a column that is NOT NULL; `taken`:
    the outputs by which rows go on.

    Raises TypeMismatchError if the target lets a key be read as something that the lookup has not, SourceError for
    files of which no such rows can be made.
    """
    reading = planned_reading(lookup, source, streams, memory_bytes)
    key_types = tuple(types[key.column] for key in lookup.keys)
    _check_keys(lookup, key_types, table_name)
    never_null = frozenset(column.name for column in lookup.added if column.name in not_null)
    return LookupPlan(lookup, reading, key_types, _estimated_bytes(lookup, reading), never_null, taken)


def lookups_beside(
    lookups: Sequence[Lookup], sources: Sequence[SourceSnapshot], streams: int, memory_bytes: int
) -> list[LookupPlan]:
    """Those on other ways of a flow, as far as memory is concerned: they are read with those of this one."""
    plans = []
    for own, source in zip(lookups, sources, strict=True):
        reading = planned_reading(own, source, streams, memory_bytes)
        plans.append(LookupPlan(own, reading, (), _estimated_bytes(own, reading)))  # which rows arrive is not known
    return plans


def key_columns_made(lookups: Sequence[Lookup], made: Sequence[Column | UnitedColumn]) -> dict[str, DataType]:
    """Columns that are made because a lookup asks for them, whether or not they are loaded."""
    asked = {key.column for lookup in lookups for key in lookup.keys}
    return {column.name: column.type for column in made if column.name in asked}


def source_notes(plans: Sequence[LookupPlan]) -> list[str]:
    """What is to be said of the files of lookups."""
    return [f"lookup {plan.name}: {note}" for plan in plans for note in plan.reading.source.notes]


def alike(plans: Sequence[LookupPlan]) -> list[int]:
    """For each lookup the place of the first one that it is alike: its own, unless one index is enough for both."""
    return [next(place for place, first in enumerate(plans) if own is first or own.is_alike(first)) for own in plans]


def once(plans: Sequence[LookupPlan]) -> list[LookupPlan]:
    """Those whose rows are read."""
    return [own for place, (own, first) in enumerate(zip(plans, alike(plans), strict=True)) if place == first]


def shared_notes(plans: Sequence[LookupPlan]) -> list[str]:
    """Which of them are read once together."""
    places = alike(plans)
    names = {place: [own.name for own, first in zip(plans, places, strict=True) if first == place] for place in places}
    return [f"lookups {', '.join(own)} are alike: their rows are read once" for own in names.values() if len(own) > 1]


def memory_notes(plans: Sequence[LookupPlan], memory: MemorySplit) -> list[str]:
    """What is to be said of the memory of lookups, which may be too little. `plans`: those whose rows are read.

    Raises MemoryLimitError if there is none for them.
    """
    if not plans:
        return []
    needed = sum(plan.bytes for plan in plans)
    names = ", ".join(f"`{plan.name}`" for plan in plans)
    set_memory = f"`memory: {-(-memory_for_lookups(memory, needed) // 1_000_000)} MB`"
    if memory.lookup_bytes < _LEAST_BYTES * len(plans):
        raise MemoryLimitError(
            f"the memory budget has no room for {'lookup' if len(plans) == 1 else 'lookups'} {names} beside the rows",
            found=f"memory: {memory.total_bytes // 1_000_000} MB",
            expected=f"about {units.size(needed)} for them",
            hint=f"Set {set_memory} in the package, or use fewer streams.",
        )
    if needed <= memory.lookup_bytes:
        return []
    return [
        f"{names} may need up to {units.size(needed)}, and there are {units.size(memory.lookup_bytes)}: the run fails "
        f"when these are used up; {set_memory} is enough"
    ]


def _check_keys(lookup: Lookup, key_types: Sequence[DataType], table_name: str) -> None:
    columns = lookup.types
    for key, own in zip(lookup.keys, key_types, strict=True):
        theirs = columns[key.lookup_column]
        if key_family(own) != key_family(theirs):
            raise TypeMismatchError(
                f"lookup `{lookup.name}` cannot be found by `{key.column}`",
                found=f"`{key.column}` is read as {own}, because table {table_name} holds no more; "
                f"`{key.lookup_column}` of the lookup is {theirs}",
                hint=f"Declare `{key.lookup_column}` as {own} in the {_place(lookup)}, or change the table.",
            )


def _place(lookup: Lookup) -> str:
    return "layout of the lookup" if isinstance(lookup.source, FileSource) else "lookup, by CAST"


def _estimated_bytes(lookup: Lookup, reading: LookupReading) -> int:
    types = lookup.types
    keys = [types[key.lookup_column] for key in lookup.keys]
    row = _ENTRY_BYTES + sum(value_bytes(column.type) for column in lookup.added)
    if len(keys) > 1 or value_bytes(keys[0]) > 8:
        row += _LENGTH_BYTES + sum(value_bytes(key) for key in keys)
    row += reading.made_bytes
    has_texts = any(key_family(own) is None or _is_text(own) for own in [*keys, *(own.type for own in lookup.added)])
    texts = reading.text_bytes if has_texts else 0
    return (reading.rows or 0) * row + texts + reading.streams * _BUILDER_BYTES


def _is_text(data_type: DataType) -> bool:
    return data_type.kind in ("string", "char", "varchar", "bytes")


def _no_match(lookup: Lookup) -> str:
    if lookup.rejects_misses or lookup.sends_misses:
        return "reject" if lookup.rejects_misses else "output"
    values = ["NULL" if column.default is None else column.default or "''" for column in lookup.added]
    return values[0] if len(set(values)) == 1 else ", ".join(values)
