"""From a bound package to a plan: looks at the sources, opens the destinations, plans every data flow.

All of it happens before the first row moves, so that the file missing for the last table is found before the first
table is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headrace.errors import SourceError
from headrace.model import (
    BoundPackage,
    Connection,
    DataFlowTask,
    Destination,
    FilesConnection,
    FileSource,
    GatheredSource,
    Join,
    Union,
)
from headrace.model.load import usable_cpus
from headrace.planning import (
    CatalogTable,
    DataFlowPlan,
    FinishedTask,
    KeyFacts,
    RunFacts,
    RunPlan,
    SkippedTask,
    Unlisted,
    display_name,
    engine_bytes,
    is_enforced,
    is_partitioned,
    key_question,
    lookup_engine_bytes,
    own_tables,
    plan_data_flow,
    source_alone,
    table_after,
    with_outside_keys,
)
from headrace.planning.wording import stream_name
from headrace.run.flow_budget import budget_of
from headrace.run.flow_sources import PreparedFlow, look_at, refuse_shared_input, way_of
from headrace.run.key_answers import KeyAnswers
from headrace.run.lookup_sources import lookup_sources, with_lookups_before
from headrace.run.lookup_tables import described
from headrace.run.missing_files import nothing_to_load
from headrace.run.redact import Redactor
from headrace.run.reject_tables import RejectTables, TableKey, table_key
from headrace.run.schema_names import SchemaNames
from headrace.run.shared_marks import shared_by_destinations
from headrace.run.tasks import file_stem as stem_of
from headrace.run.tasks import nameable_flows
from headrace.run.true_hints import NEW_RUN
from headrace.run.two_loads import refuse_second_load
from headrace.targets import (
    ClosedBehind,
    OpenOptions,
    Target,
    TaskProgress,
    capabilities_of,
    files_of,
    open_target,
    refuse_two_ways,
    target_key,
)


def prepare_sources(
    package: BoundPackage, is_cancelled: Callable[[], bool] = lambda: False, *, with_lookups: bool = True
) -> list[PreparedFlow | SkippedTask]:
    """Looks at the source of every data flow, in the order of execution, and at their lookups unless nobody reads them.

    Raises CancelledError, and SourceError; also when several data flows have no file and no other has any: one of them
    may wait for the files of a quiet day, but several without any look like the wrong folder.
    """
    flows = nameable_flows(package)
    places = {target_key(flow.destination.connection): flow.destination.connection for flow, when in flows if when}
    destination_files = [file for connection in places.values() for file in files_of(connection)]
    prepared: list[PreparedFlow | SkippedTask] = []
    missing: list[FileSource] = []
    before: tuple[str, PreparedFlow | SkippedTask] | None = None
    for task, when in flows:
        if not when:
            prepared.append(SkippedTask(task.id, task.destination.table, "`when` is false"))
            continue
        if before is None or not task.flow or before[0] != task.flow:
            before = (task.flow, look_at(task, package.streams, destination_files, is_cancelled, missing))
        item = way_of(task, before[1])
        if with_lookups:
            item = _with_lookups(item, package.streams, destination_files, is_cancelled)
        prepared.append(item)
    refuse_shared_input([item for item in prepared if isinstance(item, PreparedFlow)])
    if len(missing) > 1 and not any(isinstance(item, PreparedFlow) for item in prepared):
        raise nothing_to_load(missing)
    return prepared


def look_at_flow(
    task: DataFlowTask, package: BoundPackage, is_cancelled: Callable[[], bool]
) -> PreparedFlow | SkippedTask:
    """Looks at the sources of one data flow, which is about to start: what is there for all of its ways. Raises
    CancelledError and SourceError.
    """
    return look_at(task, package.streams, _files_beside(task), is_cancelled, [])


def prepare_flow(
    task: DataFlowTask, package: BoundPackage, is_cancelled: Callable[[], bool], known: PreparedFlow | SkippedTask
) -> PreparedFlow | SkippedTask:
    """A data flow that is about to start, or one of its ways, with its lookups. `known`: what was found for all of
    these. Raises CancelledError and SourceError.
    """
    return _with_lookups(way_of(task, known), package.streams, _files_beside(task), is_cancelled)


def _files_beside(task: DataFlowTask) -> list[Path]:
    return [file for own in (task.destination, *task.beside) for file in files_of(own.connection)]


def _with_lookups(
    item: PreparedFlow | SkippedTask,
    streams: int,
    destination_files: Sequence[Path],
    is_cancelled: Callable[[], bool],
) -> PreparedFlow | SkippedTask:
    if isinstance(item, SkippedTask):
        return item
    source = with_lookups_before(item.task.source, item.source, streams, destination_files, is_cancelled)
    item = replace(item, source=source)
    own, beside = (
        lookup_sources(lookups, streams, destination_files, is_cancelled)
        for lookups in (item.task.lookups, item.task.lookups_beside)
    )
    return replace(item, source=replace(item.source, lookups=own, lookups_beside=beside))


class OpenTargets(ClosedBehind):
    """The destinations of a run, each place opened once, all closed at the end."""

    def __init__(
        self,
        package: BoundPackage,
        flows: Sequence[PreparedFlow],
        *,
        spill_folder: str | None,
        read_only: bool,
        notice: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._targets: dict[tuple[str, str], Target] = {}
        self._connections: dict[tuple[str, str], Connection] = {}
        self._memory_bytes = package.memory_bytes
        self._options = OpenOptions(
            engine_bytes=0,
            threads=usable_cpus(),
            spill_folder=spill_folder,
            read_only=read_only,
            notice=notice,
            is_cancelled=is_cancelled,
            is_trusted=package.is_trusted,
        )
        for flow in flows:
            # Of its other destinations there may be some that get nothing: they are asked all the same.
            for own in (flow.task.destination, *flow.task.beside):
                self._know(own.connection)
        # Those of the package that may be opened later have their part of the memory from the beginning.
        places = [*self._connections.values(), *engines_of(package)]
        self._engines = len({target_key(own) for own in places if _share(own)})
        try:
            for connection in list(self._connections.values()):
                self.open(connection)
        except BaseException:
            self.close()
            raise

    def open(self, connection: Connection) -> Target:
        """Opens a destination that is not open yet."""
        key = self._know(connection)
        # One run has one budget, however many destinations it has.
        own_bytes = engine_bytes(self._memory_bytes, _share(connection)) // max(1, self._engines)
        target = self._targets[key] = open_target(connection, replace(self._options, engine_bytes=own_bytes))
        return target

    def find(self, connection: Connection) -> Target | None:
        """The destination, if it is open."""
        refuse_two_ways(self._connections.get(target_key(connection), connection), connection)
        return self._targets.get(target_key(connection))

    @contextmanager
    def reading(self, connection: Connection) -> Iterator[Target]:
        """A place that is only read: the destination that has it open, or opened for the block."""
        found = self.find(connection)
        if found is not None:
            yield found
            return
        # The same file must not be opened twice, and nobody else opens it: one flow at a time has the pool of the run.
        own_bytes = lookup_engine_bytes(self._memory_bytes)
        with open_target(connection, replace(self._options, engine_bytes=own_bytes, read_only=True)) as target:
            yield target

    def _know(self, connection: Connection) -> tuple[str, str]:
        key = target_key(connection)
        refuse_two_ways(self._connections.setdefault(key, connection), connection)
        return key

    def __getitem__(self, connection: Connection) -> Target:
        return self._targets[target_key(connection)]

    def all(self) -> list[Target]:
        """The targets, in the order in which the run uses them."""
        return list(self._targets.values())

    def close(self) -> None:
        """Closes every target; raises the first error after all were tried."""
        first: Exception | None = None
        for target in self._targets.values():
            try:
                target.close()
            except Exception as error:
                first = first or error
        self._targets.clear()
        if first is not None:
            raise first


def engines_of(package: BoundPackage) -> list[Connection]:
    """Connections of destinations that tasks use of which it is not known before the run when they start."""
    named = {word for task in package.all_tasks() for word in _connection_names(task.own)}
    return [own for name, own in package.connections.items() if name in named and not isinstance(own, FilesConnection)]


def _connection_names(own: object) -> Iterator[str]:
    if isinstance(own, Mapping):
        for key, value in own.items():
            if key == "connection" and isinstance(value, str):
                yield value
            else:
                yield from _connection_names(value)


def _share(connection: Connection) -> float:
    return capabilities_of(connection).memory_share


def plan_run(
    package: BoundPackage,
    prepared: Sequence[PreparedFlow | SkippedTask],
    targets: OpenTargets,
    resumed_run: str | None = None,
    keys: KeyAnswers | None = None,
    run: RunFacts | None = None,
    stem: str | None = None,
    stems: dict[str, str] | None = None,
) -> RunPlan:
    """Plans every data flow against its destination as it will be when the flow starts.

    `run`: what columns that are made say of it; None for a plan that is only read.

    `stem`: how the names of files of a single flow begin, if not by its table. `stems`: how those of each task begin,
    by its id, which stays so when the task is planned once more.

    With `resumed_run`, the id of a run that had an earlier attempt, only what that attempt has left. `keys` answers
    questions about the keys of sources.
    """
    keys = keys or KeyAnswers()
    tables: dict[tuple[object, ...], CatalogTable | None] = {}
    loaders: dict[tuple[object, ...], list[DataFlowTask]] = {}
    # As the flow before has left them: nothing of what a flow makes is there when its lookups are read.
    before, known_before = "", tables
    names = SchemaNames()
    reject_tables = RejectTables(
        table_key(targets[item.task.destination.connection], item.task.destination, item.task.destination.table)
        for item in prepared
        if isinstance(item, PreparedFlow)
    )
    parts = set[TableKey]()
    stems = {} if stems is None else stems
    taken_stems: set[str] = set()
    redactor = Redactor(package.secrets)
    planned: list[DataFlowPlan | SkippedTask | FinishedTask] = []
    for item in prepared:
        if isinstance(item, SkippedTask):
            planned.append(item)
            continue
        destination = item.task.destination
        target = targets[destination.connection]
        progress = target.task_progress(resumed_run, item.task.id) if resumed_run else TaskProgress()
        if resumed_run is not None and not progress.finished:
            _refuse_streams(item, f"run {resumed_run} cannot be resumed", NEW_RUN)
        # A name of a file is seen by everybody, and is the same in every attempt of a run, and every try of a task.
        if item.task.id not in stems:
            stems[item.task.id] = stem_of(redactor.text(stem or destination.table), taken_stems)
        own_stem = stems[item.task.id]
        if progress.finished:
            shared = shared_by_destinations(item.task, target, resumed_run) if item.task.flow else None
            planned.append(_finished(item.task, target, progress, own_stem, shared))
            continue
        if item.task.flow != before or not before:
            before, known_before = item.task.flow, dict(tables) if item.task.flow else tables
        item = _with_tables(item, targets, known_before)
        key = table_key(target, destination, destination.table)
        if key not in tables:
            tables[key] = target.catalog(destination.schema, destination.table)
        if target.capabilities.stores_tables:
            earlier = loaders.setdefault(key, [])
            refuse_second_load(item.task, earlier, display_name(destination, target.default_schema))
            earlier.append(item.task)
        taken = names.of(target, key[:2], destination) if target.capabilities.makes_parts else frozenset()
        facts = _key_facts(item, target, tables[key], package.streams, keys)
        plan = plan_data_flow(
            item.task,
            item.source,
            tables[key],
            target.capabilities,
            budget_of(package.memory_bytes, [targets[own.connection] for own in (destination, *item.task.beside)]),
            package.streams,
            default_schema=target.default_schema,
            file_stem=own_stem,
            key_facts=facts,
            taken_names=taken,
            reject_table=reject_tables.of(item.task, target),
        )
        plan = with_outside_keys(plan, facts, _asked(target, destination))
        names.follow(key[:2], plan, tables[key])
        after = table_after(plan, tables[key])
        own = (*own_tables(tables[key]), *own_tables(after))
        parts.update(table_key(target, destination, part) for part in own)
        tables[key] = after
        # Whatever an earlier attempt has committed out of sight: rows and result of one pass are of one attempt.
        plan = plan if plan.feeds else plan.continued(progress.slices)
        planned.append(replace(plan, run=run))
    reject_tables.refuse_parts(parts)
    return RunPlan(
        package=package.name,
        package_hash=package.content_hash,
        streams=package.streams,
        affinity=package.affinity,
        memory_bytes=package.memory_bytes,
        tasks=tuple(planned),
        notes=tuple(note for target in targets.all() for note in target.notes),
    )


def _with_tables(
    item: PreparedFlow, targets: OpenTargets, after: Mapping[TableKey, CatalogTable | None]
) -> PreparedFlow:
    """With the tables of its lookups."""
    task, notes = described(item.task, targets, after)
    lookups = (
        replace(own, notes=[*own.notes, notes[own.name]]) if own.name in notes else own for own in item.source.lookups
    )
    return replace(item, task=task, source=replace(item.source, lookups=tuple(lookups)))


def _finished(
    task: DataFlowTask, target: Target, progress: TaskProgress, file_stem: str, shared: Mapping[str, int] | None
) -> FinishedTask:
    destination, source = task.destination, task.source
    has_tables = is_partitioned(task, target.capabilities) or destination.load == "view"
    read = source.first if isinstance(source, GatheredSource) else task
    return FinishedTask(
        task=task.id,
        connection=destination.connection.name,
        table=destination.table,
        target=destination.target,
        load=destination.load if has_tables else "single",
        slices=progress.slices,
        file_stem=file_stem,
        reject_table=None
        if task.reject_table is None
        else display_name(destination, target.default_schema, task.reject_table),
        is_joined=isinstance(read.meeting, Join),
        is_united=isinstance(read.meeting, Union),
        query=source.name if isinstance(source, GatheredSource) else "",
        flow=task.flow,
        shared=shared,
    )


def _key_facts(
    item: PreparedFlow, target: Target, catalog: CatalogTable | None, streams: int, keys: KeyAnswers
) -> KeyFacts | None:
    """What planning needs to know of the keys of a flow with declared partitions; None for other flows."""
    task = item.task
    if not (is_partitioned(task, target.capabilities) or is_enforced(task, target.capabilities)):
        return None
    name = display_name(task.destination, target.default_schema)
    question = key_question(task, catalog, target.capabilities, name)
    is_read_once = item.source.streams or item.source.gathered is not None
    if question is not None and is_read_once and "distinct" in (question.scan or {}):
        question = None  # as of generated rows: the first row outside is the target's to refuse
    if question is not None:
        hint = f"Give the bounds in `partition` of destination `{task.destination.name}`."
        _refuse_streams(item, f"the bounds of the partitions of {name} cannot be found", hint)
        if question.scan is None and item.source.compressions:
            raise SourceError(
                f"the bounds of the partitions of {name} cannot be found from the ends of its files",
                found=f"files compressed by {' and '.join(item.source.compressions)}: read from the front only",
                hint=hint,
            )
    return keys.facts(task.id, question, item.source, task.source.layout, streams)


def _refuse_streams(item: PreparedFlow, what: str, hint: str) -> None:
    """Raises SourceError if the source would have to be read twice, and cannot be."""
    if streams := source_alone(item.task, item.source).streams:
        name = stream_name(streams[0])
        raise SourceError(what, found=f"task `{item.task.id}` reads {name}, which can be read once only", hint=hint)


def _asked(target: Target, destination: Destination) -> Unlisted:
    return lambda keys, values: target.unlisted_keys(destination.schema, destination.table, keys, values)
