"""The servers themselves: every version starts, takes the password, restarts, and is gone with its session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.servers import installations
from tests.servers.account import Account
from tests.servers.cluster import HOST, LOADER, PASSWORD, Cluster, Database, ServerError
from tests.servers.farm import Farm
from tests.servers.fixtures import TlsServer

ROOT = Path(__file__).parents[2]


def client(database: Database, sql: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """psql as the loader over TCP."""
    environment = {
        **os.environ,
        "PGHOST": HOST,
        "PGPORT": str(database.cluster.port),
        "PGUSER": LOADER,
        "PGDATABASE": database.name,
        **variables,
    }
    program = database.cluster.installation.program("psql")
    return subprocess.run(
        [program, "-X", "-A", "-t", "-w", "-c", sql], env=environment, capture_output=True, text=True, check=False
    )


def test_every_version_takes_the_password(postgres_versions: Cluster) -> None:
    [(found,)] = postgres_versions.rows("SHOW server_version_num")
    assert found is not None and int(found) // 10000 == postgres_versions.version
    with postgres_versions.database() as database:
        good = client(database, "SELECT current_user", PGPASSWORD=PASSWORD)
        assert (good.stdout, good.stderr) == (f"{LOADER}\n", "")
        wrong = client(database, "SELECT 1", PGPASSWORD="wrong")
        assert "password authentication failed" in wrong.stderr
    assert PASSWORD not in postgres_versions.log_text()


def test_rows_are_text_or_none(database: Database) -> None:
    rows = database.rows("SELECT 1, NULL, '', E'a,\"b\\n', 'NULL' UNION ALL SELECT 2, 'x', 'é', E'\\\\N', ' '")
    assert rows == [("1", None, "", 'a,"b\n', "NULL"), ("2", "x", "é", "\\N", " ")]
    assert database.rows("VALUES (''), (NULL), ('')") == [("",), (None,), ("",)]
    with pytest.raises(ServerError, match="division by zero"):
        database.rows("SELECT 1 / 0")


@pytest.mark.parametrize("name", ['quote"s and spaces', "x" * 63, "ümläut/%?", "UPPER"])
def test_a_database_of_any_name(postgres: Cluster, name: str) -> None:
    with postgres.database(name) as database:
        assert database.rows("SELECT current_database()") == [(name,)]
        assert " " not in database.url
    assert postgres.rows(f"SELECT 1 FROM pg_database WHERE datname = '{name}'") == []


def test_a_restart_keeps_port_and_rows(servers: Farm) -> None:
    cluster = servers.cluster(settings={"wal_level": "minimal", "max_wal_senders": "0"})
    port, process_id = cluster.port, cluster.process_id
    database = cluster.create_database()
    database.as_loader("CREATE TABLE kept AS SELECT 1 AS one")
    for mode in ("fast", "immediate"):
        cluster.restart(mode)
        assert database.rows("SELECT * FROM kept") == [("1",)]
    assert (cluster.port, cluster.process_id == process_id) == (port, False)
    assert cluster.rows("SHOW wal_level") == [("minimal",)]
    servers.remove(cluster)
    assert not cluster.folder.exists()


def test_a_broken_setting_is_shown(servers: Farm) -> None:
    with pytest.raises(ServerError, match="no_such_setting"):
        servers.cluster(settings={"no_such_setting": "1"})


def test_programs_in_a_closed_folder_are_copied(servers: Farm, tmp_path: Path) -> None:
    """As root in a folder that only root may enter, such as its home."""
    found = installations.installation()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = found.programs.parents[1]
    for folder in (package, package.with_name(f"{package.name}.libs")):
        (closed / folder.name).symlink_to(folder)
    inside = replace(found, programs=closed / found.programs.relative_to(package.parent))
    usable = installations.usable(inside, servers.account, tmp_path)
    assert (usable == inside) == (servers.account == Account())
    assert subprocess.run([usable.program("psql"), "--version"], check=True, capture_output=True).stdout


def test_tls_is_insisted_on(postgres_tls: TlsServer) -> None:
    certificates = postgres_tls.certificates
    with postgres_tls.cluster.database() as database, postgres_tls.cluster.database("certified") as certified:
        encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        secret = {"PGPASSWORD": PASSWORD, "PGSSLROOTCERT": str(certificates.root)}
        assert client(database, encrypted, PGSSLMODE="verify-ca", **secret).stdout == "t\n"
        assert "reject" in client(database, encrypted, PGSSLMODE="disable", **secret).stderr
        own = {"PGSSLCERT": str(certificates.client), "PGSSLKEY": str(certificates.client_key)}
        assert client(certified, encrypted, PGSSLMODE="require", **own).stdout == "t\n"
        assert "certificate" in client(certified, encrypted, PGSSLMODE="require").stderr


# Starts a server and says where; then waits to be killed.
WAITS = """
import time
from tests.servers.farm import Farm
farm = Farm()
cluster = farm.shared()
print(farm.folder, cluster.process_id, flush=True)
time.sleep(600)
"""


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_session_leaves_nothing(servers: Farm, number: signal.Signals) -> None:
    """The server ends with the session; its folder goes when the next session begins."""
    with subprocess.Popen([sys.executable, "-c", WAITS], cwd=ROOT, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        folder, process_id = session.stdout.readline().split()
        session.send_signal(number)
    deadline = time.monotonic() + 30
    while Path("/proc", process_id).exists():
        assert time.monotonic() < deadline, "the server outlives the session"
        time.sleep(0.01)
    Farm().close()  # or another session that has begun meanwhile
    assert not Path(folder).exists()
    assert servers.folder.exists()
