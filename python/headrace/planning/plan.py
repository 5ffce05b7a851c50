"""The plan of a run as data: printable, comparable, and complete. Targets render its steps; executors follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headrace.machine.affinity import Affinity
from headrace.model import FIRST, DataType, FlowRows, LoadOptions, RejectLimits, number_without_apart
from headrace.planning.fit_column import FitColumn
from headrace.planning.gathered import GatheredSqlPlan, GatherPlan
from headrace.planning.joins import JoinPlan
from headrace.planning.lookups import LookupPlan
from headrace.planning.memory import MemorySplit
from headrace.planning.partitioning import CommitSize, Partitioning
from headrace.planning.reject_table import RejectTable
from headrace.planning.replay import ReplayPlan
from headrace.planning.routing import routing_spec
from headrace.planning.rows_before import CommittedSlice, RowsBefore
from headrace.planning.run_facts import RunFacts, layout_of_run
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.splits import SplitPlan
from headrace.planning.sql_transforms import SqlPlan
from headrace.planning.staging_table import StagingTable, taken_together
from headrace.planning.transforms import (
    TransformPlan,
    core_rows,
    in_front,
    names_behind,
    together_spec,
    transform_specs,
    with_front,
)
from headrace.planning.unions import UnionPlan
from headrace.planning.wording import counted

StepKind = Literal[
    "create_table",
    "delete_rows",
    "create_staging",
    "insert",
    "check_accounts",
    "commit_slices",
    "build_indexes",
    "fill_partitions",
    "switch",
    "store_rejects",
    "commit",
    "analyze",
]
# How hidden tables become (part of) the target. `none`: there are no hidden tables, rows go straight into the target;
# `schema`: a new table moves out of the hidden schema; `rename`: the hidden table takes the place of the old one;
# `move`: the rows are moved inside the database; `attach`: the tables become partitions; `view`: a view over them.
SwitchMode = Literal["none", "schema", "rename", "move", "attach", "view"]
# Name in the ledger of what is no partition but the whole table.
WHOLE_TABLE = ""


@dataclass(frozen=True)
class OutputColumn:
    """One column on its way: the source's name and type, the target's name, and whether NULL is allowed there.

    `native`: how a new column is declared where the destination itself has said it, of a query; `type` is the nearest
    then.
    """

    source: str
    target: str
    type: DataType
    nullable: bool
    native: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"source": self.source, "target": self.target, "type": str(self.type), "nullable": self.nullable}


@dataclass(frozen=True)
class Step:
    """One thing the target does, in order, inside the task's transaction."""

    kind: StepKind
    text: str

    def to_dict(self) -> dict[str, str]:
        """JSON-ready form."""
        return {"kind": self.kind, "text": self.text}


