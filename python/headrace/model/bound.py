"""A bound package: every reference, expression and foreach resolved. Planning reads this and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headrace.model.connections import Connection
from headrace.model.layout import Layout
from headrace.model.load_options import DEFAULT_OPTIONS, LoadOptions
from headrace.model.partition import CommitInterval, PartitionClause
from headrace.model.reject_limits import RejectLimits
from headrace.model.source_options import DEFAULT_WAIT_SECONDS


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
    """One source to one destination. `id` is unique in the package: `load_tables[lineitem].load`. `reject_table`:
    beside the table of the destination, None if rejects go into no table.
    """

    id: str
    name: str
    when: bool
    source: Source
    destination: Destination
    rejects: RejectLimits = field(default_factory=RejectLimits)
    description: str | None = None
    reject_table: str | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """The tasks for one value of a foreach."""

    value: object
    tasks: list[BoundTask]


@dataclass(frozen=True, slots=True)
class ForeachTask:
    """The same tasks once per value, one iteration after the other."""

    id: str
    name: str
    when: bool
    item: str
    values: list[object]
    iterations: list[Iteration]
    description: str | None = None


BoundTask = DataFlowTask | ForeachTask


@dataclass(frozen=True, slots=True)
class BoundPackage:
    """All that a run needs to know. `content_hash` is the SHA-256 (hex) of the package and its layout files."""

    path: Path
    name: str
    content_hash: str
    parameters: dict[str, object]
    given: dict[str, bool]
    streams: int
    memory_bytes: int
    connections: dict[str, Connection]
    tasks: list[BoundTask]
    description: str | None = None
    secrets: set[str] = field(default_factory=set, repr=False)

    def data_flows(self) -> list[DataFlowTask]:
        """All data flows in the order they run, those of iterations included, whatever their `when` says."""
        return _data_flows(self.tasks)


def _data_flows(tasks: list[BoundTask]) -> list[DataFlowTask]:
    flows: list[DataFlowTask] = []
    for task in tasks:
        if isinstance(task, DataFlowTask):
            flows.append(task)
        else:
            for iteration in task.iterations:
                flows += _data_flows(iteration.tasks)
    return flows
