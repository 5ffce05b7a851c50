"""Bind data flows: join names of connections and layouts to the things, and check what goes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from headrace.errors import BindingError
from headrace.model.bound import (
    DataFlowTask,
    Describe,
    Described,
    Destination,
    FirstColumn,
    GatheredSource,
    RowColumn,
    SharedFlow,
    Source,
    columns_of,
)
from headrace.model.connections import Connection, FilesConnection
from headrace.model.file_source import FileSource, GenerateSource
from headrace.model.flow_graph import Reader
from headrace.model.flow_rows import rows_of
from headrace.model.fronts import fronts_of
from headrace.model.gathered_binder import (
    GatheredBinder,
    behind_queries,
    beside,
    beside_front,
    destination_of,
    divided,
    gathered_places,
    queries_fed,
    queries_passed,
)
from headrace.model.layout import Layout
from headrace.model.layout_column import Column
from headrace.model.load_options import LoadOptions
from headrace.model.lookup import AddedColumn, LookupTable
from headrace.model.meeting_rules import MeetingRules
from headrace.model.named_things import DESTINATIONS, NamedThings
from headrace.model.partition import CommitInterval
from headrace.model.partition_binder import PartitionBinder
from headrace.model.problems import ProblemCollector
from headrace.model.reject_limits import RejectBounds, RejectLimits
from headrace.model.reunion import Reunion
from headrace.model.scope import Scope
from headrace.model.shared_flow_rules import SharedFlowRules, looked_for
from headrace.model.spec_data_flow import (
    TPCH_TABLES_IN_ONE_CHUNK,
    DataFlowSpec,
    DestinationSpec,
    FileSourceSpec,
    GenerateSourceSpec,
)
from headrace.model.spec_partition import PartitionSpec
from headrace.model.spec_transforms import TransformSpec
from headrace.model.sql_transform import ComputedColumn, SqlTransform
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.task import Task
from headrace.model.together import Together, Union
from headrace.model.transform_binder import Beginning, BoundWays, Rebinding, TransformBinder
from headrace.model.validation import place_name
from headrace.model.yaml_reader import Document, DocumentPath

# What transforms are bound from: they, the path of the flow, where its rows come from, and who gets them.
_Way = tuple[Mapping[str, TransformSpec], DocumentPath, Beginning, Sequence[Reader], Scope]


@dataclass(frozen=True, slots=True)
class Environment:
    """What the names in tasks may refer to. A layout or connection that is wrong itself is None."""

    connections: Mapping[str, Connection | None]
    layouts: Mapping[str, Layout | None]
    streams: int
    rejects: RejectBounds | None = None


class FlowBinder:
    """Joins the settings of one package's data flows with what their names stand for. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, environment: Environment) -> None:
        self._document = document
        self._problems = problems
        self._environment = environment
        self._names = NamedThings(document, problems, environment.connections)
        self._gathered = GatheredBinder(document, problems)
        self._meetings = MeetingRules(document, problems)
        self._transforms = TransformBinder(document, problems, self._names, self._layout)

    def bind(
        self, spec: DataFlowSpec, task: Task, instance: str, when: bool, scope: Scope
    ) -> DataFlowTask | SharedFlow | None:
        """The data flow of a task whose references are resolved. None if something is wrong."""
        path = task.own_path
        sources = {name: self._source(name, own, (*path, "sources", name)) for name, own in spec.sources.items()}
        if not self._meetings.is_one(spec, path):
            return None
        places = {name: (*path, "destinations", name) for name in spec.destinations}
        destinations = {name: self._destination(name, own, places[name]) for name, own in spec.destinations.items()}
        readers = [Reader(name, (*places[name], "input"), own.input) for name, own in spec.destinations.items()]
        fronts = fronts_of(spec.transforms, spec.sources)
        way = (spec.transforms, path, Beginning(sources, fronts), readers, scope)
        bound = self.transforms_of(way, {})
        if bound is None:
            return None
        again = Rebinding(lambda tables: self._bound_again(way, tables))
        transforms, together = bound.transforms, bound.together
        source = next(own for own in sources.values() if own is not None) if together is None else together.sources[0]
        ends = {name: rows_of(own.input) for name, own in spec.destinations.items()}
        fronts_of_ends = {name: None if fronts is None else fronts.source_of(end) for name, end in ends.items()}
        if not self._gathered.check(spec, transforms, ends, path, fronts_of_ends):
            return None
        if len(destinations) > 1 and not self._share(spec, destinations, together, path):
            return None
        rejects = RejectLimits.of(spec.rejects, self._environment.rejects)
        first_place = next(own for own in destinations.values())
        if spec.rejects.table is not None and first_place is not None:
            self._names.fits(
                first_place.connection, spec.rejects.table, (*path, "rejects", "table"), "the table of rejects"
            )
        feeds = queries_fed(transforms)
        front = DataFlowTask(instance, task.name, when, source, destination_of(""), rejects, together=together)
        front = replace(front, flow=instance if feeds else "", feeds=feeds)
        results: dict[tuple[str, ...], GatheredSource | None] = {(): None}
        tasks: list[DataFlowTask] = []
        for name, destination in destinations.items():
            if destination is None:
                return None
            own, place = spec.destinations[name], places[name]
            whole = transforms[name]
            passed, queries = behind_queries(whole), queries_passed(whole)
            if queries not in results:
                own_front = replace(front, others=beside_front(transforms, name))
                results[queries] = self._gathered.source(whole, own_front, path)
                if results[queries] is None:
                    return None
            gathered = results[queries]
            number = fronts_of_ends[name]
            meeting = None if gathered is not None or number is not None else together
            read = gathered or _source_of(source, together, number)
            first: Sequence[FirstColumn] = read.layout.columns if meeting is None else meeting.columns
            columns = columns_of(first, passed, ends[name])
            others = beside(transforms, name)
            self._check_length(destination, columns, place)
            is_known = number is not None or together is None or together.is_described
            is_described = is_known and all(own.is_described for own in whole)
            if is_described or (is_known and not any(isinstance(own, SqlTransform | Reunion) for own in whole)):
                self._check_columns(destination, columns, (*place, "columns"))
            if together and not gathered and not self._divides(own, destination, together, place, number):
                return None
            shared = len(destinations) > 1
            is_whole = is_described and all(item.is_described for item in others)
            describe = (
                None
                if is_whole
                else self._describe(again, way[1], name, gathered_places(whole)[-1] if queries else None)
            )
            tasks.append(
                DataFlowTask(
                    f"{instance}/{name}" if shared else instance,
                    task.name,
                    when,
                    read,
                    self._partitioned(destination, own, read, first, columns, place),
                    rejects,
                    task.description,
                    # The rejects of all ways are told with the first one.
                    None if tasks else spec.rejects.table,
                    task.id,
                    passed,
                    describe,
                    together if gathered is None else None,
                    instance if shared else "",
                    others,
                    tuple(item for item in destinations.values() if item is not None and item is not destination),
                    ends[name],
                    feeds,
                    number,
                )
            )
        return tasks[0] if len(tasks) == 1 else SharedFlow(instance, _by_connection(tasks))

    def _share(
        self,
        spec: DataFlowSpec,
        destinations: Mapping[str, Destination | None],
        together: Together | None,
        path: DocumentPath,
    ) -> bool:
        """Whether several destinations can be filled in one pass, and one transaction."""
        refusals = SharedFlowRules(self._document, self._problems, path)
        return refusals.check(spec, [own for own in destinations.values() if own is not None], together)

    def _divides(
        self,
        spec: DestinationSpec,
        destination: Destination,
        together: Together,
        path: DocumentPath,
        front: int | None,
    ) -> bool:
        """Whether rows of several sources can be divided as the destination says: nobody looks at their keys before.
        `front`: the number of the source in front of whose meeting with others they stand, if they do.
        """
        clause = spec.partition
        if clause is None:
            return True
        if front is not None:
            return self._is_divided_as_written(clause, together, path, front)
        if not together.is_described and not _is_key_known(clause.column, destination, together):
            self._problems.add(
                self._document,
                (*path, "partition"),
                f"a table cannot be divided yet by a column whose type is not known before the run: rows pass a lookup "
                f"of a database in front of `{show_name(together.name)}`",
                hint=f"Put the lookup behind `{show_name(together.name)}`, or divide by another column.",
                at_key=True,
            )
            return False
        is_union = isinstance(together, Union)
        rows = f"the rows of the {'union' if is_union else 'join'} `{show_name(together.name)}`"
        if spec.commit is not None and not is_union:
            self._problems.add(
                self._document,
                (*path, "commit"),
                f"{rows} cannot be committed on the way into partitions, which all pairs of files fill together",
                expected="`commit` or `partition`",
                hint="Leave one of them out.",
                at_key=True,
            )
            return False
        is_written = clause.range is None or (is_union and spec.partitions is not None)
        unknown = None if is_written or clause.range is None else looked_for(clause.range)
        if unknown is not None:
            why = (
                "keys are looked for in one source in this version"
                if is_union
                else ("their keys are not known before they meet")
            )
            self._problems.add(
                self._document,
                (*path, "partition", "range"),
                f"{rows} cannot be divided by {unknown}: {why}",
                expected="`bounds` as a list of keys, `every` with `from` and `to`, `list` or `hash`",
                hint="Give the bounds, or leave `partition` out.",
                at_key=True,
            )
        return unknown is None

    def _is_divided_as_written(self, spec: PartitionSpec, together: Together, path: DocumentPath, front: int) -> bool:
        """Whether nobody has to look at the keys of rows that stand in front of what brings rows together."""
        unknown = None if spec.range is None else looked_for(spec.range)
        if unknown is not None:
            self._problems.add(
                self._document,
                (*path, "partition", "range"),
                f"rows of a data flow with several sources cannot be divided by {unknown}: keys are looked for in one "
                "source in this version"
                if front >= len(together.brought)
                else f"rows in front of `{show_name(together.name)}` cannot be divided by {unknown}: keys are looked "
                "for in one source in this version",
                expected="`bounds` as a list of keys, `every` with `from` and `to`, `list` or `hash`",
                hint="Give the bounds, or leave `partition` out.",
                at_key=True,
            )
        return unknown is None

    def transforms_of(self, way: _Way, tables: Mapping[str, LookupTable]) -> BoundWays | None:
        """The transforms of a data flow. `tables`: those of lookups that are known. None with a problem."""
        return self._transforms.bind(*way, tables)

    def _bound_again(self, way: _Way, tables: Mapping[str, LookupTable]) -> BoundWays:
        problems = self._new_problems()
        bound = FlowBinder(self._document, problems, self._environment).transforms_of(way, tables)
        problems.raise_if_any(BindingError)
        assert bound is not None
        return bound

    def _new_problems(self) -> ProblemCollector:
        """For what is found when the flow is planned."""
        problems = ProblemCollector(self._document.file)
        problems.secrets = self._problems.secrets
        return problems

    def _describe(self, again: Rebinding, path: DocumentPath, destination: str, gathered: int | None) -> Describe:
        """Binds the transforms once more, when the tables of lookups are known: those behind the query over all rows,
        the place of which is `gathered`.
        """

        def described(tables: Mapping[str, LookupTable]) -> Described:
            bound = again.bound(tables)
            passed = bound.transforms[destination]
            behind = passed if gathered is None else divided(passed, gathered)[1]
            late = next((behind[place].name for place in gathered_places(behind)), None)
            if late is not None:
                problems = self._new_problems()
                problems.add(
                    self._document,
                    (*path, "transforms", late),
                    f"the query `{show_name(late)}` needs all rows, and stands behind a lookup of a table "
                    "or query of a database, which is not possible in this version",
                    hint="Put the lookup behind the query, or let it read files.",
                    at_key=True,
                )
                problems.raise_if_any(BindingError)
            together = bound.together if gathered is None else None
            return Described(behind, beside(bound.transforms, destination), together)

        return described

    def _source(self, name: str, spec: FileSourceSpec | GenerateSourceSpec, path: DocumentPath) -> Source | None:
        layout = self._layout(spec.layout, (*path, "layout"))
        if isinstance(spec, GenerateSourceSpec):
            generate = spec.generate
            chunks = generate.chunks or self._environment.streams
            if generate.tpch in TPCH_TABLES_IN_ONE_CHUNK:
                chunks = 1
            if layout is None or self._refuse_made(layout, path):
                return None
            return GenerateSource(name, "tpch", generate.tpch, float(generate.scale), chunks, layout)
        connection = self._names.connection(spec.connection, (*path, "connection"), "a source", ("files",))
        if not isinstance(connection, FilesConnection) or layout is None:
            return None
        return FileSource(
            name,
            spec.connection,
            connection.path,
            spec.files,
            layout,
            missing=spec.missing,
            empty=spec.empty,
            compression=spec.compression,
            last_row_end=spec.last_row_end,
            wait_seconds=spec.wait_seconds,
        )

    def _refuse_made(self, layout: Layout, path: DocumentPath) -> bool:
        made = layout.made
        if made:
            self._problems.add(
                self._document,
                (*path, "layout"),
                f"column `{show_name(made[0].name)}` of the layout is made from `{made[0].from_}`, and generated rows "
                "stand in no file",
                expected="a layout without made columns",
                hint="Generate the files first, with `headrace generate`, and load them.",
            )
        return bool(made)

    def _destination(self, name: str, spec: DestinationSpec, path: DocumentPath) -> Destination | None:
        connection = self._names.connection(spec.connection, (*path, "connection"), "a destination", DESTINATIONS)
        if connection is None:
            return None
        self._names.table_fits(connection, spec.table, (*path, "table"), "the table")
        for number, tablespace in enumerate((spec.partition.tablespaces if spec.partition else None) or ()):
            self._names.fits(connection, tablespace, (*path, "partition", "tablespaces", number), "a tablespace")
        schema, _, table = spec.table.rpartition(".")
        return Destination(
            name,
            connection,
            schema or None,
            table,
            target=spec.target,
            load=spec.load,
            columns=spec.columns,
            commit=None if spec.commit is None else CommitInterval(spec.commit.bytes, spec.commit.rows),
            options=LoadOptions(**{option.name: getattr(spec, option.name) for option in fields(LoadOptions)}),
        )

    def _layout(self, layout: str | Layout, path: DocumentPath) -> Layout | None:
        if isinstance(layout, Layout):
            return layout
        found: Layout | None = self._names.look_up(self._environment.layouts, layout, path, "layout")
        return found

    def _check_length(self, destination: Destination, columns: Sequence[RowColumn], path: DocumentPath) -> None:
        """The names of its columns, as far as they are known."""
        for target in destination.columns or ():
            self._names.fits(destination.connection, target, (*path, "columns", target), "the column", at_key=True)
        for column in () if destination.columns else columns:
            self._names.fits(destination.connection, column.name, path, "a column", at_key=True)

    def _check_columns(
        self,
        destination: Destination,
        columns: Sequence[RowColumn],
        path: DocumentPath,
    ) -> None:
        names = [column.name for column in columns]
        is_read = all(isinstance(column, Column) for column in columns)
        for target, source in (destination.columns or {}).items():
            if source not in names:
                self._problems.add(
                    self._document,
                    (*path, target),
                    f"the {'source has' if is_read else 'rows have'} no column `{show_name(source)}`",
                    found=quote(source),
                    expected=one_of(names),
                    hint=did_you_mean(source, names) or "Write `target column: source column`.",
                )

    def _is_by_made_up(
        self,
        destination: Destination,
        spec: PartitionSpec,
        source: Source,
        columns: Sequence[RowColumn],
        path: DocumentPath,
    ) -> bool:
        """Whether the table would be divided by a column that is none of the source by the same name: a problem."""
        key = (spec.column or "").lower()
        mapping = destination.columns or {column.name: column.name for column in columns}
        wanted = next((source for target, source in mapping.items() if target.lower() == key), None)
        column = next((column for column in columns if column.name == wanted), None)
        if isinstance(column, AddedColumn):
            whose = f"is added by the lookup `{show_name(column.lookup)}`"
        elif isinstance(column, ComputedColumn) and column.field != column.name:
            whose = f"is computed by the transform `{show_name(column.transform)}`"
        else:
            return False
        strategy = "range" if spec.range else "list" if spec.list else "hash"
        self._problems.add(
            self._document,
            (*path, "partition", strategy, "column"),
            f"column `{show_name(column.name)}` {whose}, and cannot be a partition key",
            expected=f"a column of the query `{show_name(source.name)}`, by its own name"
            if isinstance(source, GatheredSource)
            else "a column that is read from the file, by its own name",
            hint="Leave `partition` out, or choose another key.",
        )
        return True

    def _partitioned(
        self,
        destination: Destination,
        spec: DestinationSpec,
        source: Source,
        first: Sequence[FirstColumn],
        columns: Sequence[RowColumn],
        path: DocumentPath,
    ) -> Destination:
        """The destination with its partitions. `first`: the columns in front of the transforms, which have a say in
        them; `columns`: those behind them.
        """
        clause = None
        is_divided = spec.partition is not None and spec.partition.column is not None
        if spec.partition is not None and not self._is_by_made_up(destination, spec.partition, source, columns, path):
            binder = PartitionBinder(self._document, self._problems, (*path, "partition"))
            clause = binder.bind(spec.partition, source, first, destination.columns, is_reload=bool(spec.partitions))
        if spec.partitions is not None and not is_divided:
            self._problems.add(
                self._document,
                (*path, "partitions"),
                f"{place_name((*path, 'partitions'))} means nothing for a table that is not divided",
                found=show_value(spec.partitions),
                hint="Add `partition`, or remove `partitions`.",
            )
        return replace(destination, partition=clause, partitions=tuple(spec.partitions or ()))


