"""Reading a source once more, to compare it with what a table holds."""

from __future__ import annotations

from headrace.model import DataFlowTask
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.columns import map_columns
from headrace.planning.memory import MemoryBudget, split_memory
from headrace.planning.partitioning import Partitioning
from headrace.planning.plan import DataFlowPlan
from headrace.planning.planner import streams_at_work
from headrace.planning.several_sources import made_columns, plan_together, slab_of_sources
from headrace.planning.shared import computed_types, copied_types, fit_columns, rows_as_declared
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.target_table import display_name
from headrace.planning.transforms import plan_transforms


def source_alone(task: DataFlowTask, source: SourceSnapshot) -> SourceSnapshot:
    """What is read for it, as if its flow had no other sources."""
    if task.together is None:
        return source
    return source.without_apart(len(task.together.brought)) if task.front is None else source.alone(task.front)


def plan_source_pass(
    task: DataFlowTask,
    source: SourceSnapshot,
    catalog: CatalogTable,
    capabilities: Capabilities,
    budget: MemoryBudget,
    streams: int,
    *,
    default_schema: str | None = None,
    partitioning: Partitioning | None = None,
) -> DataFlowPlan:
    """The plan of reading a source once more without storing anything: the same rows are rejected as by the load into
    the existing table `catalog` and its `partitioning`, and the columns of the plan are those that the load has filled.
    On the way nothing is looked up or computed: rows may come together, and be split.

    Raises TypeMismatchError if the table has other columns by now, or MemoryLimitError.
    """
    source, task = source_alone(task, source), task.alone
    destination = task.destination
    layout = task.source.layout
    table_name = display_name(destination, default_schema)
    # Rows of one of several destinations may have gone another way, and have to fit its table, as when it was loaded.
    rows = rows_as_declared(task) if task.flow else task.columns
    mapping = map_columns(
        table_name,
        rows,
        destination.columns,
        catalog,
        capabilities,
        destination.options.keep_identity,
        source.paths,
        () if task.flow else task.ignoring,
    )
    types = {own.name: own.type for own in made_columns(task)} if task.flow else mapping.types
    not_null = set() if task.flow else mapping.not_null_sources
    read_as = {column.name: types.get(column.name, column.type) for column in task.columns}
    transforms = plan_transforms(task, (), read_as, {}, streams, budget.total_bytes, table_name, ())
    together = plan_together(task, types, not_null, source)
    working_streams = streams_at_work(source, streams, [])
    return DataFlowPlan(
        task=task.id,
        connection=destination.connection.name,
        schema=destination.schema or default_schema,
        table=catalog.name,
        target=destination.target,
        load="single",
        switch="none",
        partitioning=partitioning,
        staging=(),
        options=destination.options,
        streams=working_streams,
        source=source,
        layout=layout.to_core(not_null, types) if together is None else together.layouts[0],
        together=together,
        columns=tuple(mapping.columns),
        steps=(),
        notes=(),
        memory=split_memory(
            budget,
            layout.columns,
            working_streams,
            capabilities.memory_share,
            rewrites=layout.rewritten_blocks,
            fills=layout.short_rows == "fill",
            row_width=layout.shortest_row_bytes,
            decoding_bytes=source.decoding_bytes(working_streams),
            slab_of=slab_of_sources(task),
            computed=computed_types(task.transforms),
            copied=copied_types(task) if task.transforms else (),
            blocks_per_stream=1 if task.join is None else len(task.join.brought),
        ),
        transforms=transforms,
        fit=fit_columns(rows, mapping) if task.flow else (),
        end=task.end,
        sink_kind="null",
        rejects=task.rejects,
        keep_rejects="examples",
        file_stem=destination.table,
    )
