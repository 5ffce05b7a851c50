"""The plan of a run as data: printable, comparable, and complete. Targets render its steps; executors follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headrace.model import DataType, LoadOptions
from headrace.planning.memory import MemorySplit
from headrace.planning.wording import counted

StepKind = Literal[
    "create_table",
    "delete_rows",
    "create_staging",
    "insert",
    "check_accounts",
    "commit_slices",
    "build_indexes",
    "switch",
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
class SourceSnapshot:
    """What a source offers, looked at once. `files` and `slices` have the members of a flow spec.

    `generate` is the flow spec's member of that name when the rows are generated instead of read. `may_be_empty`: a
    source without one data row is loaded too.
    """

    name: str
    files: list[dict[str, Any]]
    slices: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    generate: dict[str, Any] | None = None
    may_be_empty: bool = True

    @property
    def bytes_total(self) -> int:
        """Bytes of text to read; 0 when they are generated."""
        return sum(int(file["size_bytes"]) for file in self.files)

    def to_core(self) -> dict[str, Any]:
        """The `source` member of a flow spec."""
        source: dict[str, Any] = {"files": self.files, "slices": self.slices}
        return source if self.generate is None else {"generate": self.generate, **source}


@dataclass(frozen=True)
class OutputColumn:
    """One column on its way: the source's name and type, the target's name, and whether NULL is allowed there."""

    source: str
    target: str
    type: DataType
    nullable: bool

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
class KeyBounds:
    """The keys of one partition: `minimum` included, `end` excluded, as canonical text of the source column's type.

    `column` is the source column, as in a flow spec. `end` is None if all keys from `minimum` on belong there.
    """

    column: str
    minimum: str
    end: str | None

    def to_dict(self) -> dict[str, str | None]:
        """The member of a flow spec."""
        return {"column": self.column, "minimum": self.minimum, "end": self.end}


@dataclass(frozen=True)
class StagingTable:
    """One table that writers fill.

    `partition`: its name in the ledger, WHOLE_TABLE or the number at the end of the table's name. `table`: its name in
    the target's schema once it is switched in; how it is called before is the target's business. `slices`: numbers of
    the slices whose rows go there. `owned`: one stream takes all of them, one after the other, and the table is made in
    its transaction; otherwise it is made before, and each stream writes what it took of it in a transaction of its own.
    `bounds`: None if any row may go there.
    """

    partition: str
    table: str
    slices: tuple[int, ...]
    owned: bool
    bounds: KeyBounds | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "partition": self.partition,
            "table": self.table,
            "slices": list(self.slices),
            "owned": self.owned,
            "bounds": None if self.bounds is None else self.bounds.to_dict(),
        }


@dataclass(frozen=True)
class CommittedSlice:
    """What the ledger keeps of a slice whose rows are committed. `skipped`: header and blank lines."""

    loaded: int
    rejected: int
    skipped: int

    def to_dict(self) -> dict[str, int]:
        """The member of a flow spec."""
        return {"loaded": self.loaded, "rejected": self.rejected, "skipped": self.skipped}


@dataclass(frozen=True)
class DataFlowPlan:
    """Everything needed to execute one data flow. `schema` is None for targets without schemas.

    `staging`: the tables that writers fill; empty for a target that takes one merged stream. `switch`: how they become
    the target. `partition_column`: the target's column by whose ranges it is partitioned, None without partitions.
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
    partition_column: str | None
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
    rejects_limit: int
    file_stem: str
    committed: Mapping[int, CommittedSlice] = field(default_factory=dict)

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
        groups = {_group(self.staging, item["number"]) for item in plan.slices_to_load}
        read_again = sum(known.rejected > 0 for known in committed.values())
        return replace(plan, streams=max(1, min(self.streams, len(groups) + read_again)))

    def flow_spec(self, rejects_folder: str, sink: dict[str, Any]) -> dict[str, Any]:
        """The spec of `core.Flow`. `rejects_folder` is an absolute path inside the run folder; `sink` is the target's,
        which may hold secrets.
        """
        return {
            "name": self.task,
            "layout": self.layout,
            "source": {
                **self.source.to_core(),
                "committed": {str(number): known.to_dict() for number, known in sorted(self.committed.items())},
            },
            "sink": sink,
            "streams": self.streams,
            "memory": self.memory.to_core(),
            "rejects": {"limit": self.rejects_limit, "folder": rejects_folder, "file_stem": self.file_stem},
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "task": self.task,
            "connection": self.connection,
            "schema": self.schema,
            "table": self.table,
            "target": self.target,
            "load": self.load,
            "switch": self.switch,
            "partition_column": self.partition_column,
            "staging": [table.to_dict() for table in self.staging],
            "options": self.options.to_dict(),
            "streams": self.streams,
            "bytes_total": self.source.bytes_total,
            "files": self.source.files,
            "slices": self.source.slices,
            "columns": [column.to_dict() for column in self.columns],
            "steps": [step.to_dict() for step in self.steps],
            "notes": list(self.notes),
            "memory": self.memory.to_dict(),
            "rejects_limit": self.rejects_limit,
            "flow": self.flow_spec("(run folder)/rejects", {"kind": self.sink_kind}),
        }


def _group(staging: tuple[StagingTable, ...], number: int) -> tuple[str, int]:
    """What one stream has to take together: the slices of a table that it owns, or one slice."""
    owner = next((table for table in staging if table.owned and number in table.slices), None)
    return ("slice", number) if owner is None else (owner.partition, 0)


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
    `file_stem` names its files of rejects.
    """

    task: str
    connection: str
    table: str
    target: str
    load: str
    slices: Mapping[int, CommittedSlice]
    file_stem: str


@dataclass(frozen=True)
class RunPlan:
    """The plan of a whole run, tasks in the order in which they run."""

    package: str
    package_hash: str
    streams: int
    memory_bytes: int
    tasks: tuple[DataFlowPlan | SkippedTask | FinishedTask, ...]
    notes: tuple[str, ...] = ()

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
            "memory_bytes": self.memory_bytes,
            "bytes_total": sum(flow.source.bytes_total for flow in self.flows),
            "notes": list(self.notes),
            # The plan of a resumed run is not for reading: there is nothing to say of what is finished.
            "tasks": [task.to_dict() for task in self.tasks if not isinstance(task, FinishedTask)],
        }
