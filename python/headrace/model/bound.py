"""A bound package, and data flows of which every reference and expression is resolved: what planning reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.machine.affinity import Affinity
from headrace.model.connections import Connection
from headrace.model.data_type import DataType
from headrace.model.file_source import FileSource, GenerateSource
from headrace.model.flow_rows import FIRST, MAIN, FlowRows, rows_of
from headrace.model.gathered_query import GatheredQuery
from headrace.model.join import JoinedColumn
from headrace.model.layout import Layout
from headrace.model.layout_column import Column
from headrace.model.load_options import DEFAULT_OPTIONS, LoadOptions
from headrace.model.lookup import AddedColumn, LookupKey, LookupTable
from headrace.model.lookup_sources import DatabaseSource, QuerySource
from headrace.model.open_doubts import OpenDoubt
from headrace.model.partition import CommitInterval, PartitionClause
from headrace.model.reject_limits import RejectLimits
from headrace.model.reunion import Reunion
from headrace.model.scope import Scope
from headrace.model.settings import SpecModel
from headrace.model.spec_transforms import NO_MATCH
from headrace.model.split import Split
from headrace.model.sql_transform import ComputedColumn, SqlTransform
from headrace.model.task import Handler, Task, Variable
from headrace.model.together import Join, Together, Union, number_without_apart
from headrace.model.union import UnitedColumn

if TYPE_CHECKING:
    from headrace.model.child_packages import ChildPackage
    from headrace.model.task_binder import TaskBinder


@dataclass(frozen=True, slots=True)
class GatheredSource:
    """What a query makes of all rows of a data flow. `name`: that of the transform; `layout`: has the columns of the
    query; `before`: brings the rows to it.
    """

    name: str
    query: GatheredQuery
    written: str
    layout: Layout
    before: DataFlowTask

    @property
    def first(self) -> DataFlowTask:
        """The flow that reads what is no result of a query: the one in front of the first of several queries."""
        source = self.before.source
        return source.first if isinstance(source, GatheredSource) else self.before


Source = FileSource | GenerateSource | GatheredSource


@dataclass(frozen=True, slots=True)
class Lookup:
    """Columns that each row gets from the one row of `source` that has its key. `name`: that of the transform; `input`:
    whose rows they are.

    `rejects_misses`: rows that find nothing are rejects; `sends_misses`: they go to an output of their own; else they
    get the defaults of the columns. `keeps_first`: of
    its rows with one key the first is found; else they are an error. `ignores_case`: in texts of keys. `front_of`: see
    `Split`.
    """

    name: str
    source: FileSource | QuerySource | DatabaseSource
    keys: tuple[LookupKey, ...]
    added: tuple[AddedColumn, ...]
    rejects_misses: bool = False
    keeps_first: bool = False
    ignores_case: bool = False
    sends_misses: bool = False
    input: str = ""
    front_of: int | None = None

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return (rows_of(self.input),)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs by which rows go on, in the order of their numbers."""
        return (MAIN, NO_MATCH) if self.sends_misses else (MAIN,)

    @property
    def types(self) -> dict[str, DataType]:
        """The types of the columns that its rows have."""
        source = self.source
        if isinstance(source, FileSource):
            return {column.name: column.type for column in source.layout.columns}
        return {column.name: column.type for column in source.columns.values()}

    @property
    def is_described(self) -> bool:
        """Whether its types are known. If not, keys and defaults were not looked at either."""
        return not isinstance(self.source, DatabaseSource) or self.source.found is not None


