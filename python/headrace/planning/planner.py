"""Package + catalog snapshot + capabilities -> plan. Pure: no files, no connection, no clock."""

from __future__ import annotations

from headrace.errors import TargetError
from headrace.model import DataFlowTask, Destination, FileSource
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogTable
from headrace.planning.columns import map_columns
from headrace.planning.memory import MemoryBudget, split_memory
from headrace.planning.plan import DataFlowPlan, SourceSnapshot, Step
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
) -> DataFlowPlan:
    """The plan of one data flow.

    `catalog` is the destination table as it will be when this task starts, None if there is none.
    `file_stem` names the reject files of the task; by default the table.
    Raises TargetError, TypeMismatchError or MemoryLimitError.
    """
    destination = task.destination
    layout = task.source.layout
    table_name = display_name(destination, default_schema)
    notes = list(source.notes)
    load = _effective_load(destination, capabilities, table_name, notes)
    _check_existing(destination, catalog, table_name)
    if catalog is not None and catalog.indexes:
        notes.append(
            f"{table_name} has {', '.join(catalog.indexes)}: an index needs memory in proportion to its rows; "
            "without one the load needs the same memory at any size"
        )
    mapping = map_columns(table_name, layout.columns, destination.columns, catalog, capabilities)
    notes += mapping.notes
    if layout.qualifier is not None and isinstance(task.source, FileSource):
        # Whether a line break ends a row is only known to who has read the file up to it.
        notes.append("the layout has a qualifier: every file is one slice, read by one stream")
    working_streams = _working_streams(source, streams, notes)
    return DataFlowPlan(
        task=task.id,
        connection=destination.connection.name,
        schema=(destination.schema or default_schema) if capabilities.stores_tables else None,
        table=catalog.name if catalog else destination.table,
        target=destination.target,
        load=load,
        switch="none",
        partition_column=None,
        staging=(),
        options=destination.options,
        streams=working_streams,
        source=source,
        layout=layout.to_core(mapping.not_null_sources),
        columns=tuple(mapping.columns),
        steps=tuple(_steps(destination, catalog, capabilities, table_name, len(source.slices))),
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


def display_name(destination: Destination, default_schema: str | None) -> str:
    """`warehouse.sales`, or with a schema that is not the default `warehouse.mart.sales`."""
    schema = None if destination.schema == default_schema else destination.schema
    return ".".join(part for part in (destination.connection.name, schema, destination.table) if part)


def table_after(plan: DataFlowPlan, catalog: CatalogTable | None) -> CatalogTable | None:
    """The destination table once this task has ended: what later tasks of the run are planned against."""
    if catalog is not None or plan.schema is None:
        return catalog
    columns = tuple(
        CatalogColumn(column.target, column.type, str(column.type), column.nullable) for column in plan.columns
    )
    return CatalogTable(plan.schema, plan.table, columns)


def _effective_load(destination: Destination, capabilities: Capabilities, table_name: str, notes: list[str]) -> str:
    """How the rows travel. `staged` needs a `partition` clause; without one it is `single`, and the plan says so."""
    if not capabilities.stores_tables:
        return "single"
    if destination.load == "staged":
        notes.append("no partition clause: load is single")
        return "single"
    if destination.load not in capabilities.loads:
        raise TargetError(
            f"`load: {destination.load}` is not possible for table {table_name}",
            found=f"connection `{destination.connection.name}` is of type {capabilities.target_type}",
            expected=f"one of: {', '.join(sorted({*capabilities.loads, 'staged'}))}",
            hint=f"Set `load: {capabilities.loads[0]}` for destination `{destination.name}`.",
        )
    return destination.load


def _check_existing(destination: Destination, catalog: CatalogTable | None, table_name: str) -> None:
    if catalog is None:
        return
    if catalog.kind != "table":
        raise TargetError(
            f"{table_name} is a {catalog.kind}, not a table",
            hint=f"Drop the {catalog.kind} or load another table.",
        )
    if destination.target == "create":
        raise TargetError(
            f"table {table_name} exists already, and destination `{destination.name}` says `target: create`",
            found=f"a table with {counted(len(catalog.columns), 'column')}",
            hint="Use `target: append` to add rows, `target: replace` to replace them, or drop the table.",
        )
    if destination.target == "replace" and catalog.referenced_by:
        raise TargetError(
            f"table {table_name} cannot be replaced: other tables refer to its rows",
            found=f"foreign keys of {', '.join(catalog.referenced_by)}",
            hint="Empty those tables first, or use `target: append`.",
        )


def _working_streams(source: SourceSnapshot, streams: int, notes: list[str]) -> int:
    working = max(1, min(streams, len(source.slices)))
    if working < streams:
        reason = f"there {'is' if working == 1 else 'are'} {counted(working, 'slice')}"
        notes.append(f"{working} of {streams} streams work, because {reason}")
    return working


def _steps(
    destination: Destination, catalog: CatalogTable | None, capabilities: Capabilities, table_name: str, slices: int
) -> list[Step]:
    if not capabilities.stores_tables:
        return [
            Step("insert", "parse, convert and aggregate every row, then discard it"),
            Step("check_accounts", "every slice once, lines = rows + skipped, rows = loaded + rejected"),
        ]
    steps = []
    if catalog is None:
        steps.append(Step("create_table", f"create table {table_name}"))
    elif destination.target == "replace":
        steps.append(Step("delete_rows", f"delete all rows of {table_name}"))
    steps += [
        Step("insert", f"insert the rows of all streams into {table_name}"),
        Step("check_accounts", "every slice once, lines = rows + skipped, rows = loaded + rejected"),
        Step("commit_slices", f"write {counted(slices, 'commit row')} to the ledger"),
        Step("commit", "commit: the rows become visible in this one transaction"),
    ]
    return steps
