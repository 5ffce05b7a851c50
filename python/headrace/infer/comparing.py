"""Files against a table that exists: what is missing, does not fit, or is wider than needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.infer.facts import ColumnFacts
from headrace.infer.inferred import Inferred, InferredColumn
from headrace.infer.layout_text import extreme_values
from headrace.infer.wording import bare, count, shown
from headrace.planning.catalog import CatalogColumn, CatalogTable
from headrace.planning.types_match import is_lossless

Kind = Literal["not_in_table", "not_in_files", "does_not_fit", "nulls", "wider"]
_TEXTS = ("string", "char", "varchar")


@dataclass(frozen=True, slots=True)
class Difference:
    """Something about a column. Only `wider` does no harm."""

    column: str
    kind: Kind
    text: str


def compare(inferred: Inferred, table: CatalogTable, *, case_insensitive: bool) -> list[Difference]:
    """The differences, in the order of the files' columns, then those of columns that only the table has."""

    def key(name: str) -> str:
        return name.casefold() if case_insensitive else name

    known = {key(column.name): column for column in table.columns}
    differences: list[Difference] = []
    for column, facts in zip(inferred.columns, inferred.facts, strict=True):
        differences += _of_column(column, facts, known.get(key(column.name)))
    own = {key(column.name) for column in inferred.columns}
    return differences + _only_in_table([column for column in table.columns if key(column.name) not in own])


def _of_column(column: InferredColumn, facts: ColumnFacts, other: CatalogColumn | None) -> list[Difference]:
    name = column.name
    if other is None:
        return [Difference(name, "not_in_table", "the table has no such column")]
    if other.generated:
        return [Difference(name, "does_not_fit", "the table computes it from other columns")]
    found: list[Difference] = []
    if column.nullable and column.nulls and not other.nullable and not other.has_default:
        text = f"{count(column.nulls, 'null')}, and the table allows none"
        found.append(Difference(name, "nulls", text))
    if other.type is None:
        found.append(Difference(name, "does_not_fit", f"{other.native_type} is no type that can be loaded"))
    elif not is_lossless(column.type, other.type):
        evidence = _evidence(column, facts)
        found.append(Difference(name, "does_not_fit", f"{column.type} does not fit {other.native_type}{evidence}"))
    elif other.type != column.type and other.type.kind != "string":
        found.append(Difference(name, "wider", f"{other.native_type}, where {column.type} would do"))
    return found


def _evidence(column: InferredColumn, facts: ColumnFacts) -> str:
    if column.type.kind in _TEXTS:
        return f"; the longest has {count(facts.greatest_length or 0, 'character')}, the first is {_first(facts)}"
    least, most = extreme_values(facts, column)
    return "" if least is None or most is None else f"; the values are {bare(least)} to {bare(most)}"


def _first(facts: ColumnFacts) -> str:
    places = [own.first for own in facts.classes.values()]
    first = min(places, key=lambda one: (one.file, one.row), default=None)
    return '""' if first is None else shown(first.value)


def _only_in_table(columns: Sequence[CatalogColumn]) -> list[Difference]:
    found = []
    for column in columns:
        if column.generated or column.identity:
            continue
        must = not column.nullable and not column.has_default
        text = "the files have no such column, and it must have a value" if must else "the files have no such column"
        found.append(Difference(column.name, "not_in_files", text))
    return found
