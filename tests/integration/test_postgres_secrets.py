"""The canary password, given in every way there is, is found nowhere: run folders, output, server log, ledger, process
list, error texts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.driver import GOOD_ROWS
from tests.integration.passwords import passwords_of
from tests.integration.postgres import PostgresProject, literal
from tests.servers.cluster import LOADER, PASSWORD, SUPERUSER, Cluster
from tests.snapshots import assert_snapshot

CANARY = PASSWORD.encode()


def check_traces(project: PostgresProject, *given_in: Path) -> None:
    """No file of the project holds the canary, but those in which the test gave it; nor does the server."""
    written = [path for path in project.folder.rglob("*") if path.is_file() and path not in given_in]
    assert len(written) > 3
    assert [path for path in written if CANARY in path.read_bytes()] == []
    cluster = project.target.cluster
    assert PASSWORD not in cluster.log_text()
    assert CANARY not in dump(cluster, project.target.name)


def command_lines() -> Iterator[bytes]:
    """Those of all processes of the system."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


def dump(cluster: Cluster, database: str) -> bytes:
    """Everything in the database, the ledger included."""
    command = [cluster.installation.program("pg_dump"), "-h", str(cluster.sockets), "-p", str(cluster.port)]
    done = subprocess.run([*command, "-U", SUPERUSER, database], capture_output=True, check=True)
    assert b"headrace" in done.stdout
    return done.stdout


@pytest.fixture
def secret(warehouse: PostgresProject) -> PostgresProject:
    """A project without a password yet."""
    warehouse.environment = {}
    warehouse.real_starts = True
    warehouse.file("orders.tbl.1")
    return warehouse


@pytest.mark.parametrize("way", ["variable", "password file", "reference in the url", "reference to a file"])
def test_runs_leave_no_trace(secret: PostgresProject, way: str) -> None:
    """A success with rejects, failures of several kinds, a kill and a resume."""
    given = secret.folder / "given"
    given.write_text(f"*:*:*:*:{PASSWORD}\n" if way == "password file" else PASSWORD)
    given.chmod(0o600)
    url, environment = {
        "variable": (secret.url, {"PGPASSWORD": PASSWORD}),
        "password file": (secret.url, {"PGPASSFILE": str(given)}),
        "reference in the url": (secret.url.replace("@", ":${env:SECRET}@"), {"SECRET": PASSWORD}),
        "reference to a file": (secret.url.replace("@", ":${file:given}@"), {}),
    }[way]
    secret.url, secret.environment = url, environment
    secret.sales()
    secret.file("orders.tbl.2", "x|1.00|||\n")
    assert secret.run(limit=1).exit_code == 0
    codes = [
        secret.run().exit_code,
        secret.run(files="none.*").exit_code,
        secret.run(target="create").exit_code,
        secret.run("--streams", "0").exit_code,
    ]
    assert codes == [1, 1, 1, 6]
    secret.execute("ALTER TABLE orders ADD CONSTRAINT little CHECK (id < 50) NOT VALID")
    assert secret.run(limit=1, target="append").exit_code == 1
    with secret.started(secret.arguments(limit=1)) as running:
        secret.wait_for_event(running, "run_started")
        running.end()
    secret.resume()
    check_traces(secret, given)


@pytest.mark.rotates
def test_other_commands_leave_no_trace(secret: PostgresProject) -> None:
    secret.environment = {"SECRET": PASSWORD}
    secret.url = secret.url.replace("@", ":${env:SECRET}@")
    secret.sales()
    secret.run().succeeded()
    for arguments in (["plan", "package.yaml"], ["check", "package.yaml"], ["check", "package.yaml", "--connect"]):
        for json_option in ([], ["--json"]):
            ended = secret.command([sys.executable, "-m", "headrace", *arguments, *json_option])
            assert ended.exit_code == 0, ended.stderr
    check_traces(secret)


def test_a_failed_login_leaves_no_trace(secret: PostgresProject) -> None:
    """The password is right, everything else is wrong."""
    for wrong in ("no_such_database", secret.target.name):
        for url in (secret.target.url, secret.target.url.replace("loader", "stranger")):
            secret.url = url.removesuffix(secret.target.name).replace("@", ":${env:SECRET}@") + wrong
            secret.sales()
            secret.run(environment={"SECRET": PASSWORD})
    check_traces(secret)