@dataclass(frozen=True)
class DataFlowPlan:
    """Everything needed to execute one data flow, or of one with several destinations the way to one of them.
    `schema` is None for targets without schemas.

    `staging`: the tables that writers fill; empty for a target that takes one merged stream. `switch`: how they become
    the target. `partitioning`: None without partitions. `commit`: None if a unit ends with the last row of its table;
    `epochs`: with a commit size, the slices that all writers commit together, None if each commits on its own.
    `connections`: how many load rows at the same time. `run`: what columns that are made say of the run; None while
    there is none.
    `keep_rejects`: examples for passes that load nothing, for which no limit of rejects holds. `shown_paths`: the files
    of the source as rejects may name them, None if they may be named as they are. `rows_before`: of the data flows
    that the run has ended. `replay`: set for rejects of an earlier run.
    `reject_table`: takes the rejects, in the transaction that completes the task. `cpus_of_streams`: the CPUs that each
    stream keeps to; empty if they may use any.
    `transforms`: what rows may pass on their way, each behind what it reads; `end`: those that arrive. `together`: how
    the rows of several sources come together before; `layout` is that of the first one. `flow`: the id of a flow with
    several destinations; `front`: of a way whose rows never come together with those of other sources the number of
    theirs; `fit`: columns that the destination holds in a narrower form than the rows have them, or not
    as NULL. `gather`: set where rows are what a query makes of all rows of another flow; `feeds`: queries over all rows
    that take rows in the same pass, where it has other destinations, too.
    `committed`: slices, by number, that an earlier attempt of the run has committed. Of those with rejects the core
    reads the rejects again; it sends no row of any.
    """

    task: str
    connection: str
    schema: str | None
    table: str
    target: str
    load: str
    switch: SwitchMode
    partitioning: Partitioning | None
    staging: tuple[StagingTable, ...]
    options: LoadOptions
    streams: int
    source: SourceSnapshot
    layout: dict[str, Any]
    columns: tuple[OutputColumn, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    memory: MemorySplit
    sink_kind: str
    rejects: RejectLimits
    file_stem: str
    committed: Mapping[int, CommittedSlice] = field(default_factory=dict)
    commit: CommitSize | None = None
    epochs: tuple[tuple[int, ...], ...] | None = None
    connections: int = 1
    run: RunFacts | None = None
    keep_rejects: Literal["files", "examples"] = "files"
    shown_paths: tuple[str, ...] | None = None
    rows_before: RowsBefore = field(default_factory=RowsBefore)
    replay: ReplayPlan | None = None
    reject_table: RejectTable | None = None
    cpus_of_streams: tuple[tuple[int, ...], ...] = ()
    transforms: tuple[TransformPlan, ...] = ()
    together: JoinPlan | UnionPlan | None = None
    flow: str = ""
    fit: tuple[FitColumn, ...] = ()
    gather: GatherPlan | None = None
    end: FlowRows = FIRST
    feeds: tuple[str, ...] = ()
    front: int | None = None

    @property
    def is_one_result(self) -> bool:
        """Whether all its rows are of one attempt: another one may have other rows for a query, or of it."""
        return self.gather is not None or bool(self.feeds)

    @property
    def is_apart(self) -> bool:
        """Whether its rows are of a source of which none ever come together with those of others."""
        return self.front is not None and self.together is not None and self.front >= self.together.first_apart

    @property
    def source_numbers(self) -> range:
        """Those of the sources whose rows it gets."""
        if self.front is not None:
            return range(self.front, self.front + 1)
        return range(1 if self.together is None else self.together.first_apart)

    @property
    def alone(self) -> DataFlowPlan:
        """The same as the plan of a flow without sources whose rows it never gets: with one, where these are of one of
        several and meet no others, or without those apart.
        """
        if self.front is None:
            return self._without_apart() if self.together is not None and self.together.has_apart else self
        own = self.source.files_of(self.front)
        return replace(
            self,
            source=self.source.alone(self.front),
            layout=self.layouts[self.front],
            together=None,
            transforms=tuple(with_front(own, None) for own in self.transforms),
            shown_paths=None if self.shown_paths is None else self.shown_paths[own.start : own.stop],
            front=None,
        )

    def _without_apart(self) -> DataFlowPlan:
        assert self.together is not None
        source = self.source.without_apart(self.together.first_apart)
        shown = None if self.shown_paths is None else self.shown_paths[: len(source.files)]
        brought, apart = self.together.first_apart, len(self.together.sources) - self.together.first_apart
        transforms = (with_front(own, number_without_apart(own.front_of, brought, apart)) for own in self.transforms)
        return replace(
            self,
            source=source,
            together=self.together.without_apart(),
            shown_paths=shown,
            transforms=tuple(transforms),
        )

    @property
    def told(self) -> DataFlowPlan:
        """As people see it: with the source and the transforms in front of all queries over all rows."""
        if self.gather is None:
            return self
        before, query = self.gather.before.told, GatheredSqlPlan(self.gather.source, self.gather.memory_bytes)
        return replace(
            self,
            source=before.source,
            layout=before.layout,
            together=before.together,
            streams=before.streams,
            transforms=(*before.transforms, query, *self.transforms),
            file_stem=before.file_stem,
        )

    @property
    def file_stems(self) -> tuple[str, ...]:
        """How the names of files of rejects begin: its own ones, and those of flows that bring rows to its query."""
        return (self.file_stem, *(() if self.gather is None else self.gather.before.file_stems))

    @property
    def reloads(self) -> bool:
        """True if some partitions take the place of old ones while the others stay."""
        return self.partitioning is not None and any(part.action == "exchange" for part in self.partitioning.partitions)

    @property
    def meeting(self) -> JoinPlan | UnionPlan | None:
        """What its rows come out of, where those of its sources have come together."""
        return self.together if self.front is None else None

    @property
    def join(self) -> JoinPlan | None:
        """How its rows have met, if they are those of two sources."""
        return self.meeting if isinstance(self.meeting, JoinPlan) else None

    @property
    def union(self) -> UnionPlan | None:
        """How its rows have come together, if they are those of several sources that go one way on."""
        return self.meeting if isinstance(self.meeting, UnionPlan) else None

    @property
    def layouts(self) -> tuple[dict[str, Any], ...]:
        """Those of all sources, as the core reads them."""
        return (self.layout,) if self.together is None else self.together.layouts

    def source_number(self, file: int) -> int:
        """The number of the source that a file is of, from 0: its files have one layout."""
        return 0 if self.together is None else self.together.source_number(file)

    def shown_column(self, source: int, column: int) -> str:
        """The name of a column of a layout, from 0; of several sources with that of its own."""
        name = str(self.layouts[source]["columns"][column]["name"])
        return name if self.together is None else f"{self.together.source_names[source]}.{name}"

    @property
    def lookups(self) -> tuple[LookupPlan, ...]:
        """Those of its transforms that are lookups."""
        return tuple(plan for plan in self.transforms if isinstance(plan, LookupPlan))

    @property
    def queries(self) -> dict[int, SqlPlan | SplitPlan]:
        """Those of its transforms that run queries, by their places."""
        return {place: plan for place, plan in enumerate(self.transforms) if isinstance(plan, SqlPlan | SplitPlan)}

    @property
    def source_columns(self) -> list[str]:
        """Names of the columns that the rows have: those of the source, made ones, and those that lookups add; or those
        of the last query.
        """
        layout = self.layouts[self.front or 0]
        names = (
            [column["name"] for column in (*layout["columns"], *layout.get("made", ()))]
            if self.meeting is None
            else self.meeting.column_names
        )
        return names_behind(names, self.transforms, self.end)

    @property
    def rows_read(self) -> set[FlowRows]:
        """The rows that go on somewhere on the way."""
        taken = () if self.meeting is None else self.meeting.taken
        return {self.end, *taken, *(rows for own in self.transforms for rows in own.inputs)}

    @property
    def keeps_accounts(self) -> bool:
        """Whether there is more to tell of slices than their ledger has. The core keeps it in the run folder; of what
        it does not find there it reads the rows once more.
        """
        return isinstance(self.together, JoinPlan) or bool(self.transforms)

    @property
    def slices_to_load(self) -> list[dict[str, Any]]:
        """The slices that this attempt of the run has to load."""
        return [item for item in self.source.slices if item["number"] not in self.committed]

    def continued(self, committed: Mapping[int, CommittedSlice]) -> DataFlowPlan:
        """The plan for what is left behind an attempt that had committed these slices."""
        if not committed:
            return self
        left = len(self.source.slices) - len(committed)
        note = f"{counted(len(committed), 'slice')} of {len(self.source.slices)} were committed before; {left} are left"
        plan = replace(self, committed=committed, notes=(*self.notes, note))
        owners = () if self._shares_writers else self.staging
        source = self.source
        groups = {taken_together(owners, item["number"], source.unit_of(item)) for item in plan.slices_to_load}
        known = [item for item in source.slices if item["number"] in committed]
        again = [item for item in known if self.keeps_accounts or committed[item["number"]].needs_reading]
        read_again = len({source.unit_of(item) for item in again})
        return plan.with_streams(max(1, min(self.streams, len(groups) + read_again)))

    def with_streams(self, streams: int) -> DataFlowPlan:
        """The plan with so many streams, each of which has the connections that it had."""
        connections = self.connections if self._shares_writers else self.connections * streams // self.streams
        return replace(self, streams=streams, connections=connections)

    @property
    def _shares_writers(self) -> bool:
        """Whether partitions have writers, and not streams."""
        return self.partitioning is not None and self.partitioning.way == "shared"

    def flow_spec(self, rejects_folder: str, sink: dict[str, Any]) -> dict[str, Any]:
        """The spec of `core.Flow`. `rejects_folder` is an absolute path inside the run folder; `sink` is the target's,
        which may hold secrets.
        """
        routing = None if self.partitioning is None else routing_spec(self.partitioning)
        return {
            "name": self.task,
            "layout": layout_of_run(self.layout, self.run),
            "source": {
                **self.source.to_core(),
                "committed": {str(number): known.to_dict() for number, known in sorted(self.committed.items())},
                **({} if self.epochs is None else {"epochs": [list(epoch) for epoch in self.epochs]}),
            },
            **together_spec(self.together, self.transforms, self.run),
            **({"transforms": transform_specs(self.transforms)} if self.transforms else {}),
            **self.end_spec(),
            # Rows that do not fit it are told with its name.
            **({"destination": self.table} if self.fit or self.gather is not None else {}),
            **({} if routing is None else {"routing": routing}),
            "sink": sink,
            "streams": self.streams,
            "affinity": [list(cpus) for cpus in self.cpus_of_streams],
            "memory": self.memory.to_core(),
            "rejects": self._rejects_spec(rejects_folder),
        }

    def end_spec(self) -> dict[str, Any]:
        """The members of a flow spec that say which rows arrive in the destination, and what they have to fit."""
        rows, last = core_rows(self.end, self.transforms), {"transform": len(self.transforms) - 1, "output": 0}
        is_last = (rows == last or not self.transforms) and self.front is None
        fit = [column.to_core() for column in self.fit]
        return {**({} if is_last else {"input": rows, **self.input_source}), **({"fit": fit} if fit else {})}

    @property
    def input_source(self) -> dict[str, int]:
        """The member of a flow spec that says of which source the rows of the destination are, if of one alone."""
        return {} if self.front is None else {"input_source": self.front}

    def _rejects_spec(self, folder: str) -> dict[str, Any]:
        run, per_file = self.rejects.run, self.rejects.per_file
        return {
            **self.rejects.flow.to_dict(),
            **({} if per_file is None else {"per_file": per_file.to_dict()}),
            **({} if run is None else {"run": {**run.to_dict(), **self.rows_before.to_dict()}}),
            "folder": folder,
            "file_stem": self.file_stem,
            **({} if self.shown_paths is None else {"names": list(self.shown_paths)}),
            "keep": self.keep_rejects,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        told = self.told.alone
        return {
            "task": self.task,
            **({"flow_of": self.flow} if self.flow else {}),
            "connection": self.connection,
            "schema": self.schema,
            "table": self.table,
            "target": self.target,
            "load": self.load,
            "switch": self.switch,
            "partitioning": None if self.partitioning is None else self.partitioning.to_dict(),
            "commit": None if self.commit is None else self.commit.to_dict(),
            "connections": self.connections,
            "staging": [table.to_dict() for table in self.staging],
            "options": self.options.to_dict(),
            "streams": told.streams,
            "bytes_total": told.source.bytes_total,
            "files": told.source.files,
            "slices": told.source.slices,
            "columns": [column.to_dict() for column in self.columns],
            **({} if told.join is None else {"join": told.join.to_dict()}),
            **({} if told.union is None else {"union": told.union.to_dict()}),
            "transforms": [{**plan.to_dict(), **in_front(plan, told.together)} for plan in told.transforms],
            **({} if self.gather is None else {"gathered": self.gather.to_dict()}),
            "steps": [step.to_dict() for step in self.steps],
            "notes": list(self.notes),
            "memory": self.memory.to_dict(),
            "rejects": {
                **self.rejects.to_dict(),
                **({"table": self.reject_table.shown} if self.reject_table else {}),
            },
            "flow": self.alone.flow_spec("(run folder)/rejects", {"kind": self.sink_kind}),
        }


@dataclass(frozen=True)
class SkippedTask:
    """A task that the run passes over, and why. `missing_files` tells it from one switched off by `when`."""

    task: str
    table: str
    reason: str
    missing_files: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"task": self.task, "table": self.table, "skipped": self.reason}


@dataclass(frozen=True)
class FinishedTask:
    """A task that an earlier attempt of the run has completed: all its rows are visible. `slices` are those with rows;
    `file_stem` names its files of rejects, `reject_table` is the table that holds them, too. `is_joined`: they are what
    has come out of a join; `is_united`: of a union. `query`: the name of the one over all rows whose result they are.
    `flow`: see `DataFlowPlan`; `shared`: of the first of several destinations, what is told once of all, if known.
    """

    task: str
    connection: str
    table: str
    target: str
    load: str
    slices: Mapping[int, CommittedSlice]
    file_stem: str
    reject_table: str | None = None
    is_joined: bool = False
    is_united: bool = False
    query: str = ""
    flow: str = ""
    shared: Mapping[str, int] | None = None


@dataclass(frozen=True)
class RunPlan:
    """The plan of a whole run: its data flows in the order in which they run, as far as they can be planned before it.

    `control_flow`: of a plan for reading, what all tasks of the package do, and when.
    """

    package: str
    package_hash: str
    streams: int
    memory_bytes: int
    tasks: tuple[DataFlowPlan | SkippedTask | FinishedTask, ...]
    notes: tuple[str, ...] = ()
    affinity: Affinity = "none"
    control_flow: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flows(self) -> list[DataFlowPlan]:
        """The tasks that will be executed."""
        return [task for task in self.tasks if isinstance(task, DataFlowPlan)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "package": self.package,
            "package_hash": self.package_hash,
            "streams": self.streams,
            "affinity": self.affinity,
            "memory_bytes": self.memory_bytes,
            "bytes_total": sum({flow.flow or flow.task: flow.source.bytes_total for flow in self.flows}.values()),
            "notes": list(self.notes),
            "control_flow": dict(self.control_flow),
            # The plan of a resumed run is not for reading: there is nothing to say of what is finished.
            "tasks": [task.to_dict() for task in self.tasks if not isinstance(task, FinishedTask)],
        }
