"""One server: its folder, its life, and what its own psql says about it."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

from tests.servers.account import Account
from tests.servers.installations import Installation

SUPERUSER = "postgres"
# Owns the databases of the tests. The password is the canary that must be found nowhere.
LOADER = "loader"
PASSWORD = "c4n4ry-S3cret-pw"
HOST = "127.0.0.1"

_START_SECONDS = 60
_POLL_SECONDS = 0.01
_BIND_ATTEMPTS = 5
# Stands for NULL in what psql prints; no value of a test is like this.
_NULL = "\x01NULL\x01"

# Made for many short-lived clusters: nothing has to survive the machine, and the log tells everything.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": f"'{HOST}'",
    "log_connections": "on",
    "log_error_verbosity": "verbose",
    "log_line_prefix": "'%m [%p] %a '",
    "log_statement": "all",
    "max_connections": "80",
    "shared_buffers": "64MB",
}
LOGINS = f"""\
local all all trust
host  all {SUPERUSER} {HOST}/32 reject
host  all all {HOST}/32 scram-sha-256
"""
LOGINS_WITH_TLS = f"""\
local     all all trust
hostnossl all all {HOST}/32 reject
hostssl   certified all {HOST}/32 cert
hostssl   all all {HOST}/32 scram-sha-256
"""


class ServerError(AssertionError):
    """The server did not start, or refused a statement of a test."""


class Cluster:
    """A data folder and the server on it. `prefix`: a command that starts another one, such as `unshare`."""

    def __init__(self, installation: Installation, account: Account, folder: Path, prefix: Sequence[str] = ()) -> None:
        self.installation = installation
        self.account = account
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "log"
        self.sockets = folder
        self.port = 0
        self._prefix = list(prefix)
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        longest = f"{self.sockets}/.s.PGSQL.65535"
        assert len(longest) < 108, f"too long for a Unix socket: {longest}"

    @property
    def version(self) -> int:
        """15 and so on."""
        return self.installation.version

    @property
    def process_id(self) -> int:
        """Of the postmaster."""
        assert self._process is not None
        return self._process.pid

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the server and waits until it takes connections; the port stays the same from start to start."""
        for _ in range(_BIND_ATTEMPTS):
            self.port = self.port or _free_port()
            self._launch()
            if self._ready():
                return
            if "could not bind" not in self.log_text():
                break
            self.port = 0
        raise ServerError(f"PostgreSQL {self.version} did not start:\n{self.log_text()}")

    def _launch(self) -> None:
        # The kernel stops the server when the tests die, whatever kills them. Last before the program: the setting is
        # lost with a change of privileges.
        command = [*self._prefix, "setpriv", "--pdeathsig", "INT", "--", self.installation.program("postgres")]
        command += ["-D", str(self.data), "-k", str(self.sockets), "-p", str(self.port)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.account.options,
            )

    def _ready(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        state = self.data / "postmaster.pid"
        while self._process.poll() is None:
            try:
                if state.read_text().splitlines()[7:8] == ["ready   "]:
                    return True
            except FileNotFoundError:
                pass
            if time.monotonic() > deadline:
                self.stop("immediate")
                return False
            time.sleep(_POLL_SECONDS)
        return False

    def stop(self, mode: str = "fast") -> None:
        """Stops the server: `smart`, `fast` (ends the sessions) or `immediate` (as a crash)."""
        if self._process is None or self._process.poll() is not None:
            return
        command = [self.installation.program("pg_ctl"), "stop", "-D", str(self.data), "-m", mode, "-w", "-s"]
        subprocess.run(command, cwd=self.folder, env=_environment(), check=False, **self.account.options)
        try:
            self._process.wait(timeout=_START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart(self, mode: str = "fast") -> None:
        """Stops and starts."""
        self.stop(mode)
        self.start()

    # --- questions ----------------------------------------------------------------------------------------------------

    def psql(self, sql: str, database: str = SUPERUSER, *options: str) -> str:
        """What psql prints for the statements. They go through its input: nothing stands in the process list."""
        command = [self.installation.program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *options]
        environment = self._client_environment(database)
        done = subprocess.run(command, input=sql.encode(), env=environment, capture_output=True, check=False)
        if done.returncode != 0:
            raise ServerError(f"{done.stderr.decode()}in: {sql}")
        return done.stdout.decode()

    def rows(self, sql: str, database: str = SUPERUSER) -> list[tuple[str | None, ...]]:
        """The rows of one query as text, None for NULL."""
        text = self.psql(sql, database, "--csv", "-t", "-P", f"null={_NULL}")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        # psql prints nothing at all for a row whose only value is an empty text.
        return [tuple(None if value == _NULL else value for value in row or [""]) for row in reader]

    @contextmanager
    def interactive(self, database: str) -> Iterator[tuple[IO[str], IO[str]]]:
        """A psql that waits for statements: its input, and its output together with its errors."""
        command = [self.installation.program("psql"), "-X", "-q", "-A", "-t"]
        with subprocess.Popen(
            command,
            env=self._client_environment(database),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                yield process.stdin, process.stdout
            finally:
                process.kill()

    def _client_environment(self, database: str) -> Mapping[str, str]:
        return _environment(
            PGHOST=str(self.sockets),
            PGPORT=str(self.port),
            PGUSER=SUPERUSER,
            PGDATABASE=database,
            PGCLIENTENCODING="UTF8",
        )

    def log_text(self) -> str:
        """Everything that the server has written to its log."""
        return self.log.read_text(encoding="utf-8", errors="surrogateescape") if self.log.exists() else ""

    # --- databases ----------------------------------------------------------------------------------------------------

    def create_database(self, name: str | None = None, options: str = "") -> Database:
        """A new, empty database that the loader owns."""
        self._databases += 1
        database = Database(self, name or f"test_{self._databases}")
        # Its files are copied: the default, by way of the log, takes six times as much CPU, and tests make thousands.
        self.psql(f"CREATE DATABASE {identifier(database.name)} OWNER {LOADER} STRATEGY file_copy {options}")
        return database

    @contextmanager
    def database(self, name: str | None = None, options: str = "") -> Iterator[Database]:
        """A new database that is dropped with the block."""
        database = self.create_database(name, options)
        try:
            yield database
        finally:
            database.drop()


class Database:
    """A database, and how a client reaches it. No URL holds the password."""

    def __init__(self, cluster: Cluster, name: str, role: str = LOADER) -> None:
        self.cluster = cluster
        self.name = name
        self.role = role

    @property
    def url(self) -> str:
        """Over TCP; the loader needs the password."""
        return f"postgresql://{quote(self.role, safe='')}@{HOST}:{self.cluster.port}/{quote(self.name, safe='')}"

    @property
    def socket_url(self) -> str:
        """Over the Unix socket, without a password."""
        folder = quote(str(self.cluster.sockets), safe="")
        return f"postgresql://{quote(self.role, safe='')}@{folder}:{self.cluster.port}/{quote(self.name, safe='')}"

    @property
    def environment(self) -> dict[str, str]:
        """Gives the password to a client."""
        return {"PGPASSWORD": PASSWORD}

    def psql(self, sql: str, *options: str) -> str:
        """See `Cluster.psql`."""
        return self.cluster.psql(sql, self.name, *options)

    def as_loader(self, sql: str) -> str:
        """The statements with the loader's rights."""
        return self.psql(f"SET SESSION AUTHORIZATION {LOADER};\n{sql}")

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """See `Cluster.rows`."""
        return self.cluster.rows(sql, self.name)

    @contextmanager
    def session(self, sql: str) -> Iterator[None]:
        """A session of the superuser that has executed the statements and keeps what they hold until the block ends."""
        with self.cluster.interactive(self.name) as (statements, answers):
            statements.write(f"{sql};\n\\echo done\n")
            statements.flush()
            found = answers.readline()
            assert found == "done\n", found
            yield

    def drop(self) -> None:
        """Ends its sessions and removes it."""
        self.cluster.psql(f"DROP DATABASE IF EXISTS {identifier(self.name)} WITH (FORCE)")


def identifier(name: str) -> str:
    """The name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def _environment(**variables: str) -> Mapping[str, str]:
    """Ours, without what would steer libpq or translate messages."""
    kept = {name: value for name, value in os.environ.items() if not re.match(r"PG|LC_|LANG", name)}
    return {**kept, "LC_ALL": "C", **variables}
