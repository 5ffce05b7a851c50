"""How a connection is named, and what is said when it cannot be made: by URL, key=value, PG* variables, password files,
over TCP, TLS and the Unix socket.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace import core
from headrace.errors import TargetError
from tests.integration.driver import GOOD_ROWS, Ended
from tests.integration.postgres import CREATE_ORDERS, PostgresProject
from tests.servers.certificates import Certificates
from tests.servers.cluster import HOST, LOADER, PASSWORD, Cluster, Database
from tests.servers.farm import Farm
from tests.servers.fixtures import TlsServer
from tests.snapshots import assert_snapshot


def new_project(folder: Path, database: Database) -> PostgresProject:
    (folder / "project").mkdir()
    project = PostgresProject(folder / "project", database)
    project.environment = {}
    project.file("orders.tbl.1")
    return project


@pytest.fixture
def bare(tmp_path: Path, database: Database) -> PostgresProject:
    """A project that is given no password."""
    return new_project(tmp_path, database)


def run(project: PostgresProject, url: str, **environment: str) -> Ended:
    """Runs with this URL in the package."""
    project.url = url
    project.sales()
    return project.run(environment=environment)


def check_loaded(project: PostgresProject, ended: Ended) -> None:
    assert ended.succeeded()["rows_loaded"] == 100
    assert project.query("SELECT count(*) FROM orders") == [("100",)]


def check_refused(project: PostgresProject, ended: Ended, name: str, *, retryable: bool = False) -> None:
    """Failed before the first row; the message is a snapshot; nobody sees the password."""
    assert ended.exit_code == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    error = ended.summary["error"]
    assert (error["kind"], error["retryable"]) == ("target_busy" if retryable else "target", retryable)
    assert_snapshot(f"postgres_connection_{name}", project.stable(ended.error))


# --- ways that work ---------------------------------------------------------------------------------------------------


def password_file(folder: Path, text: str = f"*:*:*:*:{PASSWORD}\n") -> str:
    path = folder / "pgpass"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_ways_to_name_a_connection(bare: PostgresProject) -> None:
    port, name = bare.target.cluster.port, bare.target.name
    sockets = bare.target.cluster.sockets
    secret = {"PGPASSWORD": PASSWORD}
    ways: list[tuple[str, dict[str, str]]] = [
        (bare.target.url, secret),
        (bare.target.url.replace("postgresql:", "postgres:"), secret),
        (bare.target.url, {"PGPASSFILE": password_file(bare.folder)}),
        (bare.target.url, {"PGPASSFILE": password_file(bare.folder, f"{HOST}:{port}:{name}:{LOADER}:{PASSWORD}\n")}),
        (bare.target.url.replace("@", ":${env:SECRET}@"), {"SECRET": PASSWORD}),
        (f"{bare.target.url}?password=${{env:SECRET}}&sslmode=disable", {"SECRET": PASSWORD}),
        (f"host={HOST} port={port} dbname={name} user={LOADER}", secret),
        ("postgresql://", {"PGHOST": HOST, "PGPORT": str(port), "PGDATABASE": name, "PGUSER": LOADER, **secret}),
        (f"postgresql://{LOADER}@{HOST}:1,{HOST}:{port}/{name}", secret),
        (bare.target.socket_url, {}),
        (f"postgresql:///{name}?host={sockets}&port={port}&user={LOADER}", {}),
    ]
    for url, environment in ways:
        check_loaded(bare, run(bare, url, **environment))


def test_the_command_line_names_the_connection(bare: PostgresProject) -> None:
    bare.url = "postgresql://nobody@127.0.0.1:1/nowhere"
    bare.sales()
    override = ["--connection", f"warehouse={bare.target.url}"]
    check_loaded(bare, bare.run(*override, environment={"PGPASSWORD": PASSWORD}))


@contextmanager
def login(cluster: Cluster, method: str) -> Iterator[str]:
    """A role that logs in over TCP by this method; it goes with its cluster."""
    role = f"by_{method.replace('-', '_')}"
    logins = cluster.data / "pg_hba.conf"
    before = logins.read_text()
    encryption = "md5" if method == "md5" else "scram-sha-256"
    # The superuser's sessions do not log the password.
    cluster.psql(
        f"SET log_statement = none; SET password_encryption = '{encryption}'; "
        f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{PASSWORD}'"
    )
    logins.write_text(f"host all {role} {HOST}/32 {method}\n{before}")
    cluster.psql("SELECT pg_reload_conf()")
    try:
        yield role
    finally:
        logins.write_text(before)
        cluster.psql("SELECT pg_reload_conf()")


@pytest.fixture
def own_database(servers: Farm) -> Iterator[Database]:
    """On a server whose logins the test may change."""
    cluster = servers.cluster()
    yield cluster.create_database()
    servers.remove(cluster)


def test_md5(own_database: Database, tmp_path: Path) -> None:
    with login(own_database.cluster, "md5") as role:
        own_database.role = role
        project = new_project(tmp_path, own_database)
        check_loaded(project, run(project, own_database.url, PGPASSWORD=PASSWORD))
        check_refused(project, run(project, own_database.url, PGPASSWORD="wrong"), "wrong_password_md5")


def test_a_password_is_never_sent_in_clear_text(own_database: Database, tmp_path: Path) -> None:
    """The server asks for it over a connection without TLS."""
    with login(own_database.cluster, "password") as role:
        own_database.role = role
        project = new_project(tmp_path, own_database)
        check_refused(project, run(project, own_database.url, PGPASSWORD=PASSWORD), "clear_text")


# --- refused ----------------------------------------------------------------------------------------------------------


def test_wrong_password(bare: PostgresProject) -> None:
    check_refused(bare, run(bare, bare.target.url, PGPASSWORD="wrong"), "wrong_password")


def test_no_password(bare: PostgresProject) -> None:
    check_refused(bare, run(bare, bare.target.url), "no_password")


def test_a_password_file_that_others_can_read(bare: PostgresProject) -> None:
    file = Path(password_file(bare.folder))
    file.chmod(0o644)
    check_refused(bare, run(bare, bare.target.url, PGPASSFILE=str(file)), "open_password_file")


def test_no_such_database(bare: PostgresProject) -> None:
    url = bare.target.url.removesuffix(bare.target.name) + "no_such_database"
    check_refused(bare, run(bare, url, PGPASSWORD=PASSWORD), "no_database")


def test_no_such_role(bare: PostgresProject) -> None:
    """The server does not tell whether the name or the password is wrong."""
    url = bare.target.url.replace(LOADER, "stranger")
    check_refused(bare, run(bare, url, PGPASSWORD=PASSWORD), "no_role")


def test_nobody_listens(bare: PostgresProject) -> None:
    """As a restarting server: trying again can help."""
    url = bare.target.url.replace(f":{bare.target.cluster.port}/", ":1/")
    check_refused(bare, run(bare, url, PGPASSWORD=PASSWORD), "nobody_listens", retryable=True)


def test_no_such_socket(bare: PostgresProject) -> None:
    url = f"postgresql:///{bare.target.name}?host={bare.folder}/nothing&user={LOADER}"
    check_refused(bare, run(bare, url), "no_socket", retryable=True)


def test_a_login_that_no_rule_allows(bare: PostgresProject) -> None:
    url = bare.target.url.replace(LOADER, "postgres")
    check_refused(bare, run(bare, url, PGPASSWORD=PASSWORD), "no_rule")


def test_too_many_connections(bare: PostgresProject) -> None:
    bare.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 0")
    try:
        check_refused(bare, run(bare, bare.target.url, PGPASSWORD=PASSWORD), "too_many", retryable=True)
    finally:
        bare.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")


def test_fewer_connections_than_streams(bare: PostgresProject) -> None:
    """The controlling session gets one, not all writers do: nothing is visible, and the next run leaves nothing."""
    bare.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 2")
    for number in range(2, 9):  # enough work for the first stream that the others begin before it has all of it
        bare.file(f"orders.tbl.{number}", GOOD_ROWS * 2000)
    try:
        ended = run(bare, bare.target.url, PGPASSWORD=PASSWORD)
        # How many writers got in, and so whether something is committed for `resume`, is chance.
        error = ended.summary["error"]
        assert (ended.exit_code, error["kind"], error["retryable"]) == (1, "target_busy", True)
        assert "SQLSTATE 53300" in error["found"]
        assert bare.tables() == []
    finally:
        bare.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
    run(bare, bare.target.url, PGPASSWORD=PASSWORD).succeeded()
    assert bare.leftovers() == []


def test_something_else_listens(bare: PostgresProject) -> None:
    """A server that does not speak the protocol."""

    def answer(listener: socket.socket) -> None:
        listener.settimeout(30)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        url = f"postgresql://{LOADER}@{HOST}:{port}/x?sslmode=disable"
        ended = run(bare, url, PGPASSWORD=PASSWORD)
        thread.join()
    assert (ended.exit_code, "Traceback" in ended.stderr) == (1, False)
    text = bare.stable(ended.error).replace(str(port), "PORT")
    assert_snapshot("postgres_connection_something_else", text)


# --- rights -----------------------------------------------------------------------------------------------------------

NO_RIGHT = {
    "to_create_a_schema": (),
    "to_create_a_table": ("GRANT CREATE ON DATABASE {database} TO {role}",),
    "to_the_table": (
        "GRANT CREATE ON DATABASE {database} TO {role}",
        CREATE_ORDERS,
        "GRANT SELECT ON orders TO {role}",
    ),
}


@pytest.mark.parametrize("case", NO_RIGHT)
def test_no_permission(own_database: Database, tmp_path: Path, case: str) -> None:
    """A role that may only connect, and what it is given beyond that."""
    with login(own_database.cluster, "scram-sha-256") as role:
        own_database.psql(f"ALTER ROLE {role} NOSUPERUSER")
        statements = [text.format(database=own_database.name, role=role) for text in NO_RIGHT[case]]
        own_database.as_loader(";\n".join(["SELECT 1", *statements]))
        own_database.role = role
        project = new_project(tmp_path, own_database)
        before = project.content()
        ended = run(project, own_database.url, PGPASSWORD=PASSWORD)
        check_refused(project, ended, f"no_permission_{case}")
        assert project.content() == before


# --- TLS --------------------------------------------------------------------------------------------------------------


def test_a_server_without_tls(bare: PostgresProject, tmp_path: Path) -> None:
    url = f"{bare.target.url}?sslmode="
    trusted = str(Certificates.make(tmp_path, LOADER).root)
    for mode in ("require", "verify-ca", "verify-full"):
        ended = run(bare, f"{url}{mode}", PGPASSWORD=PASSWORD, PGSSLROOTCERT=trusted)
        check_refused(bare, ended, f"no_tls_{mode.replace('-', '_')}")
    for mode in ("disable", "allow", "prefer"):
        check_loaded(bare, run(bare, f"{url}{mode}", PGPASSWORD=PASSWORD))


@pytest.fixture
def encrypted(postgres_tls: TlsServer, tmp_path: Path) -> Iterator[PostgresProject]:
    """A project that loads into the server that insists on TLS."""
    with postgres_tls.cluster.database() as database:
        yield new_project(tmp_path, database)


def check_encrypted(project: PostgresProject, ended: Ended) -> None:
    """Loaded; and the server's log says that every session of the loader was encrypted."""
    check_loaded(project, ended)
    log = project.target.cluster.log_text()
    authorized = re.findall(rf"connection authorized: user={LOADER} database={project.target.name} .*", log)
    assert authorized and all("SSL enabled (protocol=TLSv1." in line for line in authorized)


