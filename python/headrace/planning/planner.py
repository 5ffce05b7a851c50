"""Package + catalog snapshot + capabilities -> plan. Pure: no files, no connection, no clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.errors import InternalError, TargetError
from headrace.model import DataFlowTask, DataType, GatheredSource, Split
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogPartition, CatalogPartitioning, CatalogTable
from headrace.planning.column_mapping import ColumnMapping
from headrace.planning.columns import map_columns
from headrace.planning.division import Division, divide
from headrace.planning.enforcement import enforced
from headrace.planning.epochs import epochs
from headrace.planning.existing import check_existing, check_view_columns
from headrace.planning.gathered import (
    GATHERING,
    GatherPlan,
    behind_queries,
    beside_queries,
    gathering_threads,
    note_of_fed,
)
from headrace.planning.key_questions import KeyFacts
from headrace.planning.long_names import refuse_cut_names
from headrace.planning.lookups import (
    LookupPlan,
    key_columns_made,
    lookups_beside,
    memory_notes,
    once,
    shared_notes,
    source_notes,
)
from headrace.planning.memory import LookupNeeds, MemoryBudget, split_memory
from headrace.planning.partition_key import check_partitioning, is_enforced, is_partitioned, key_column
from headrace.planning.partitioning import CommitSize, Partition, Partitioning
from headrace.planning.plan import DataFlowPlan, OutputColumn
from headrace.planning.reject_table import RejectTable
from headrace.planning.several_sources import made_columns, notes_of_made, plan_together, slab_of_sources
from headrace.planning.shared import computed_types, copied_types, fit_columns, rows_as_declared
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.sql_transforms import SqlPlan, most_columns
from headrace.planning.staging import Staging, plan_staging
from headrace.planning.steps import plan_steps
from headrace.planning.tablespaces import check_tablespaces
from headrace.planning.target_table import TargetTable, display_name
from headrace.planning.transforms import plan_transforms
from headrace.planning.wording import counted

# While one of them reads or waits for a writer the other one computes. 56 streams on two CPUs would need a third more
# CPU time, because their blocks do not fit the caches.
_STREAMS_PER_CPU: Final = 2


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
    key_facts: KeyFacts | None = None,
    taken_names: Collection[str] = (),
    reject_table: RejectTable | None = None,
) -> DataFlowPlan:
    """The plan of one data flow.

    `catalog` is the destination table as it will be when this task starts, None if there is none; `taken_names` are
    all names of its schema. `key_facts` answer what `key_question` asks.
    `reject_table` takes the rejects too.
    `file_stem` names the reject files of the task; by default the table.
    Raises TargetError, TypeMismatchError, MemoryLimitError, or SourceError for a lookup.
    """
    destination = task.destination
    layout = task.source.layout
    is_gathered = isinstance(task.source, GatheredSource)
    feeds = () if is_gathered or capabilities is GATHERING else task.feeds
    if feeds:
        budget = beside_queries(budget, len(feeds), streams)
    if isinstance(task.source, GatheredSource):
        budget = behind_queries(budget, task.source)
    table = TargetTable(destination, catalog, capabilities, display_name(destination, default_schema), taken_names)
    notes = list(source.notes)
    if task.flow:
        notes.append(f"filled in one pass with the other destinations of {task.flow}{_visible(task)}")
    if feeds:
        notes.append(note_of_fed(feeds))
    load = _effective_load(table, notes)
    check_existing(table, load)
    if is_partitioned(task, capabilities):
        check_tablespaces(destination, capabilities, table.name)
    _note_index_memory(table, notes)
    # What one table holds is not what the rows have: they have to fit it, one by one.
    fits = bool(task.flow) or is_gathered or task.reunites or task.has_fronts
    rows = rows_as_declared(task) if fits else task.rows
    mapping = map_columns(
        table.name,
        rows,
        destination.columns,
        catalog,
        capabilities,
        destination.options.keep_identity,
        source.paths,
        () if task.is_read_as_declared else task.ignoring,
    )
    refuse_cut_names(table, (column.target for column in mapping.columns))
    notes += mapping.notes
    made = made_columns(task)
    # What a query reads is what the layout says, whatever the table holds: the types of expressions depend on it.
    types = {} if task.is_read_as_declared else mapping.types
    not_null = set() if task.is_read_as_declared else mapping.not_null_sources
    types |= {own.name: own.type for own in made} if task.is_read_as_declared else key_columns_made(task.lookups, made)
    notes += notes_of_made(task, types, source)
    read_as = {column.name: types.get(column.name, column.type) for column in task.columns}
    transforms = plan_transforms(
        task,
        source.lookups,
        read_as,
        # What one of several destinations holds is checked at the end of its way alone, and so it is where several
        # ways have come together.
        {} if fits else mapping.types,
        streams,
        budget.total_bytes,
        table.name,
        () if fits else mapping.not_null_sources,
    )
    lookups = [plan for plan in transforms if isinstance(plan, LookupPlan)]
    beside = lookups_beside(task.lookups_beside, source.lookups_beside, streams, budget.total_bytes)
    queries = [plan for plan in transforms if isinstance(plan, SqlPlan)]
    notes += [*source_notes(once(lookups)), *shared_notes(lookups)]
    notes += [note for plan in queries for note in plan.notes()]
    check_view_columns(table, load, mapping)
    writers = streams if task.flow else _writers(table, load, streams, notes)
    working_streams = streams_at_work(source, writers, [] if is_gathered else notes)
    commit = _commit(table, notes, joins=task.join is not None)
    facts = key_facts or KeyFacts()
    own_source = source.of_slices(task.source_numbers)
    # Slices whose rows meet are taken together, whoever gets them.
    taken = (
        own_source if task.together is None or task.is_apart else source.of_slices(range(len(task.together.brought)))
    )
    way = _way(task, table, load, taken, mapping, facts, commit, working_streams, notes)
    _note_inert_options(table, notes)
    is_shared = way.partitioning is not None and way.partitioning.way == "shared"
    if is_shared:
        working_streams = _encoding_streams(working_streams, facts.cpus, notes)
    grouped = epochs(source, commit, working_streams) if commit is not None and is_shared else None
    if grouped and max(map(len, grouped)) < working_streams:
        working_streams = max(map(len, grouped))
        notes.append(f"{counted(working_streams, 'stream')} at work: no commit has more slices")
    memory = split_memory(
        budget,
        layout.columns,
        working_streams,
        capabilities.memory_share,
        rewrites=layout.rewritten_blocks,
        fills=layout.short_rows == "fill",
        row_width=layout.shortest_row_bytes,
        decoding_bytes=source.decoding_bytes(working_streams),
        lookups=_needs([*lookups, *beside]),
        computed=computed_types((*task.transforms, *task.others))
        if task.flow or task.reunites or task.has_fronts
        else _computed(task, queries),
        copied=copied_types(task),
        slab_of=slab_of_sources(task),
        blocks_per_stream=1 if task.join is None else len(task.join.brought),
    )
    if lookups:
        notes += memory_notes(once([*lookups, *beside]), memory)
    stem = file_stem or destination.table
    gather = _gather(task.source, source, budget, streams, stem) if isinstance(task.source, GatheredSource) else None
    if gather is not None:
        notes += [note for note in gather.notes() if note not in notes]
    together = plan_together(task, types, not_null, source)
    return DataFlowPlan(
        task=task.id,
        connection=destination.connection.name,
        schema=(destination.schema or default_schema) if capabilities.stores_tables else None,
        table=catalog.name if catalog else destination.table,
        target=destination.target,
        load=way.load,
        switch=way.staging.switch,
        partitioning=way.partitioning,
        staging=way.staging.tables,
        options=destination.options,
        streams=working_streams,
        source=own_source,
        layout=layout.to_core(not_null, types) if together is None else together.layouts[0],
        columns=tuple(mapping.columns),
        steps=plan_steps(
            table,
            way.staging,
            way.partitioning,
            len(own_source.slices),
            commits=commit is not None,
            rejects=reject_table,
            joins=0 if task.join is None or task.front is not None else 1 + len(task.join.inner),
            filters=task.filters,
            has_fronts=task.has_fronts,
        ),
        notes=tuple(notes),
        memory=memory,
        transforms=transforms,
        together=together,
        sink_kind=capabilities.sink_kind,
        rejects=task.rejects,
        # Rejects are those of the rows in front of it.
        file_stem=f"{stem}.{source.name}" if gather else stem,
        commit=commit,
        epochs=None if grouped is None else tuple(map(tuple, grouped)),
        reject_table=reject_table,
        connections=way.staging.connections,
        flow=task.flow,
        fit=fit_columns(rows, mapping) if fits else (),
        gather=gather,
        end=task.end,
        feeds=task.feeds,
        front=task.front,
    )


def _gather(own: GatheredSource, source: SourceSnapshot, budget: MemoryBudget, streams: int, stem: str) -> GatherPlan:
    """The flow that brings its rows to a query over all of them, whatever stands before that."""
    if source.gathered is None:
        raise InternalError(f"nothing is known of what the query `{own.name}` reads")
    threads, side_by_side = gathering_threads(streams), max(1, len(own.first.feeds))
    own_budget = replace(
        budget, consumer_threads=threads, consumers=side_by_side, engines=side_by_side, engine_share=0.0, gatherings=0
    )
    before = plan_data_flow(own.before, source.gathered, None, GATHERING, own_budget, streams, file_stem=stem)
    return GatherPlan(own, before, threads)


def table_after(plan: DataFlowPlan, catalog: CatalogTable | None) -> CatalogTable | None:
    """The destination table once this task has ended: what later tasks of the run are planned against."""
    if plan.schema is None:
        return catalog
    if catalog is None:
        columns = tuple(
            CatalogColumn(column.target, column.type, str(column.type), column.nullable) for column in plan.columns
        )
        catalog = CatalogTable(plan.schema, plan.table, columns)
    partitioning = plan.partitioning
    is_kept = plan.target == "append" or plan.reloads
    kept = catalog if is_kept else replace(catalog, partitioning=None, view_tables=())
    if plan.switch == "view" and partitioning is None:
        return replace(kept, kind="view", view_tables=(*kept.view_tables, *(part.table for part in plan.staging)))
    if partitioning is not None and partitioning.has_tables:
        old = kept.partitioning.partitions if kept.partitioning else ()
        stays = tuple(part for part in old if part.name not in partitioning.drops)
        new = tuple(CatalogPartition(part.table, part.rule) for part in partitioning.partitions if _is_new(part))
        like = catalog.partitioning or CatalogPartitioning(partitioning.strategy, (partitioning.column,))
        made = replace(like, partitions=(*stays, *new))
        if plan.switch == "view":
            return replace(
                kept, kind="view", partitioning=made, view_tables=tuple(part.name for part in made.partitions)
            )
        return replace(kept, partitioning=made)
    return catalog


def _is_new(part: Partition) -> bool:
    return part.action == "attach"


def _needs(lookups: Sequence[LookupPlan]) -> LookupNeeds | None:
    if not lookups:
        return None
    added = tuple(column.type for plan in lookups for column in plan.lookup.added)
    return LookupNeeds(
        sum(plan.bytes for plan in once(lookups)),
        max(plan.reading.reader_bytes for plan in lookups),
        max(plan.reading.most_reader_bytes for plan in lookups),
        added,
        any(plan.reading.engine_bytes for plan in lookups),
    )


def _computed(task: DataFlowTask, queries: Sequence[SqlPlan]) -> tuple[DataType, ...]:
    """What queries have made at one moment, and the numbers by which rows are split."""
    splits = [own for own in task.transforms if isinstance(own, Split)]
    return (*most_columns(queries), *computed_types(splits))


@dataclass(frozen=True)
class _Way:
    """How the rows really travel."""

    load: str
    staging: Staging
    partitioning: Partitioning | None = None


def _way(
    task: DataFlowTask,
    table: TargetTable,
    load: str,
    source: SourceSnapshot,
    mapping: ColumnMapping,
    facts: KeyFacts,
    commit: CommitSize | None,
    streams: int,
    notes: list[str],
) -> _Way:
    division: Division | None = None
    capabilities = table.capabilities
    if is_partitioned(task, capabilities) and capabilities.stores_tables:
        division = divide(table, source, _key(task, table, mapping), facts, notes)
    if not capabilities.hidden_tables:
        if division is not None:
            return _Way(load, Staging("view"), division.partitioning)
        is_whole = is_enforced(task, capabilities)
        whole = enforced(table, _key(task, table, mapping), notes) if is_whole else None
        return _Way(load, Staging(), whole)
    # Writers of several tables cannot commit together otherwise.
    moves = bool(task.flow)
    staging = plan_staging(table, load, source, division, streams, commits=commit is not None, moves=moves)
    notes += staging.notes
    return _Way(load, staging, None if division is None else division.partitioning)


def _key(task: DataFlowTask, table: TargetTable, mapping: ColumnMapping) -> OutputColumn:
    source = key_column(task, table.capabilities, table.name)
    destination = table.destination
    key = next((item for item in mapping.columns if item.source == source.name), None)
    if key is None:
        raise TargetError(
            f"table {table.name} cannot be partitioned by a column that it numbers itself",
            found="`keep_identity: false`",
            hint=f"Set `keep_identity: true` for destination `{destination.name}`.",
        )
    if table.catalog is not None and destination.partition is not None and is_partitioned(task, table.capabilities):
        names = (table.name, destination.name)
        check_partitioning(table.catalog, destination.partition, source, table.capabilities, names)
    return key


def _commit(table: TargetTable, notes: list[str], *, joins: bool) -> CommitSize | None:
    """How much goes into one transaction; None for all of it."""
    commit, capabilities = table.destination.commit, table.capabilities
    if commit is None or not capabilities.stores_tables:
        return None
    if not capabilities.commits_inside:
        notes.append(f"`commit` has no effect in {capabilities.target_type}: all rows are one transaction")
        return None
    size = f"{commit.rows:,} rows" if commit.bytes is None else f"{commit.bytes / 1_000_000:,.15g} MB of text"
    whole = ", whole pairs of files" if joins else ""
    notes.append(f"about every {size} are committed{whole}: a load that breaks off goes on from there")
    return CommitSize(commit.bytes, commit.rows)


def _effective_load(table: TargetTable, notes: list[str]) -> str:
    """How the rows travel. `staged` needs a `partition` clause; without one it is `single`, and the plan says so."""
    destination, capabilities = table.destination, table.capabilities
    if not capabilities.stores_tables:
        return "single"
    if destination.partitions and destination.load not in capabilities.partition_loads:
        raise TargetError(
            f"table {table.name} has no partitions that could be loaded anew",
            found=f"`load: {destination.load}`, and connection `{destination.connection.name}` is of type "
            f"{capabilities.target_type}",
            expected=f"`load: {capabilities.partition_loads[0]}`" if capabilities.partition_loads else None,
            hint=f"Leave `partitions` of destination `{destination.name}` out: then all rows are replaced.",
        )
    if destination.partition is not None and destination.load in capabilities.partition_loads:
        return destination.load
    if destination.load == "staged":
        if destination.partition is None:
            notes.append("no partition clause: load is single")
        else:
            notes.append(f"{capabilities.target_type} has no partitions: load is single")
        return "single"
    if destination.load in capabilities.partition_loads:
        raise TargetError(
            f"`load: {destination.load}` is not possible for table {table.name} without a `partition` clause",
            found=f"connection `{destination.connection.name}` is of type {capabilities.target_type}: one writer takes "
            "the rows of all streams",
            expected="partitions, each of which becomes a table that the view shows",
            hint=f"Declare `partition` for destination `{destination.name}`, or set `load: {capabilities.loads[0]}`.",
        )
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


def _visible(task: DataFlowTask) -> str:
    """When the rows of one of several destinations become visible."""
    if all(own.connection.name == task.destination.connection.name for own in task.beside):
        return ", and visible with them at once"
    return "; tables of one connection become visible at once, one connection after the other in the order of this plan"


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


def _encoding_streams(streams: int, cpus: int, notes: list[str]) -> int:
    """Streams that share their writers have no connection of their own: all they do is compute."""
    most = _STREAMS_PER_CPU * cpus
    if streams <= most:
        return streams
    notes.append(f"{most} of {streams} streams work: they only feed the writers, and there are {counted(cpus, 'CPU')}")
    return most


def streams_at_work(source: SourceSnapshot, streams: int, notes: list[str]) -> int:
    working = max(1, min(streams, source.groups))
    if working < streams:
        pairs = source.pairs or 0
        known = [(pairs, source.pair_word), (source.groups - pairs, "slice")]
        what = " and ".join(counted(count, of) for count, of in known if count)
        reason = f"there {'is' if working == 1 else 'are'} {what or counted(working, 'slice')}"
        notes.append(f"{working} of {streams} streams work, because {reason}")
    return working
