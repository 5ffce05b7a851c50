"""Where the demo can load: what has to be there before, and how the tables are looked at afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from headrace import core
from headrace.cli.console import shown_path
from headrace.cli.demo_folder import DemoFolder
from headrace.cli.private_server import SUPERUSER, PrivateServer
from headrace.model.connections import PostgresConnection, parse_overrides
from headrace.model.conninfo import Surroundings
from headrace.tpch.loaded import DuckdbTables, PostgresTables
from headrace.tpch.verify import LoadedTables

CONNECTION: Final = "warehouse"
_DATABASE: Final = "tpch"


class DemoDestination(Protocol):
    """One kind of destination. `url`: for --connection; `shown`: what the tables are loaded into."""

    @property
    def url(self) -> str: ...

    @property
    def shown(self) -> str: ...

    def check(self) -> None:
        """Raises what can be known to go wrong, before anything is written."""

    def opened(self) -> AbstractContextManager[LoadedTables]:
        """While inside, the destination can be loaded."""


class _Duckdb:
    def __init__(self, folder: DemoFolder) -> None:
        self._database = folder.database
        self.url = f"duckdb:{self._database.absolute()}"
        self.shown = shown_path(self._database)

    def check(self) -> None:
        return None

    @contextmanager
    def opened(self) -> Iterator[LoadedTables]:
        yield DuckdbTables(self._database)


class _Postgres:
    def __init__(self, folder: DemoFolder) -> None:
        self._server = PrivateServer(folder.server)
        self.url = self._server.url(_DATABASE)
        self.shown = "a private PostgreSQL server"

    def check(self) -> None:
        self._server.check()

    @contextmanager
    def opened(self) -> Iterator[LoadedTables]:
        with self._server:
            with _session(self._server.url(SUPERUSER)) as session:
                session.execute(f"CREATE DATABASE {_DATABASE}")
            with _session(self.url) as session:
                yield PostgresTables(session, self._server.folder)


def destination(kind: str, folder: DemoFolder) -> DemoDestination:
    """The destination called `duckdb` or `postgres`."""
    return _Postgres(folder) if kind == "postgres" else _Duckdb(folder)


def _session(url: str) -> core.PostgresConnection:
    """A session of the demo's own. Variables such as PGOPTIONS are for other servers."""
    surroundings = Surroundings.of_process({}, Path.cwd())
    connection = parse_overrides([f"{CONNECTION}={url}"], {CONNECTION: None}, surroundings, set())[CONNECTION]
    assert isinstance(connection, PostgresConnection)
    return core.PostgresConnection(connection.to_core("headrace demo"))
