"""Opens the destinations of a package to look at them: can they be loaded into, and what slows a load down there?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headrace.errors import HeadraceError, SourceError
from headrace.model import (
    BoundPackage,
    Connection,
    DatabaseSource,
    DataFlowTask,
    FileSource,
    HashPartition,
    ListPartition,
    Quantiles,
    RangePartition,
    TableSource,
)
from headrace.model.load import usable_cpus
from headrace.planning import (
    Capabilities,
    bounds_of_files,
    check_tablespaces,
    display_name,
    engine_bytes,
    is_partitioned,
)
from headrace.run.control.selection import Selection
from headrace.run.early import early_flows
from headrace.run.lookup_tables import database_sources
from headrace.run.redact import Redactor
from headrace.run.reject_tables import RejectTables, TableKey, table_key
from headrace.run.tasks import nameable_flows
from headrace.run.waiting import on_worker
from headrace.sources.globbing import find_files
from headrace.targets import Inspection, OpenOptions, Target, capabilities_of, open_target, refuse_two_ways, target_key

# Of the connections that tasks name, those that can be opened.
_DATABASES = ("duckdb", "postgres")


@dataclass(frozen=True)
class Destination:
    """One database that the package loads into, or that other tasks use, or that lookups read.

    `error`: why it could not be opened. `tables_found` of `tables` exist; `problems` are those of the place and of its
    tables.
    """

    connection: str
    type: str
    error: HeadraceError | None = None
    inspection: Inspection | None = None
    tables: int = 0
    tables_found: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Looks:
    """What lookups read of a place."""

    sources: Sequence[DatabaseSource]
    is_only_read: bool


def inspect_destinations(package: BoundPackage) -> Iterator[Destination]:
    """Each database that the tasks use, those of packages inside too, opened for reading and closed again. Nothing is
    changed.
    """
    redactor = Redactor(package.secrets)
    places: dict[tuple[str, str], Connection] = {}
    by_place: dict[tuple[str, str], list[DataFlowTask]] = {}
    read: dict[tuple[str, str], list[DatabaseSource]] = {}
    # Of places that are loaded into, what nothing can change before it is read.
    settled: dict[tuple[str, str], list[DatabaseSource]] = {}
    early = early_flows(package, Selection()).early
    for part in (package, *_packages_inside(package)):
        for flow, when in nameable_flows(part):
            if when:
                connection = flow.destination.connection
                refuse_two_ways(places.setdefault(target_key(connection), connection), connection)
                by_place.setdefault(target_key(connection), []).append(flow)
                for source in database_sources(flow):
                    read.setdefault(target_key(source.connection), []).append(source)
                    if part is package and flow.definition in early:
                        settled.setdefault(target_key(source.connection), []).append(source)
        for name in part.used:
            used = part.connections.get(name)
            if used is not None and used.type in _DATABASES:
                refuse_two_ways(places.setdefault(target_key(used), used), used)
    for place, sources in read.items():
        for source in sources:
            refuse_two_ways(places.get(place, source.connection), source.connection)
    only_read = {place: sources for place, sources in read.items() if place not in places}
    for place, connection in [*places.items(), *((place, own[0].connection) for place, own in only_read.items())]:
        looks = _Looks(only_read.get(place) or settled.get(place, []), is_only_read=place in only_read)
        try:
            flows = by_place.get(place, [])
            yield redactor.dataclass(on_worker(partial(_inspected, package, connection, flows, looks)))
        except HeadraceError as error:
            yield Destination(connection.name, connection.type, redactor.error(error))


def _packages_inside(package: BoundPackage) -> Iterator[BoundPackage]:
    for child in package.children.values():
        yield child.known
        yield from _packages_inside(child.known)


def _inspected(
    package: BoundPackage, connection: Connection, flows: Sequence[DataFlowTask], looks: _Looks
) -> Destination:
    capabilities = capabilities_of(connection)
    options = OpenOptions(
        engine_bytes=engine_bytes(package.memory_bytes, capabilities.memory_share),
        threads=1,
        spill_folder=None,
        read_only=True,
        notice=lambda _text: None,
        is_cancelled=lambda: False,
        is_trusted=package.is_trusted,
    )
    with open_target(connection, options) as target:
        inspection = target.inspect(
            max((declared_partitions(flow, capabilities, package.streams) for flow in flows), default=0)
        )
        found, problems = _tables(target, flows)
        if looks.is_only_read:
            # Whatever stands against loads does not matter; and nobody makes there what is missing.
            inspection = replace(inspection, problems=(), settings=())
        loaded = {table_key(target, flow.destination, flow.destination.table) for flow in flows}
        problems += _unreadable(target, looks.sources, loaded)
        return Destination(
            connection.name,
            connection.type,
            inspection=inspection,
            tables=len(flows) if capabilities.stores_tables else 0,
            tables_found=found,
            problems=(*inspection.problems, *problems),
        )


def _tables(target: Target, flows: Sequence[DataFlowTask]) -> tuple[int, list[str]]:
    """How many tables exist, and what the destination says against loading the others."""
    found, problems = 0, []
    reject_tables = RejectTables(table_key(target, flow.destination, flow.destination.table) for flow in flows)
    for flow in flows:
        destination = flow.destination
        try:
            found += target.catalog(destination.schema, destination.table) is not None
            if is_partitioned(flow, target.capabilities):
                name = display_name(destination, target.default_schema)
                check_tablespaces(destination, target.capabilities, name)
            reject_tables.of(flow, target)
        except HeadraceError as error:
            detail = f" ({error.found})" if error.found else ""
            problems.append(f"{error.what}{detail}")
    return found, list(dict.fromkeys(problems))


def _unreadable(target: Target, sources: Sequence[DatabaseSource], loaded: Collection[TableKey]) -> list[str]:
    """What lookups cannot read, one sentence each. `loaded`: tables that the package makes if they are missing."""
    problems = []
    for source in sources:
        try:
            if not isinstance(source, TableSource):
                target.lookup_query(source.query)
            elif table_key(target, source, source.table) in loaded:
                continue
            elif target.lookup_table(source.schema, source.table) is None:
                schema = source.schema or target.default_schema
                problems.append(f"lookup {source.name} reads {schema}.{source.table}, which does not exist")
        except HeadraceError as error:
            detail = f" ({error.found})" if error.found else ""
            problems.append(f"lookup {source.name}: {error.what}{detail}")
    return list(dict.fromkeys(problems))


def declared_partitions(flow: DataFlowTask, capabilities: Capabilities, streams: int) -> int:
    """As many as are declared, or one for each file that there is now; 0 where that is not known before a plan."""
    source, clause = flow.source, flow.destination.partition
    if not is_partitioned(flow, capabilities):
        return 0
    if isinstance(clause, ListPartition):
        return len(clause.values)
    if isinstance(clause, HashPartition):
        return clause.parts or usable_cpus()
    if isinstance(clause, RangePartition) and isinstance(clause.bounds, tuple):
        return len(clause.bounds) + 1
    if isinstance(clause, RangePartition) and isinstance(clause.bounds, Quantiles):
        return clause.bounds.parts
    if not isinstance(source, FileSource) or not bounds_of_files(flow.destination):
        return 0
    try:
        return len(find_files(str(source.folder), source.patterns, streams).paths)
    except SourceError:
        return 0
