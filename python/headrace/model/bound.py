"""A bound package, and data flows of which every reference and expression is resolved: what planning reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace.machine.affinity import Affinity
from headrace.model.connections import Connection
from headrace.model.layout import Layout
from headrace.model.load_options import DEFAULT_OPTIONS, LoadOptions
from headrace.model.partition import CommitInterval, PartitionClause
from headrace.model.reject_limits import RejectLimits
from headrace.model.scope import Scope
from headrace.model.settings import SpecModel
from headrace.model.source_options import DEFAULT_WAIT_SECONDS
from headrace.model.task import Handler, Task, Variable

if TYPE_CHECKING:
    from headrace.model.child_packages import ChildPackage
    from headrace.model.task_binder import TaskBinder


@dataclass(frozen=True, slots=True)
class FileSource:
    """Rows from the files of a folder that match one of the patterns.

    `{stream}` in a pattern stands for 1 to the package's number of streams; each of those files must exist. `-` is
    standard input. `last_row_end` is None if only streams need one.
    """

    name: str
    connection: str
    folder: Path
    patterns: list[str]
    layout: Layout
    missing: Literal["error", "skip"] = "error"
    empty: Literal["error", "allow"] = "error"
    compression: Literal["auto", "none", "gzip", "zstd"] = "auto"
    last_row_end: Literal["required", "optional"] | None = None
    wait_seconds: int = DEFAULT_WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class GenerateSource:
    """Rows of a generated table; `chunks` parts that streams generate independently."""

    name: str
    generator: str
    table: str
    scale: float
    chunks: int
    layout: Layout


Source = FileSource | GenerateSource


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
    """One source to one destination. `id` is unique in the run: `load_tables[lineitem].load`; `definition` is that of
    the task that defines it: `load_tables.load`. `reject_table`: beside the table of the destination, None if rejects
    go into no table.
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


@dataclass(frozen=True, slots=True)
class BoundPackage:
    """All that is known before a run. `content_hash`: SHA-256 (hex) of the package and the files that belong to it.

    `tasks`: what the package defines; `flows`: its data flows of which everything is known, in the order of the
    document, those of loops over known lists once for each value. `binder` binds the others when they start.
    `children`: packages of tasks, by the id of the task. `used`: names of connections that tasks other than data flows
    use, as far as they are known. `settings`: what these tasks do, by their ids, as far as it is known; of a loop over
    a known list, in its first turn.
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
    secrets: set[str] = field(default_factory=set, repr=False)

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
