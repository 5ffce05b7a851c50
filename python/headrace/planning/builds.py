"""A table that is filled with the rows of a query of its own database: planned like a data flow with one slice, so that
hidden tables, switch and ledger are those of loads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from headrace.errors import TypeMismatchError
from headrace.model import Connection, DataType, Destination, PartitionClause, RejectLimits
from headrace.planning.build_partitions import divide_build, hints_for_builds, own_partitions
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogTable
from headrace.planning.column_mapping import ColumnMapping, Differences
from headrace.planning.columns import check_unfilled
from headrace.planning.existing import check_existing
from headrace.planning.long_names import refuse_cut_names
from headrace.planning.memory import MemorySplit
from headrace.planning.plan import DataFlowPlan, OutputColumn
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.staging import Staging, plan_staging
from headrace.planning.steps import plan_steps
from headrace.planning.target_table import TargetTable, display_name
from headrace.planning.types_match import INTEGER_DIGITS, TEXT_KINDS, is_lossless

# The query in the ledger, where data flows have files.
QUERY: Final = "(query)"
_UNNAMED: Final = frozenset({"", "?column?"})
_NO_MEMORY: Final = MemorySplit(0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class QueryColumn:
    """A column of the rows of a query, as the destination describes it; `type` is None if it has no counterpart."""

    name: str
    native_type: str
    type: DataType | None


@dataclass(frozen=True)
class Build:
    """What a package says of a build. `task`: its id in the run; `by_hash`: the column of the query by which it is
    divided among sessions.
    """

    task: str
    connection: Connection
    schema: str | None
    table: str
    target: Literal["create", "append", "replace"]
    partition: PartitionClause | None = None
    by_hash: str | None = None


def plan_build(
    build: Build,
    columns: Sequence[QueryColumn],
    catalog: CatalogTable | None,
    capabilities: Capabilities,
    default_schema: str | None,
    parts: int = 1,
    *,
    taken_names: Collection[str] = (),
    cpus: int = 1,
) -> DataFlowPlan:
    """The plan of a build. `catalog`: the table as it is now, None if there is none; `taken_names`: all names of its
    schema; `cpus`: the default number of partitions by hash.

    Raises TargetError for what the table forbids, and TypeMismatchError naming every column that does not fit.
    """
    load: Literal["staged", "single"] = "single" if build.partition is None else "staged"
    destination = Destination(
        "build", build.connection, build.schema, build.table, build.target, load=load, partition=build.partition
    )
    table = TargetTable(destination, catalog, capabilities, display_name(destination, default_schema), taken_names)
    check_existing(table, load)
    mapping = _map(table, columns)
    refuse_cut_names(table, (column.target for column in mapping.columns))
    source = SourceSnapshot(
        "query",
        files=[{"path": QUERY, "size_bytes": 0, "modified_ns": 0}],
        slices=[{"number": 1, "file": 0, "begin_byte": 0, "end_byte": 0}],
    )
    notes = list(mapping.notes)
    with hints_for_builds():
        divided = divide_build(table, mapping, source, cpus, notes)
    partitioning = divided.whole if divided.division is None else divided.division.partitioning
    if own_partitions(partitioning, build.by_hash, parts) is not None:
        notes.append("each session gives the rows of partitions of its own")
    # Where a partition is no table of its own, none is staged.
    load = "single" if divided.division is None else "staged"
    staging = Staging()
    if capabilities.hidden_tables:
        with hints_for_builds():
            staging = plan_staging(table, load, source, divided.division, parts, commits=False, moves=True)
    return DataFlowPlan(
        task=build.task,
        connection=build.connection.name,
        schema=build.schema or default_schema,
        table=catalog.name if catalog else build.table,
        target=build.target,
        load=load,
        switch=staging.switch,
        partitioning=partitioning,
        staging=staging.tables,
        options=destination.options,
        streams=parts,
        source=source,
        layout={"columns": []},
        columns=tuple(mapping.columns),
        steps=plan_steps(table, staging, partitioning, len(source.slices), commits=False),
        notes=tuple(notes),
        memory=_NO_MEMORY,
        sink_kind=capabilities.sink_kind,
        rejects=RejectLimits(),
        file_stem=build.table,
        connections=parts,
    )


def _map(table: TargetTable, columns: Sequence[QueryColumn]) -> ColumnMapping:
    mapping, differences = ColumnMapping(), Differences()
    _check_names(table, columns, differences)
    by_key = _by_key(table)
    for column in columns:
        if table.catalog is None:
            # Whatever the query says of NULL, its text does not promise it.
            kind = column.type or DataType("string")
            mapping.columns.append(OutputColumn(column.name, column.name, kind, True, column.native_type))
            continue
        target = by_key.get(table.capabilities.name_key(column.name))
        if target is None:
            differences.add(f"`{column.name}`: the table has no such column", _missing_hint(column, table.catalog))
            continue
        _check_pair(column, target, mapping, differences)
        kind = column.type or DataType("string")
        mapping.columns.append(OutputColumn(column.name, target.name, kind, target.nullable))
    filled = {column.target for column in mapping.columns}
    for target in by_key.values():
        if target.name not in filled and not target.generated:
            check_unfilled(target, mapping, differences, by_query=True)
    if differences.found:
        raise TypeMismatchError(
            f"the columns of the query do not fit table {table.name}",
            found="\n".join(differences.found),
            hint=differences.hints[0] if len(set(differences.hints)) == 1 else _SEVERAL,
        )
    return mapping


_SEVERAL: Final = "Let the query give the columns of the table by name, each with its type: CAST(... AS TYPE) AS NAME."


def _by_key(table: TargetTable) -> Mapping[str, CatalogColumn]:
    columns = () if table.catalog is None else table.catalog.columns
    return {table.capabilities.name_key(column.name): column for column in columns}


def _check_names(table: TargetTable, columns: Sequence[QueryColumn], differences: Differences) -> None:
    seen: set[str] = set()
    for number, column in enumerate(columns, start=1):
        key = table.capabilities.name_key(column.name)
        if column.name in _UNNAMED:
            differences.add(f"column {number} of the query has no name", "Name it in the query: ... AS NAME.")
        elif key in seen:
            differences.add(
                f"`{column.name}`: the query has two columns of that name", "Rename one of them: ... AS NAME."
            )
        seen.add(key)


def _missing_hint(column: QueryColumn, table: CatalogTable) -> str:
    near = get_close_matches(column.name, [known.name for known in table.columns], n=1)
    return f"Write AS {near[0]} in the query if `{near[0]}` is meant." if near else "Leave it out of the query."


def _check_pair(column: QueryColumn, target: CatalogColumn, mapping: ColumnMapping, differences: Differences) -> None:
    if target.generated:
        differences.add(f"`{target.name}`: the table computes it", "Leave it out of the query.")
    elif not keeps_values(column, target):
        differences.add(
            f"`{target.name}`: the query gives {column.native_type}, the table has {target.native_type}",
            f"Convert it in the query: CAST({column.name} AS {target.native_type}) AS {column.name}.",
        )
    elif target.alters is not None:
        mapping.notes.append(f"`{target.name}` is {target.native_type}, which {target.alters}")


def keeps_values(column: QueryColumn, target: CatalogColumn) -> bool:
    """True if every value is stored as it is, or refused: none is rounded, cut or read in another way."""
    if column.native_type == target.native_type:
        return True
    if column.type is None or target.type is None:
        return False
    source, wanted = column.type, target.type
    if is_lossless(source, wanted):
        return True
    source_scale = 0 if source.kind in INTEGER_DIGITS else source.scale
    if source.kind in INTEGER_DIGITS or source.kind == "decimal":
        # What is out of range is an error of the statement.
        if wanted.kind in INTEGER_DIGITS:
            return source_scale == 0
        return wanted.kind == "decimal" and (wanted.scale or 0) >= (source_scale or 0)
    # What is too long is one too; see `guarded_text`.
    return source.kind in TEXT_KINDS and wanted.kind in ("char", "varchar")
