"""Opens the target of a connection. The only place that knows which targets exist."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import duckdb

from headrace import core
from headrace.errors import PackageError, TargetError
from headrace.model import Connection, DuckdbConnection, NullConnection, PostgresConnection
from headrace.planning import Capabilities
from headrace.targets.base import OpenOptions, Target
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.duckdb.connection import connect
from headrace.targets.duckdb.scan import DuckdbScanSession
from headrace.targets.duckdb.target import DuckdbTarget
from headrace.targets.null.capabilities import NULL_CAPABILITIES
from headrace.targets.null.target import NullTarget
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from headrace.targets.postgres.scan import PostgresScanSession
from headrace.targets.postgres.target import PostgresTarget
from headrace.targets.scan import ScanSession


def capabilities_of(connection: Connection) -> Capabilities:
    """What the connection's target can do, without opening it. Raises PackageError for one that takes no rows."""
    if isinstance(connection, DuckdbConnection):
        return DUCKDB_CAPABILITIES
    if isinstance(connection, NullConnection):
        return NULL_CAPABILITIES
    if isinstance(connection, PostgresConnection):
        return POSTGRES_CAPABILITIES
    raise PackageError(
        f"connection `{connection.name}` cannot be a destination",
        found=f"type: {connection.type}",
        expected="a connection of type duckdb, postgres or null",
        hint="Choose another connection for the destination.",
    )


def target_key(connection: Connection) -> tuple[str, str]:
    """Equal for connections that are the same place, so that it is opened once."""
    if isinstance(connection, DuckdbConnection):
        return "duckdb", str(Path(connection.path).resolve())
    if isinstance(connection, PostgresConnection):
        parameters = connection.parameters
        return "postgres", repr((parameters.hosts, parameters.database, parameters.user))
    return connection.type, connection.name


def refuse_two_ways(first: Connection, second: Connection) -> None:
    """Raises TargetError if two connections are one place, which is opened once, but say different things about it."""
    if not (isinstance(first, PostgresConnection) and isinstance(second, PostgresConnection)):
        return
    said = [
        {**asdict(connection.parameters), "ledger": connection.ledger_schema, "warnings": ()}
        for connection in (first, second)
    ]
    differences = [name for name, value in said[0].items() if value != said[1][name]]
    if differences:
        raise TargetError(
            f"connections `{first.name}` and `{second.name}` are the same database, where a run has one session",
            found=f"they differ in {', '.join(differences)}",
            hint="Use one connection for both, and write tables with their schema: `table: SCHEMA.TABLE`.",
        )


def files_of(connection: Connection) -> list[Path]:
    """The files in which the connection's target keeps its rows, whether or not they exist."""
    if isinstance(connection, DuckdbConnection):
        path = Path(connection.path).resolve()
        return [path, path.with_name(f"{path.name}.wal")]
    return []


def open_null_target() -> Target:
    """A target that stores nothing, for reading a source without a destination."""
    return NullTarget()


def open_engine(options: OpenOptions) -> duckdb.DuckDBPyConnection:
    """A DuckDB instance without a file, for SQL over a flow's rows."""
    return connect(options)


def open_scan_session(connection: Connection, options: OpenOptions) -> ScanSession:
    """A session that only reads. Raises TargetError for a connection that holds no tables."""
    if isinstance(connection, DuckdbConnection):
        return DuckdbScanSession(Path(connection.path).resolve(), connection.lock_timeout_seconds, options)
    if isinstance(connection, PostgresConnection):
        return PostgresScanSession(connection, core.PostgresConnection, options.is_cancelled)
    raise TargetError(
        f"a connection of type {connection.type} holds no tables",
        expected="duckdb:FILE or postgresql://...",
        hint="Name the database that the tables are in.",
    )


def open_target(connection: Connection, options: OpenOptions) -> Target:
    """The opened target of a connection."""
    if isinstance(connection, DuckdbConnection):
        return DuckdbTarget(Path(connection.path).resolve(), connection.lock_timeout_seconds, options)
    if isinstance(connection, PostgresConnection):
        return PostgresTarget(connection, options, core.PostgresConnection)
    capabilities_of(connection)
    return NullTarget()
