"""Opens the destinations of a package to look at them: can they be loaded into, and what slows a load down there?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.errors import HeadraceError, SourceError
from headrace.model import (
    BoundPackage,
    Connection,
    DataFlowTask,
    FileSource,
    HashPartition,
    ListPartition,
    Quantiles,
    RangePartition,
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
from headrace.run.redact import Redactor
from headrace.run.reject_tables import RejectTables, table_key
from headrace.run.tasks import nameable_flows
from headrace.run.waiting import on_worker
from headrace.sources.globbing import find_files
from headrace.targets import Inspection, OpenOptions, Target, capabilities_of, open_target, refuse_two_ways, target_key


@dataclass(frozen=True)
class Destination:
    """One place that the package loads into.

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


def inspect_destinations(package: BoundPackage) -> Iterator[Destination]:
    """Each destination of the tasks that would run, opened for reading and closed again. Nothing is changed."""
    redactor = Redactor(package.secrets)
    by_place: dict[tuple[str, str], list[DataFlowTask]] = {}
    for flow, when in nameable_flows(package):
        if when:
            flows = by_place.setdefault(target_key(flow.destination.connection), [])
            flows.append(flow)
            refuse_two_ways(flows[0].destination.connection, flow.destination.connection)
    for flows in by_place.values():
        connection = flows[0].destination.connection
        try:
            yield redactor.dataclass(on_worker(partial(_inspected, package, connection, flows)))
        except HeadraceError as error:
            yield Destination(connection.name, connection.type, redactor.error(error))


def _inspected(package: BoundPackage, connection: Connection, flows: Sequence[DataFlowTask]) -> Destination:
    capabilities = capabilities_of(connection)
    options = OpenOptions(
        engine_bytes=engine_bytes(package.memory_bytes, capabilities.memory_share),
        threads=1,
        spill_folder=None,
        read_only=True,
        notice=lambda _text: None,
        is_cancelled=lambda: False,
    )
    with open_target(connection, options) as target:
        inspection = target.inspect(max(declared_partitions(flow, capabilities, package.streams) for flow in flows))
        found, problems = _tables(target, flows)
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