# What rows pass on their way to one destination.
Transform = Lookup | SqlTransform | Split | Reunion
# A column of the rows that transforms begin with: of the layout, of a join, or of a union.
FirstColumn = Column | JoinedColumn | UnitedColumn
# A column of the rows anywhere: one of these, of a lookup, or of a query.
RowColumn = FirstColumn | AddedColumn | ComputedColumn


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a way once the tables of lookups are: its transforms, those of the other ways of its flow, and
    how the rows of its sources come together.
    """

    transforms: tuple[Transform, ...]
    others: tuple[Transform, ...]
    together: Together | None = None


# By the names of the lookups. Raises BindingError for what does not fit the tables and queries.
Describe = Callable[[Mapping[str, LookupTable]], Described]


def columns_of(first: Sequence[RowColumn], transforms: Sequence[Transform], rows: FlowRows) -> tuple[RowColumn, ...]:
    """The columns of rows somewhere on their way; `first`: those in front of the transforms."""
    known = {own.name: own for own in transforms}
    added: tuple[RowColumn, ...] = ()
    while (own := known.get(rows.name)) is not None:
        if isinstance(own, SqlTransform | Reunion):
            return (*own.columns, *added)
        if isinstance(own, Lookup) and rows.output == MAIN:
            added = (*own.added, *added)
        rows = own.inputs[0]
    return (*first, *added)


def rows_read(transforms: Iterable[Transform], end: FlowRows) -> set[FlowRows]:
    """The rows that go on somewhere on the way that ends with those of `end`."""
    return {rows for own in transforms for rows in own.inputs} | {end}


def outputs_taken(transform: Transform, read: Collection[FlowRows]) -> tuple[FlowRows, ...]:
    """By which of its outputs rows go on, in the order of their numbers; `read`: the rows that do."""
    rows = (FlowRows(transform.name, output) for output in transform.outputs)
    return tuple(own for own in rows if own in read)


def lookups_among(transforms: Sequence[Transform]) -> tuple[Lookup, ...]:
    """Those that are lookups."""
    return tuple(own for own in transforms if isinstance(own, Lookup))


@dataclass(frozen=True, slots=True)
class Destination:
    """The table that rows go to. `columns` is target column: source column; None maps by equal names.

    `partitions`: names of those that are loaded anew while all others stay; empty: all of them. `takes_back`: rows come
    that a load has rejected: what it has made of the table stays, no partition goes, and files are none of the load's.
    """

    name: str
    connection: Connection
    schema: str | None
    table: str
    target: Literal["create", "append", "replace"]
    load: Literal["staged", "single", "view"] = "staged"
    columns: dict[str, str] | None = None
    partition: PartitionClause | None = None
    partitions: tuple[str, ...] = ()
    commit: CommitInterval | None = None
    options: LoadOptions = DEFAULT_OPTIONS
    takes_back: bool = False


@dataclass(frozen=True, slots=True)
class DataFlowTask:
    """One source through `transforms`, each of which stands behind what it reads, to one destination, which gets the
    rows of `end`. With `together` its rows are those that come out of a join or a union, and `source` is the first of
    these sources; transforms in front of it come first, those of the first source before those of the next one. `id` is
    unique in the run: `load_tables[lineitem].load`; `definition` is that of the task that defines it:
    `load_tables.load`. `reject_table`: beside the table of the destination, None if rejects go into no table; of a flow
    with several destinations the first one has it. `describe`: gives `transforms`, `others` and `together` once the
    tables of lookups are known; None if they are as they stand.
    `flow`: of a flow with several destinations its id, which is a part of that of each of them; `others`: transforms
    that rows pass on the ways to the other ones alone, each once; `beside`: these destinations. `feeds`: queries over
    all rows that take rows of the pass over its source, where those go elsewhere, too. `front`: of a way whose rows are
    of one of several sources, and never come together with those of others, the number of that source, which `source`
    is.
    """

    id: str
    name: str
    when: bool
    source: Source
    destination: Destination
    rejects: RejectLimits = field(default_factory=RejectLimits)
    description: str | None = None
    reject_table: str | None = None
    definition: str = ""
    transforms: tuple[Transform, ...] = ()
    describe: Describe | None = field(default=None, repr=False, compare=False)
    together: Together | None = None
    flow: str = ""
    others: tuple[Transform, ...] = ()
    beside: tuple[Destination, ...] = ()
    end: FlowRows = FIRST
    feeds: tuple[str, ...] = ()
    front: int | None = None

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Those of its transforms that are lookups."""
        return lookups_among(self.transforms)

    @property
    def lookups_beside(self) -> tuple[Lookup, ...]:
        """Those that rows pass on the ways to the other destinations of its flow alone."""
        return lookups_among(self.others)

    @property
    def computes(self) -> bool:
        """Whether a query is among its transforms, or has made its rows."""
        is_gathered = isinstance(self.source, GatheredSource)
        return is_gathered or any(isinstance(own, SqlTransform | Split) for own in self.transforms)

    @property
    def is_read_as_declared(self) -> bool:
        """Whether columns are read as the layout says, whatever the table of the destination holds: queries depend on
        their types, and other destinations may hold something else; so do unions of rows, and what meets rows of
        another source behind transforms.
        """
        return self.computes or bool(self.flow) or self.reunites or self.has_fronts

    @property
    def has_fronts(self) -> bool:
        """Whether rows of its sources pass transforms before they come together."""
        return self.together is not None and self.together.has_fronts

    @property
    def reunites(self) -> bool:
        """Whether rows that have gone different ways come together again."""
        return any(isinstance(own, Reunion) for own in self.transforms)

    @property
    def filters(self) -> bool:
        """Whether rows may not arrive that are no rejects."""
        return self.computes or any(own.sends_misses for own in self.lookups)

    @property
    def rows(self) -> tuple[RowColumn, ...]:
        """The columns of its rows behind the transforms."""
        return columns_of(self.columns, self.transforms, self.end)

    @property
    def rows_read(self) -> set[FlowRows]:
        """The rows that go on somewhere on the way."""
        return rows_read(self.transforms, self.end) | set(self.meeting.taken if self.meeting else ())

    @property
    def meeting(self) -> Together | None:
        """What its rows come out of, where those of its sources have come together."""
        return self.together if self.front is None else None

    @property
    def alone(self) -> DataFlowTask:
        """The same without sources whose rows it never gets: with one, where these are of one of several and meet no
        others, or without those apart.
        """
        if self.front is None:
            if self.together is None or not self.together.apart:
                return self
            return replace(
                self,
                together=replace(self.together, apart=()),
                transforms=self._without_apart(self.transforms),
                others=self._without_apart(self.others),
            )
        own = tuple(replace(item, front_of=None) for item in self.transforms)
        return replace(self, transforms=own, others=(), together=None, front=None)

    def _without_apart(self, transforms: Sequence[Transform]) -> tuple[Transform, ...]:
        assert self.together is not None
        brought, apart = len(self.together.brought), len(self.together.apart)
        left = (own for own in transforms if own.front_of not in range(brought, brought + apart))
        return tuple(replace(own, front_of=number_without_apart(own.front_of, brought, apart)) for own in left)

    @property
    def join(self) -> Join | None:
        """The join of the sources of its flow, if there is one."""
        return self.together if isinstance(self.together, Join) else None

    @property
    def union(self) -> Union | None:
        """The union of the sources of its flow, if there is one."""
        return self.together if isinstance(self.together, Union) else None

    @property
    def is_apart(self) -> bool:
        """Whether its rows are of a source of which none ever come together with those of others."""
        return self.front is not None and self.together is not None and self.front >= len(self.together.brought)

    @property
    def source_numbers(self) -> range:
        """Those of the sources whose rows it gets."""
        if self.front is not None:
            return range(self.front, self.front + 1)
        return range(1 if self.together is None else len(self.together.brought))

    @property
    def sources(self) -> tuple[Source, ...]:
        """All of them, in the order of their files."""
        return (self.source,) if self.together is None else self.together.sources

    @property
    def file_sources(self) -> tuple[FileSource, ...]:
        """Those whose rows files hold."""
        return tuple(source for source in self.sources if isinstance(source, FileSource))

    @property
    def columns(self) -> tuple[FirstColumn, ...]:
        """Those of its rows in front of the transforms, or behind those that stand in front of a join or union."""
        return tuple(self.source.layout.columns) if self.meeting is None else self.meeting.columns

    @property
    def ignoring(self) -> list[str]:
        """Names of those that are NULL where their text is no value."""
        return self.source.layout.ignoring if self.meeting is None else self.meeting.ignoring


