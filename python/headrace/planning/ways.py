"""Who brings a row into its partition, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import TargetError
from headrace.model import DataType
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.partitioning import Strategy, Way
from headrace.planning.parts import Part
from headrace.planning.plan import OutputColumn
from headrace.planning.wording import counted

# Types of a source's column whose values the core hashes as the target does, by its name for the hash.
_HASHED = {
    "integer": frozenset({"int16", "int32", "int64", "decimal", "time"}),
    "numeric": frozenset({"int16", "int32", "int64", "decimal"}),
    "float": frozenset({"float32", "float64"}),
    "bool": frozenset({"bool"}),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "timestamptz"}),
    "bytes": frozenset({"string", "char", "varchar", "bytes", "uuid"}),
    "char": frozenset({"string", "char", "varchar"}),
}


@dataclass(frozen=True)
class Choice:
    """The way and its reason, as a note. `hash_key`: how the core hashes, with partitions by hash that it fills."""

    way: Way
    reason: str
    hash_key: str | None = None


def choose_way(
    parts: Sequence[Part],
    strategy: Strategy,
    key: OutputColumn,
    catalog: CatalogTable | None,
    capabilities: Capabilities,
    files: str | None,
) -> Choice:
    """`files`: whether the files fit partitions of their own: "" if they do, or the reason why not; None if partitions
    are not made of files.
    """
    hash_key = _hash_key(key, catalog, capabilities) if strategy == "hash" else None
    is_known = key.type.kind in capabilities.core_routes.get(strategy, frozenset())
    if not capabilities.writer_per_stream:
        if not is_known or (strategy == "hash" and hash_key is None):
            raise TargetError(
                f"it is not known where {strategy} puts keys of type {_stored(key, catalog)}",
                hint="Choose another key, or give the column the layout's type.",
            )
        return Choice("merged", _merged(len(parts)), hash_key)
    if not is_known or (strategy == "hash" and hash_key is None):
        return Choice(
            "server",
            f"the server finds the partition of each row, because only it knows where {strategy} puts "
            f"keys of type {_stored(key, catalog)}: 1.4 times its CPU or more, and no FREEZE",
        )
    comparison = catalog.partitioning.comparison if catalog is not None and catalog.partitioning else None
    if comparison is not None and strategy == "list":
        return Choice(
            "server",
            f"the server finds the partition of each row, because only it knows which keys are equal by {comparison}: "
            "1.4 times its CPU or more, no FREEZE, and the switch reads new partitions once more",
        )
    if len(parts) == 1:
        why = f", because {files}" if files else ""
        return Choice("home", f"one partition takes all rows of the load, every stream fills it{why}", hash_key)
    if files == "":
        return Choice("home", "every file has a partition of its own; the server moves rows that belong into others")
    if len(parts) > capabilities.shared_writers:
        return Choice(
            "server",
            f"the server finds the partition of each row, because {counted(len(parts), 'partition')} are more than "
            f"the {capabilities.shared_writers} that can have a writer of their own: 1.4 times its CPU or more, and no "
            "FREEZE",
        )
    why = "rows of every file may belong into every partition" if files is None else files
    return Choice("shared", f"every partition has one writer, to which all streams give rows, because {why}", hash_key)


def _merged(parts: int) -> str:
    if parts == 1:
        return "one partition takes all rows of the load"
    return (
        "rows are sorted by partition in a hidden temporary table, from which the partitions are filled one after the "
        "other: it spills into the run folder when the memory is short, about twice the size of the text"
    )


def _hash_key(key: OutputColumn, catalog: CatalogTable | None, capabilities: Capabilities) -> str | None:
    """By the type that the target's column has."""
    stored = _stored(key, catalog)
    name = None if stored is None else capabilities.hash_keys.get(stored.kind)
    return name if name is not None and key.type.kind in _HASHED[name] else None


def _stored(key: OutputColumn, catalog: CatalogTable | None) -> DataType | None:
    if catalog is None:
        return key.type
    return next((column.type for column in catalog.columns if column.name == key.target), None)