def _source_of(first: Source, together: Together | None, front: int | None) -> Source:
    """The source of rows: of several ones that do not meet their own one, else the first."""
    return first if together is None or front is None else together.sources[front]


def _by_connection(ways: Sequence[DataFlowTask]) -> tuple[DataFlowTask, ...]:
    """Ways to one connection stand together, in the order of the package: so they become visible. Behind them those to
    where nothing is, since nobody can say later whether they were complete. What rejects and rows of the pass over the
    source are told with comes first: a way without a query over all rows, and one behind what brings rows together.
    """
    behind = sorted(ways, key=lambda way: way.front is not None)
    names = list(dict.fromkeys(way.destination.connection.name for way in behind))

    def place(way: DataFlowTask) -> tuple[bool, int, bool, bool]:
        connection, is_gathered = way.destination.connection, isinstance(way.source, GatheredSource)
        return connection.type == "null", names.index(connection.name), is_gathered, way.front is not None

    return tuple(sorted(ways, key=place))


def _is_key_known(name: str | None, destination: Destination, together: Together) -> bool:
    """Whether rows that come together are known to have the column that goes into the column `name` of the table."""
    if name is None:
        return False
    mapping = {target.lower(): own for target, own in (destination.columns or {}).items()} or {name.lower(): name}
    return mapping.get(name.lower(), "").lower() in {column.name.lower() for column in together.columns}