def test_a_literal_password_is_refused_in_a_package(secret: PostgresProject) -> None:
    """A file that others read is no place for it; the message does not repeat it."""
    secret.url = secret.url.replace("@", f":{PASSWORD}@")
    secret.sales()
    ended = secret.run()
    assert ended.exit_code == 5
    assert PASSWORD not in ended.stdout + ended.stderr
    assert_snapshot("postgres_literal_password", secret.stable(ended.error))


def test_process_lists_show_nothing(secret: PostgresProject, tpch_files: Path) -> None:
    """Those of the system, of both ends, and of the server."""
    secret.tpch("lineitem")
    secret.link(tpch_files.glob("lineitem.*"), copies=4)
    shown = set[bytes]()
    with secret.started(secret.arguments(), {"PGPASSWORD": PASSWORD}) as running:
        while running.poll() is None:
            shown.update(command_lines())
            activity = secret.query("SELECT application_name, query FROM pg_stat_activity")
            shown.update(str(text).encode() for row in activity for text in row)
        running.wait().succeeded()
    assert any(b"headrace" in text for text in shown) and any(b"COPY" in text for text in shown)
    assert [text for text in shown if CANARY in text] == []


@pytest.mark.parametrize("way", ["url", "middle of a url", "words", "setting", "option", "PGPASSWORD"])
def test_random_passwords_leave_no_trace(secret: PostgresProject, way: str) -> None:
    """Right ones, given in every way: in no output, file, process list, ledger or log."""
    secret.sales()
    package = secret.folder / "package.yaml"
    plain, host = package.read_text(), secret.url.partition("@")[2]
    for number, password in enumerate(passwords_of(way)):
        role = f"loader_{number}_{way.split()[0].lower()}"
        made = f"CREATE ROLE {role} LOGIN IN ROLE {LOADER} PASSWORD {literal(password.text)}"
        secret.target.psql(f"{made}; ALTER ROLE {role} SET role = {LOADER}")
        logged = len(secret.target.cluster.log_text())
        url = f"postgresql://{role}:{password.coded}@{host}"
        server, _, database = host.partition("/")
        address, _, port = server.partition(":")
        escaped = password.text.replace("\\", "\\\\").replace("'", "\\'")
        words = f"host={address} port={port} dbname={database} user={role} password='{escaped}'"
        connection, value, options = {
            "url": ('url: "${env:SECRET}"', url, []),
            "middle of a url": (f'url: "postgresql://{role}:${{env:SECRET}}@{host}"', password.coded, []),
            "words": ('url: "${env:SECRET}"', words, []),
            "setting": (f'url: "postgresql://{role}@{host}", password: "${{env:SECRET}}"', password.text, []),
            "option": (f'url: "postgresql://{role}@{host}"', url, ["--connection", "warehouse=${env:SECRET}"]),
            "PGPASSWORD": (f'url: "postgresql://{role}@{host}"', password.text, []),
        }[way]
        package.write_text(plain.replace(f'url: "{secret.url}"', connection))
        variables = {"PGPASSWORD" if way == "PGPASSWORD" else "SECRET": value}
        shown = set[str]()
        with secret.started(secret.arguments(*options), variables) as running:
            while running.poll() is None:
                shown.update(line.decode(errors="replace") for line in command_lines())
            running.wait().succeeded()
        ended = secret.run(*options, environment=variables, target="create")
        assert ended.exit_code == 1
        written = [path.read_text(errors="replace") for path in secret.folder.rglob("*") if path.is_file()]
        cluster = secret.target.cluster
        texts = [*shown, ended.stdout, ended.stderr, *written, dump(cluster, secret.target.name).decode()]
        assert [text for text in texts if password.is_shown_in(text)] == []
        assert not password.is_shown_in(cluster.log_text()[logged:])
        secret.target.psql(f"DROP ROLE {role}")


def test_bytes_of_rows_do_not_reach_the_log_of_the_server(secret: PostgresProject) -> None:
    """What the server logs of a failed COPY is its own affair; a row without failure is nowhere."""
    secret.environment = {"PGPASSWORD": PASSWORD}
    secret.sales()
    secret.file("orders.tbl.2", GOOD_ROWS.replace("note 7\n", "unmistakable\n"))
    secret.run().succeeded()
    assert "unmistakable" not in secret.target.cluster.log_text()
