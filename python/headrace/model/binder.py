"""Bind tasks: resolve their settings, repeat foreach bodies, join names of connections and layouts to the things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from headrace.model.annotations import Slot
from headrace.model.bound import (
    BoundTask,
    DataFlowTask,
    Destination,
    FileSource,
    ForeachTask,
    GenerateSource,
    Iteration,
    Source,
)
from headrace.model.connections import Connection, FilesConnection
from headrace.model.layout import Layout
from headrace.model.load_options import LoadOptions
from headrace.model.partition import CommitInterval
from headrace.model.partition_binder import PartitionBinder
from headrace.model.problems import ProblemCollector
from headrace.model.reject_limits import RejectBounds, RejectLimits
from headrace.model.resolver import Resolver, to_text
from headrace.model.scope import Scope
from headrace.model.spec_tasks import (
    TPCH_TABLES_IN_ONE_CHUNK,
    DataFlowSpec,
    DestinationSpec,
    FileSourceSpec,
    ForeachSpec,
    GenerateSourceSpec,
    TaskSpec,
)
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.validation import UNRESOLVED, place_name, validate
from headrace.model.yaml_reader import Document, DocumentPath

# More iterations are a mistake in the list; each is bound and planned before the run starts.
MAXIMUM_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Environment:
    """What the names in tasks may refer to. A layout or connection that is wrong itself is None."""

    connections: Mapping[str, Connection | None]
    layouts: Mapping[str, Layout | None]
    streams: int
    rejects: RejectBounds | None = None


class TaskBinder:
    """Binds the tasks of one package. Problems are noted; a task with a problem is left out of the result."""

    def __init__(
        self, document: Document, problems: ProblemCollector, resolver: Resolver, environment: Environment
    ) -> None:
        self._document = document
        self._problems = problems
        self._resolver = resolver
        self._environment = environment

    def bind(self, tasks: Mapping[str, Any], path: DocumentPath, scope: Scope, id_prefix: str = "") -> list[BoundTask]:
        """The bound tasks of a mapping that stands at `path`."""
        bound: list[BoundTask] = []
        for name, task in tasks.items():
            task_path = (*path, name)
            when = self._condition(task.get("when", True), (*task_path, "when"), scope)
            identity = f"{id_prefix}{name}"
            result: BoundTask | None
            if task.get("foreach") is not None:
                result = self._foreach(task, task_path, scope, identity, when)
            else:
                result = self._data_flow(task, task_path, scope, identity, when)
            if result is not None:
                bound.append(result)
        return bound

    def _condition(self, when: object, path: DocumentPath, scope: Scope) -> bool:
        if isinstance(when, bool):
            return when
        value = self._resolver.resolve(when, Slot(TaskSpec).child("when", {"when": when}), path, scope)
        if isinstance(value, bool):
            return value
        if value is not UNRESOLVED:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} must give true or false",
                found=f"{show_value(value)} from {quote(str(when))}",
                expected="an expression that gives true or false",
                hint="Make it a comparison, such as `name = 'value'`.",
            )
        return False

    def _foreach(
        self, task: Mapping[str, Any], task_path: DocumentPath, scope: Scope, identity: str, when: bool
    ) -> ForeachTask | None:
        foreach, path = task["foreach"], (*task_path, "foreach")
        values = self._values(foreach, (*path, "in"), scope)
        if values is None:
            return None
        item = foreach["item"]
        iterations = [
            Iteration(
                value,
                self.bind(
                    foreach["tasks"],
                    (*path, "tasks"),
                    scope.with_item(item, value),
                    f"{identity}[{to_text(value)}].",
                ),
            )
            for value in values
        ]
        return ForeachTask(identity, task_path_name(task_path), when, item, values, iterations, task.get("description"))

    def _values(self, foreach: Mapping[str, Any], path: DocumentPath, scope: Scope) -> list[object] | None:
        """The values of a foreach; None if they are not known or not usable."""
        slot = Slot(ForeachSpec).child("in", foreach)
        values = self._resolver.resolve(foreach["in"], slot, path, scope)
        what = found = None
        if values is UNRESOLVED or (isinstance(values, list) and UNRESOLVED in values):
            return None
        if not isinstance(values, list):
            what, found = f"{place_name(path)} must be a list", show_value(values)
        elif len(values) > MAXIMUM_ITERATIONS:
            what, found = f"{place_name(path)} has more than {MAXIMUM_ITERATIONS:,} values", show_value(values)
        else:
            texts: set[str] = set()
            for value in values:
                if value is None or isinstance(value, (list, Mapping)):
                    what, found = f"{place_name(path)} must hold single values", show_value(value)
                elif to_text(value) in texts:
                    what, found = f"{place_name(path)} holds a value twice", show_value(value)
                else:
                    texts.add(to_text(value))
        if what is None:
            return list(values) if isinstance(values, list) else None
        self._problems.add(
            self._document, path, what, found=found, expected="a list of different texts, numbers or dates"
        )
        return None

    def _data_flow(
        self, task: Mapping[str, Any], task_path: DocumentPath, scope: Scope, identity: str, when: bool
    ) -> DataFlowTask | None:
        path = (*task_path, "data_flow")
        slot = Slot(TaskSpec).child("data_flow", task)
        resolved = self._resolver.resolve(task["data_flow"], slot, path, scope)
        spec = validate(DataFlowSpec, resolved, self._document, path, self._problems)
        if spec is None:
            return None
        (source_name, source_spec), *_ = spec.sources.items()
        (destination_name, destination_spec), *_ = spec.destinations.items()
        source_path = (*path, "sources", source_name)
        destination_path = (*path, "destinations", destination_name)
        source = self._source(source_name, source_spec, source_path)
        destination = self._destination(destination_name, destination_spec, destination_path)
        self._look_up(spec.sources, destination_spec.input, (*destination_path, "input"), "source")
        if source is None or destination is None:
            return None
        self._check_columns(destination, source.layout, (*destination_path, "columns"))
        destination = self._partitioned(destination, destination_spec, source, destination_path)
        return DataFlowTask(
            identity,
            task_path_name(task_path),
            when,
            source,
            destination,
            RejectLimits.of(spec.rejects, self._environment.rejects),
            task.get("description"),
            spec.rejects.table,
        )

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
        connection = self._look_up(self._environment.connections, spec.connection, (*path, "connection"), "connection")
        if connection is not None and not isinstance(connection, FilesConnection):
            self._wrong_connection(connection, (*path, "connection"), "a source", "files")
            return None
        if connection is None or layout is None:
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
        connection = self._look_up(self._environment.connections, spec.connection, (*path, "connection"), "connection")
        if connection is None:
            return None
        if isinstance(connection, FilesConnection):
            self._wrong_connection(connection, (*path, "connection"), "a destination", "duckdb, postgres or null")
            return None
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
        found: Layout | None = self._look_up(self._environment.layouts, layout, path, "layout")
        return found

    def _look_up(self, things: Mapping[str, Any], name: str, path: DocumentPath, kind: str) -> Any:
        """The thing of that name, None with a problem noted if there is none."""
        if name not in things:
            self._problems.add(
                self._document,
                path,
                f"there is no {kind} `{show_name(name)}`",
                found=quote(name),
                expected=one_of(things),
                hint=did_you_mean(name, things) or f"Define the {kind}, or correct the name.",
            )
            return None
        return things[name]

    def _wrong_connection(self, connection: Connection, path: DocumentPath, role: str, allowed: str) -> None:
        self._problems.add(
            self._document,
            path,
            f"{role} cannot use the connection `{connection.name}`",
            found=f"type {connection.type}",
            expected=f"a connection of type {allowed}",
        )

    def _check_columns(self, destination: Destination, layout: Layout, path: DocumentPath) -> None:
        names = layout.column_names()
        for target, source in (destination.columns or {}).items():
            if source not in names:
                self._problems.add(
                    self._document,
                    (*path, target),
                    f"the source has no column `{show_name(source)}`",
                    found=quote(source),
                    expected=one_of(names),
                    hint=did_you_mean(source, names) or "Write `target column: source column`.",
                )

    def _partitioned(
        self, destination: Destination, spec: DestinationSpec, source: Source, path: DocumentPath
    ) -> Destination:
        """The destination with its partitions, which the layout has a say in."""
        clause = None
        is_divided = spec.partition is not None and spec.partition.column is not None
        if spec.partition is not None:
            binder = PartitionBinder(self._document, self._problems, (*path, "partition"))
            clause = binder.bind(spec.partition, source, destination.columns, is_reload=bool(spec.partitions))
        if spec.partitions is not None and not is_divided:
            self._problems.add(
                self._document,
                (*path, "partitions"),
                f"{place_name((*path, 'partitions'))} means nothing for a table that is not divided",
                found=show_value(spec.partitions),
                hint="Add `partition`, or remove `partitions`.",
            )
        return replace(destination, partition=clause, partitions=tuple(spec.partitions or ()))


def task_path_name(path: DocumentPath) -> str:
    """The name of the task that stands at `path`."""
    return str(path[-1])
