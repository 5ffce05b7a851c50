"""Package + catalog snapshot + capabilities -> plan. Pure: no files, no connection, no clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from headrace.errors import InternalError, TargetError
from headrace.model import DataFlowTask, FileSource
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogPartition, CatalogPartitioning, CatalogTable
from headrace.planning.columns import ColumnMapping, map_columns
from headrace.planning.existing import check_existing, check_view_columns
from headrace.planning.memory import MemoryBudget, split_memory
from headrace.planning.partition_key import check_partitioning, key_column
from headrace.planning.partitions import FileKeys, FilePartition, FilePartitions
from headrace.planning.plan import DataFlowPlan, OutputColumn, SourceSnapshot
from headrace.planning.staging import Staging, plan_staging
from headrace.planning.steps import plan_steps
from headrace.planning.target_table import TargetTable, display_name
from headrace.planning.wording import counted


def plan_data_flow(
    task: DataFlowTask,
    source: SourceSnapshot,
    catalog: CatalogTable | None,
    capabilities: Capabilities,
    budget: MemoryBudget,
    streams: int,
    *,
    default_schema: str | None = None,
    file_stem: str | None = None,
    file_keys: Sequence[FileKeys] | None = None,
    taken_names: Collection[str] = (),
) -> DataFlowPlan:
    """The plan of one data flow.

    `catalog` is the destination table as it will be when this task starts, None if there is none; `taken_names` are
    all names of its schema. `file_keys` are those of the source's files, needed if `is_partitioned` says so.
    `file_stem` names the reject files of the task; by default the table.
    Raises TargetError, TypeMismatchError or MemoryLimitError.
    """
    destination = task.destination
    layout = task.source.layout
    table = TargetTable(destination, catalog, capabilities, display_name(destination, default_schema), taken_names)
    notes = list(source.notes)
    load = _effective_load(table, notes)
    check_existing(table, load)
    _note_index_memory(table, notes)
    mapping = map_columns(
        table.name, layout.columns, destination.columns, catalog, capabilities, destination.options.keep_identity
    )
    notes += mapping.notes
    check_view_columns(table, load, mapping)
    if layout.qualifier is not None and isinstance(task.source, FileSource):
        # Whether a line break ends a row is only known to who has read the file up to it.
        notes.append("the layout has a qualifier: every file is one slice, read by one stream")
    working_streams = _working_streams(source, _writers(table, load, streams, notes), notes)
    way = _way(task, table, load, source, mapping, file_keys, working_streams, notes)
    _note_inert_options(table, notes)
    return DataFlowPlan(
        task=task.id,
        connection=destination.connection.name,
        schema=(destination.schema or default_schema) if capabilities.stores_tables else None,
        table=catalog.name if catalog else destination.table,
        target=destination.target,
        load=way.load,
        switch=way.staging.switch,
        partition_column=way.partition_column,
        staging=way.staging.tables,
        options=destination.options,
        streams=working_streams,
        source=source,
        layout=layout.to_core(mapping.not_null_sources, mapping.types),
        columns=tuple(mapping.columns),
        steps=plan_steps(table, way.staging, len(source.slices)),
        notes=tuple(notes),
        memory=split_memory(
            budget,
            layout.columns,
            working_streams,
            capabilities.memory_share,
            qualified=layout.qualifier is not None,
        ),
        sink_kind=capabilities.sink_kind,
        rejects_limit=task.rejects_limit,
        file_stem=file_stem or destination.table,
    )


def plan_source_pass(
    task: DataFlowTask,
    source: SourceSnapshot,
    catalog: CatalogTable,
    capabilities: Capabilities,
    budget: MemoryBudget,
    streams: int,
    *,
    default_schema: str | None = None,
) -> DataFlowPlan:
    """The plan of reading a source once more without storing anything: the same rows are rejected as by the load into
    the existing table `catalog`, and the columns of the plan are those that the load has filled.

    Raises TypeMismatchError if the table has other columns by now, or MemoryLimitError.
    """
    destination = task.destination
    layout = task.source.layout
    table_name = display_name(destination, default_schema)
    mapping = map_columns(
        table_name, layout.columns, destination.columns, catalog, capabilities, destination.options.keep_identity
    )
    working_streams = _working_streams(source, streams, [])
    return DataFlowPlan(
        task=task.id,
        connection=destination.connection.name,
        schema=destination.schema or default_schema,
        table=catalog.name,
        target=destination.target,
        load="single",
        switch="none",
        partition_column=None,
        staging=(),
        options=destination.options,
        streams=working_streams,
        source=source,
        layout=layout.to_core(mapping.not_null_sources, mapping.types),
        columns=tuple(mapping.columns),
        steps=(),
        notes=(),
        memory=split_memory(
            budget, layout.columns, working_streams, capabilities.memory_share, qualified=layout.qualifier is not None
        ),
        sink_kind="null",
        rejects_limit=task.rejects_limit,
        file_stem=destination.table,
    )


def table_after(plan: DataFlowPlan, catalog: CatalogTable | None) -> CatalogTable | None:
    """The destination table once this task has ended: what later tasks of the run are planned against."""
    if plan.schema is None:
        return catalog
    if catalog is None:
        columns = tuple(
            CatalogColumn(column.target, column.type, str(column.type), column.nullable) for column in plan.columns
        )
        catalog = CatalogTable(plan.schema, plan.table, columns)
    kept = catalog if plan.target == "append" else replace(catalog, partitioning=None, view_tables=())
    if plan.switch == "view":
        return replace(kept, kind="view", view_tables=(*kept.view_tables, *(part.table for part in plan.staging)))
    if plan.switch == "attach" and plan.partition_column is not None:
        parts = [
            CatalogPartition(part.table, part.bounds.minimum, part.bounds.end) for part in plan.staging if part.bounds
        ]
        old = kept.partitioning.partitions if kept.partitioning else ()
        return replace(kept, partitioning=CatalogPartitioning("range", (plan.partition_column,), (*old, *parts)))
    return catalog


@dataclass(frozen=True)
class _Way:
    """How the rows really travel."""

    load: str
    staging: Staging
    partition_column: str | None = None


def _way(
    task: DataFlowTask,
    table: TargetTable,
    load: str,
    source: SourceSnapshot,
    mapping: ColumnMapping,
    file_keys: Sequence[FileKeys] | None,
    streams: int,
    notes: list[str],
) -> _Way:
    key: OutputColumn | None = None
    partitions: list[FilePartition] = []
    if load == "staged":
        key = _key(task, table, mapping)
        if file_keys is None:
            raise InternalError("a plan with partitions is made without the keys of the files")
        partitions = _partitions(table, source, key, file_keys, notes)
        if not partitions:
            notes.append("no file has a row: there is nothing to divide, and load is single")
            load = "single"
    if not table.capabilities.hidden_tables:
        return _Way(load, Staging())
    staging = plan_staging(table, load, source, partitions, streams)
    notes += staging.notes
    return _Way(load, staging, key.target if key is not None and partitions else None)


def _key(task: DataFlowTask, table: TargetTable, mapping: ColumnMapping) -> OutputColumn:
    source = key_column(task, table.capabilities, table.name).name
    key = next((item for item in mapping.columns if item.source == source), None)
    if key is None:
        raise TargetError(
            f"table {table.name} cannot be partitioned by a column that it numbers itself",
            found="`keep_identity: false`",
            hint=f"Set `keep_identity: true` for destination `{table.destination.name}`.",
        )
    return key


def _partitions(
    table: TargetTable, source: SourceSnapshot, key: OutputColumn, file_keys: Sequence[FileKeys], notes: list[str]
) -> list[FilePartition]:
    existing: Sequence[CatalogPartition] = ()
    if table.catalog is not None:
        check_partitioning(table.catalog, key, table.name, table.destination.name)
        if table.catalog.partitioning is not None and table.destination.target == "append":
            existing = table.catalog.partitioning.partitions
    return FilePartitions(source, key, table.name).plan(file_keys, existing, notes)


def _effective_load(table: TargetTable, notes: list[str]) -> str:
    """How the rows travel. `staged` needs a `partition` clause; without one it is `single`, and the plan says so."""
    destination, capabilities = table.destination, table.capabilities
    if not capabilities.stores_tables:
        return "single"
    if destination.load == "staged":
        if destination.partition is None:
            notes.append("no partition clause: load is single")
        elif not capabilities.partitions:
            notes.append(f"{capabilities.target_type} has no partitions: load is single")
        else:
            return "staged"
        return "single"
    if destination.load not in capabilities.loads:
        raise TargetError(
            f"`load: {destination.load}` is not possible for table {table.name}",
            found=f"connection `{destination.connection.name}` is of type {capabilities.target_type}",
            expected=f"one of: {', '.join(sorted({*capabilities.loads, 'staged'}))}",
            hint=f"Set `load: {capabilities.loads[0]}` for destination `{destination.name}`.",
        )
    if destination.partition is not None:
        notes.append(f"load is {destination.load}: the partition clause is not used")
    return destination.load


def _note_index_memory(table: TargetTable, notes: list[str]) -> None:
    """A target whose engine runs in this process keeps its indexes in the memory of the run."""
    if table.catalog is not None and table.catalog.indexes and table.capabilities.memory_share:
        notes.append(
            f"{table.name} has {', '.join(table.catalog.indexes)}: an index needs memory in proportion to its rows; "
            "without one the load needs the same memory at any size"
        )


def _note_inert_options(table: TargetTable, notes: list[str]) -> None:
    """Another target may be given on the command line: it is told which options it does not have."""
    capabilities = table.capabilities
    if capabilities.stores_tables:
        inert = [name for name in table.destination.options.changed() if name not in capabilities.options]
        notes += [f"`{name}` has no effect in {capabilities.target_type}" for name in inert]


def _writers(table: TargetTable, load: str, streams: int, notes: list[str]) -> int:
    """One for rows that go straight into a table with keys, if the target's writers would wait for each other's."""
    keys = table.catalog.indexes if table.catalog else ()
    is_direct = load == "single" and table.destination.target == "append"
    if not (table.capabilities.keys_block_writers and is_direct and keys and streams > 1):
        return streams
    notes.append(f"one writer appends, because {table.name} has {', '.join(keys)}: several would wait for their keys")
    return 1


def _working_streams(source: SourceSnapshot, streams: int, notes: list[str]) -> int:
    working = max(1, min(streams, len(source.slices)))
    if working < streams:
        reason = f"there {'is' if working == 1 else 'are'} {counted(working, 'slice')}"
        notes.append(f"{working} of {streams} streams work, because {reason}")
    return working
