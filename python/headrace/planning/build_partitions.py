"""How the table of a build is divided: as those of loads, but that the server brings every row into its partition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from headrace.errors import HeadraceError, TargetError
from headrace.model import Column, DataType, PartitionClause, strategy_of
from headrace.planning.column_mapping import ColumnMapping
from headrace.planning.division import Division, divide
from headrace.planning.enforcement import enforced
from headrace.planning.key_questions import KeyFacts
from headrace.planning.outside_keys import OUTSIDE_FAILS_BUILD
from headrace.planning.partition_key import check_partitioning
from headrace.planning.partitioning import HashRule, Partitioning
from headrace.planning.plan import OutputColumn
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.tablespaces import check_tablespaces
from headrace.planning.target_table import TargetTable
from headrace.planning.ways import Choice

_BY_SERVER: Final = Choice("server", "the server brings each row into its partition")
_ONE_TABLE: Final = "no partitions are made in {}: the rows are in one table"
_OF_LOADS: Final = re.compile("`load: single`|(of|for) destination")
_WITHOUT: Final = (
    "Correct `partition` of the build, or leave it out: then the table is filled as it is, divided or not."
)


# What a hint says of loads, and what that is for the rows and sessions of a query.
_OF_QUERIES: Final = {"Correct the row in the source": "Leave the row out of the query", "fewer streams": "fewer parts"}


@dataclass(frozen=True)
class BuildDivision:
    """`division`: with a table for each partition; `whole`: with one table, which rows it takes if not all."""

    division: Division | None = None
    whole: Partitioning | None = None


def divide_build(
    table: TargetTable, mapping: ColumnMapping, source: SourceSnapshot, cpus: int, notes: list[str]
) -> BuildDivision:
    """Raises TargetError for a declaration that cannot be, or that the existing table is not divided by."""
    clause = table.destination.partition
    if clause is None:
        return BuildDivision()
    key = _key(table, mapping, clause)
    if table.destination.load not in table.capabilities.partition_loads:
        notes.append(_ONE_TABLE.format(table.capabilities.target_type))
        whole = enforced(table, key, [])
        notes += [OUTSIDE_FAILS_BUILD] * (whole is not None)
        return BuildDivision(whole=whole)
    check_tablespaces(table.destination, table.capabilities, table.name)
    if table.catalog is not None:
        column = Column(name=key.source, type=key.type)
        check_partitioning(table.catalog, clause, column, table.capabilities, (table.name, table.destination.name))
    return BuildDivision(divide(table, source, key, KeyFacts(cpus=cpus), notes, _BY_SERVER))


@contextmanager
def hints_for_builds() -> Iterator[None]:
    """What is refused is that of loads, but a build has no source, and none of the settings that their hints name."""
    try:
        yield
    except HeadraceError as error:
        if error.hint is not None:
            for of_load, of_query in _OF_QUERIES.items():
                error.hint = error.hint.replace(of_load, of_query)
            error.hint = _WITHOUT if _OF_LOADS.search(error.hint) else error.hint
        raise


def own_partitions(partitioning: Partitioning | None, column: str | None, parts: int) -> list[list[HashRule]] | None:
    """By part of a query that is divided by the hash of a column: the partitions whose rows it gives; None if each part
    may give rows of every partition.
    """
    if partitioning is None or column != partitioning.source:
        return None
    rules = [part.rule for part in partitioning.partitions if isinstance(part.rule, HashRule)]
    return [rules[number::parts] for number in range(parts)] if 1 < parts <= len(rules) else None


def _key(table: TargetTable, mapping: ColumnMapping, clause: PartitionClause) -> OutputColumn:
    name_key = table.capabilities.name_key
    key = next((item for item in mapping.columns if name_key(item.target) == name_key(clause.column)), None)
    refused = f"table {table.name} cannot be partitioned by `{clause.column}`"
    if key is None:
        raise TargetError(
            refused,
            found="the query does not give it",
            expected=f"one of: {', '.join(item.target for item in mapping.columns)}",
            hint="Correct `partition` of the build.",
        )
    kinds = table.capabilities.partition_key_kinds.get(strategy_of(clause), frozenset())
    if key.type.kind not in kinds:
        raise TargetError(
            refused,
            found=f"type {_shown(key)}",
            expected=f"a type that can be divided by {strategy_of(clause)}: {', '.join(sorted(kinds))}",
            hint="Choose another column, or leave `partition` out.",
        )
    return key


def _shown(key: OutputColumn) -> DataType | str:
    return key.native or key.type