@dataclass(frozen=True, slots=True)
class SharedFlow:
    """A data flow with several destinations, which get their rows in one pass. `id` is unique in the run; `ways`: for
    each destination what leads to it, in the order of the package.
    """

    id: str
    ways: tuple[DataFlowTask, ...]


@dataclass(frozen=True, slots=True)
class BoundPackage:
    """All that is known before a run. `content_hash`: SHA-256 (hex) of the package and the files that belong to it.

    `tasks`: what the package defines; `flows`: its data flows of which everything is known, in the order of the
    document, those of loops over known lists once for each value. `binder` binds the others when they start.
    `children`: packages of tasks, by the id of the task. `used`: names of connections that tasks other than data flows
    use, as far as they are known. `settings`: what these tasks do, by their ids, as far as it is known; of a loop over
    a known list, in its first turn. `doubts`: those that its layouts, and those of its children, still have.
    """

    path: Path
    name: str
    content_hash: str
    parameters: dict[str, object]
    given: dict[str, bool]
    streams: int
    memory_bytes: int
    connections: dict[str, Connection]
    tasks: tuple[Task, ...]
    flows: list[DataFlowTask]
    binder: TaskBinder = field(repr=False, compare=False)
    scope: Scope = field(default_factory=Scope, repr=False)
    variables: tuple[Variable, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    children: Mapping[str, ChildPackage] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    settings: Mapping[str, SpecModel] = field(default_factory=dict, repr=False)
    max_concurrent: int = 1
    maximum_errors: int = 0
    log_level: str = "information"
    affinity: Affinity = "none"
    description: str | None = None
    is_trusted: bool = False
    secrets: set[str] = field(default_factory=set, repr=False)
    doubts: tuple[OpenDoubt, ...] = ()

    def data_flows(self) -> list[DataFlowTask]:
        """The data flows of which everything is known before the run, whatever their `when` says."""
        return list(self.flows)

    def all_tasks(self) -> Iterator[Task]:
        """Every task that the package defines, those inside others and in handlers too; not those of child packages."""
        for task in self.tasks:
            yield from task.within()
        for handler in self.handlers.values():
            for task in handler.tasks:
                yield from task.within()
