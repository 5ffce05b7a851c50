"""Partitions by lists of values."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.model import DataType, ListPartition
from headrace.model.literals import canonical_text
from headrace.planning.catalog import CatalogPartition
from headrace.planning.partitioning import ListRule
from headrace.planning.parts import Part
from headrace.planning.target_table import TargetTable

Values = tuple[str | None, ...]


def list_parts(
    table: TargetTable, clause: ListPartition, data_type: DataType, kept: Sequence[CatalogPartition]
) -> list[Part]:
    """The lists of a package, and the partitions that stay and hold other values.

    Raises TargetError for one that stays and has some, but not all values of a list.
    """
    present = {part.name: values_of(part.rule, data_type) for part in kept if isinstance(part.rule, ListRule)}
    parts: list[Part] = []
    for name, values in clause.values:
        found = next((own for own, held in present.items() if set(held) & set(values)), None)
        if found is None:
            parts.append(Part(ListRule(values), name))
            continue
        held = present.pop(found)
        if set(held) != set(values):
            raise TargetError(
                f"partition {found} of table {table.name} has other values than declared",
                found=_shown(held),
                expected=f"{_shown(values)}, the list `{name}`",
                hint=f"Correct `partition` of destination `{table.destination.name}`, or use `target: replace`.",
            )
        parts.append(Part(ListRule(values), action="insert", existing=found))
    others = [Part(ListRule(held), action="insert", existing=name) for name, held in sorted(present.items()) if held]
    return [*parts, *others]


def values_of(rule: ListRule, data_type: DataType) -> Values:
    """The values of an existing partition that the source's type holds, in its canonical form."""
    found: list[str | None] = []
    for value in rule.values:
        try:
            found.append(None if value is None else canonical_text(value, data_type))
        except ValueError:
            continue
    return tuple(found)


def _shown(values: Values) -> str:
    return ", ".join("NULL" if value is None else value for value in values)