def test_tls_modes(encrypted: PostgresProject, postgres_tls: TlsServer) -> None:
    secret = {"PGPASSWORD": PASSWORD, "PGSSLROOTCERT": str(postgres_tls.certificates.root)}
    by_name = encrypted.target.url.replace(HOST, "localhost")
    for url, mode in [
        *((encrypted.target.url, mode) for mode in ("allow", "prefer", "require", "verify-ca")),
        (by_name, "verify-full"),
    ]:
        check_encrypted(encrypted, run(encrypted, f"{url}?sslmode={mode}", **secret))
    check_refused(encrypted, run(encrypted, f"{encrypted.target.url}?sslmode=disable", **secret), "tls_disabled")
    # The certificate is for localhost.
    ended = run(encrypted, f"{encrypted.target.url}?sslmode=verify-full", **secret)
    check_refused(encrypted, ended, "tls_other_name")


def test_a_certificate_has_to_be_that_of_the_name_whatever_the_address(
    encrypted: PostgresProject, postgres_tls: TlsServer
) -> None:
    """Later sessions go to the address of the first one, and know the server by its name all the same."""
    port = encrypted.target.cluster.port
    spec: dict[str, object] = {
        "database": encrypted.target.name,
        "user": LOADER,
        "password": PASSWORD,
        "application_name": "test",
        "connect_timeout_seconds": 10,
        "tls": {"mode": "verify-full", "root_certificates": str(postgres_tls.certificates.root)},
    }
    host = {"port": port, "address": f"{HOST}:{port}"}
    with core.PostgresConnection({**spec, "hosts": [{**host, "host": "localhost"}]}) as session:
        assert session.address() == f"{HOST}:{port}"
    with pytest.raises(TargetError) as failure:
        core.PostgresConnection({**spec, "hosts": [{**host, "host": "other.invalid"}]})
    assert "other.invalid" in f"{failure.value.what} {failure.value.found}"


def test_a_certificate_of_a_stranger(encrypted: PostgresProject, postgres_tls: TlsServer) -> None:
    stranger = {"PGPASSWORD": PASSWORD, "PGSSLROOTCERT": str(postgres_tls.certificates.stranger)}
    for mode in ("verify-ca", "verify-full"):
        url = encrypted.target.url.replace(HOST, "localhost")
        ended = run(encrypted, f"{url}?sslmode={mode}", **stranger)
        check_refused(encrypted, ended, f"tls_stranger_{mode.replace('-', '_')}")


def test_client_certificates(postgres_tls: TlsServer, tmp_path: Path) -> None:
    """Without a password: the certificate says who it is."""
    certificates = postgres_tls.certificates
    own = {"PGSSLCERT": str(certificates.client), "PGSSLKEY": str(certificates.client_key)}
    with postgres_tls.cluster.database("certified") as database:
        project = new_project(tmp_path, database)
        url = f"{database.url}?sslmode=require"
        check_encrypted(project, run(project, url, **own))
        check_refused(project, run(project, url), "tls_no_client_certificate")
        other = {**own, "PGSSLKEY": str(certificates.server_key)}
        check_refused(project, run(project, url, **other), "tls_other_key")
