"""From a bound package to a plan: looks at the sources, opens the destinations, plans every data flow.

All of it happens before the first row moves, so that the file missing for the last table is found before the first
table is loaded.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from headrace import core
from headrace.errors import HeadraceError, SourceError
from headrace.model import BoundPackage, Connection, DataFlowTask, FileSource
from headrace.planning import (
    CatalogTable,
    DataFlowPlan,
    MemoryBudget,
    RunPlan,
    SkippedTask,
    SourceSnapshot,
    engine_bytes,
    plan_data_flow,
    table_after,
)
from headrace.run.tasks import data_flows
from headrace.sources import snapshot_files, snapshot_generated
from headrace.targets import OpenOptions, Target, capabilities_of, open_target, target_key


@dataclass(frozen=True)
class PreparedFlow:
    """A data flow whose source has been looked at."""

    task: DataFlowTask
    source: SourceSnapshot


def usable_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare_sources(package: BoundPackage) -> list[PreparedFlow | SkippedTask]:
    """Looks at the source of every data flow, in the order of execution.

    Raises SourceError; also when nothing is left to do because no data flow has any file.
    """
    prepared: list[PreparedFlow | SkippedTask] = []
    missing: list[FileSource] = []
    for task, when in data_flows(package.tasks):
        if not when:
            prepared.append(SkippedTask(task.id, task.destination.table, "`when` is false"))
            continue
        source = task.source
        if isinstance(source, FileSource):
            snapshot = snapshot_files(source, package.streams, core.plan_slices)
            if snapshot is None:
                missing.append(source)
                prepared.append(SkippedTask(task.id, task.destination.table, _no_files(source), missing_files=True))
                continue
        else:
            snapshot = snapshot_generated(source)
        prepared.append(PreparedFlow(task, snapshot))
    if missing and not any(isinstance(item, PreparedFlow) for item in prepared):
        raise _nothing_to_load(missing)
    return prepared


class OpenTargets:
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
        connections = {target_key(flow.task.destination.connection): flow.task.destination.connection for flow in flows}
        engines = sum(1 for connection in connections.values() if capabilities_of(connection).memory_share)
        try:
            for key, connection in connections.items():
                share = capabilities_of(connection).memory_share
                options = OpenOptions(
                    # One run has one budget, however many destinations it has.
                    engine_bytes=engine_bytes(package.memory_bytes, share) // max(1, engines),
                    threads=usable_cpus(),
                    spill_folder=spill_folder,
                    read_only=read_only,
                    notice=notice,
                    is_cancelled=is_cancelled,
                )
                self._targets[key] = open_target(connection, options)
        except BaseException:
            self.close()
            raise

    def __getitem__(self, connection: Connection) -> Target:
        return self._targets[target_key(connection)]

    def all(self) -> list[Target]:
        """The targets, in the order in which the run uses them."""
        return list(self._targets.values())

    def close(self) -> None:
        """Closes every target; raises the first error after all were tried."""
        first: HeadraceError | None = None
        for target in self._targets.values():
            try:
                target.close()
            except HeadraceError as error:
                first = first or error
        self._targets.clear()
        if first is not None:
            raise first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def plan_run(package: BoundPackage, prepared: Sequence[PreparedFlow | SkippedTask], targets: OpenTargets) -> RunPlan:
    """Plans every data flow against its destination as it will be when the flow starts."""
    tables: dict[tuple[object, ...], CatalogTable | None] = {}
    stems: Counter[str] = Counter()
    planned: list[DataFlowPlan | SkippedTask] = []
    for item in prepared:
        if isinstance(item, SkippedTask):
            planned.append(item)
            continue
        destination = item.task.destination
        target = targets[destination.connection]
        name_key = target.capabilities.name_key
        schema = destination.schema or target.default_schema
        key = (target_key(destination.connection), name_key(schema or ""), name_key(destination.table))
        if key not in tables:
            tables[key] = target.catalog(destination.schema, destination.table)
        stems[destination.table] += 1
        uses = stems[destination.table]
        plan = plan_data_flow(
            item.task,
            item.source,
            tables[key],
            target.capabilities,
            MemoryBudget(package.memory_bytes, target.engine_threads),
            package.streams,
            default_schema=target.default_schema,
            file_stem=_file_stem(destination.table, uses),
        )
        tables[key] = table_after(plan, tables[key])
        planned.append(plan)
    return RunPlan(
        package=package.name,
        package_hash=package.content_hash,
        streams=package.streams,
        memory_bytes=package.memory_bytes,
        tasks=tuple(planned),
        notes=tuple(note for target in targets.all() for note in target.notes),
    )


def _file_stem(table: str, uses: int) -> str:
    """A name for files of this task: letters, digits, `_`, `-` and `.`, different for each use of a table."""
    stem = "".join(character if character.isalnum() or character in "_-." else "_" for character in table).lstrip(".")
    return (stem or "table") + (f"_{uses}" if uses > 1 else "")


def _no_files(source: FileSource) -> str:
    return f"no file in {source.folder} matches {_patterns([source])}"


def _patterns(sources: Sequence[FileSource]) -> str:
    names = dict.fromkeys(pattern for source in sources for pattern in source.patterns)
    return ", ".join(f"`{name}`" for name in names)


def _nothing_to_load(missing: Sequence[FileSource]) -> SourceError:
    folders = dict.fromkeys(str(source.folder) for source in missing)
    return SourceError(
        "no data flow of the run has any file",
        at={"folder": ", ".join(folders)},
        found=f"no file for {len(missing)} data flows" if len(missing) > 1 else "no file for the data flow",
        expected=f"files matching {_patterns(missing)}",
        hint="Correct the folder or the patterns.",
    )
