"""Bind data flows: join names of connections and layouts to the things, and check what goes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from headrace.model.bound import DataFlowTask, Destination, FileSource, GenerateSource, Source
from headrace.model.connections import Connection, FilesConnection
from headrace.model.layout import Layout
from headrace.model.load_options import LoadOptions
from headrace.model.named_things import DESTINATIONS, NamedThings
from headrace.model.partition import CommitInterval
from headrace.model.partition_binder import PartitionBinder
from headrace.model.problems import ProblemCollector
from headrace.model.reject_limits import RejectBounds, RejectLimits
from headrace.model.spec_data_flow import (
    TPCH_TABLES_IN_ONE_CHUNK,
    DataFlowSpec,
    DestinationSpec,
    FileSourceSpec,
    GenerateSourceSpec,
)
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.task import Task
from headrace.model.validation import place_name
from headrace.model.yaml_reader import Document, DocumentPath


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

    def bind(self, spec: DataFlowSpec, task: Task, instance: str, when: bool) -> DataFlowTask | None:
        """The data flow of a task whose references are resolved. None if something is wrong."""
        path = task.own_path
        (source_name, source_spec), *_ = spec.sources.items()
        (destination_name, destination_spec), *_ = spec.destinations.items()
        source_path = (*path, "sources", source_name)
        destination_path = (*path, "destinations", destination_name)
        source = self._source(source_name, source_spec, source_path)
        destination = self._destination(destination_name, destination_spec, destination_path)
        self._names.look_up(spec.sources, destination_spec.input, (*destination_path, "input"), "source")
        if source is None or destination is None:
            return None
        self._check_columns(destination, source.layout, (*destination_path, "columns"))
        destination = self._partitioned(destination, destination_spec, source, destination_path)
        return DataFlowTask(
            instance,
            task.name,
            when,
            source,
            destination,
            RejectLimits.of(spec.rejects, self._environment.rejects),
            task.description,
            spec.rejects.table,
            task.id,
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
