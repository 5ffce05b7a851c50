"""Partitions by the hash of the target."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.model import HashPartition
from headrace.planning.catalog import CatalogPartition
from headrace.planning.partitioning import HashRule
from headrace.planning.parts import Part
from headrace.planning.target_table import TargetTable


def hash_parts(
    table: TargetTable, clause: HashPartition, cpus: int, kept: Sequence[CatalogPartition], notes: list[str]
) -> list[Part]:
    """One part for each remainder, in their order. Raises TargetError for a partition that stays and has another
    modulus.
    """
    present = [(part.name, part.rule) for part in kept if isinstance(part.rule, HashRule)]
    modulus = clause.parts or _modulus_of(table) or cpus
    if clause.parts is None:
        why = "as many as the table has" if _modulus_of(table) else "as many as CPUs"
        notes.append(f"{modulus} parts by hash: {why}")
    other = next(((name, rule) for name, rule in present if rule.modulus != modulus), None)
    if other is not None:
        name, rule = other
        raise TargetError(
            f"partition {name} of table {table.name} belongs to another number of parts",
            found=f"modulus {rule.modulus}, remainder {rule.remainder}",
            expected=f"modulus {modulus}",
            hint=f"Set `parts: {rule.modulus}` for destination `{table.destination.name}`, or use `target: replace`.",
        )
    names = {rule.remainder: name for name, rule in present}
    return [
        Part(HashRule(modulus, remainder), action="insert", existing=names[remainder])
        if remainder in names
        else Part(HashRule(modulus, remainder))
        for remainder in range(modulus)
    ]


def _modulus_of(table: TargetTable) -> int | None:
    """That of the table's first partition, also if all of them are replaced."""
    partitioning = table.catalog.partitioning if table.catalog else None
    rules = (part.rule for part in partitioning.partitions) if partitioning else ()
    return next((rule.modulus for rule in rules if isinstance(rule, HashRule)), None)
