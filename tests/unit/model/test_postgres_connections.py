"""Connections of type postgres: what a package and the command line may say, and where passwords must not show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import CommandLineError, PackageError
from headrace.model import BoundPackage, PostgresConnection, describe
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE, change, load, message

DUCKDB = "{type: duckdb, path: w.duckdb}"
ENVIRON = {
    "WAREHOUSE_URL": "postgresql://me:s3cret%21word@db:6/sales",
    "PASSWORD": "s3cret!word",
    "OTHER": "nothing",
    "HOME": "/nowhere",
}


def package(keys: str) -> str:
    return change(DUCKDB, f"{{type: postgres, {keys}}}")


def bound(folder: Path, keys: str, **environ: str) -> tuple[BoundPackage, PostgresConnection]:
    found = load(folder, package(keys), environ={**ENVIRON, **environ})
    connection = found.connections["warehouse"]
    assert isinstance(connection, PostgresConnection)
    return found, connection


def test_a_url_of_the_environment(tmp_path: Path) -> None:
    found, connection = bound(tmp_path, 'url: "${env:WAREHOUSE_URL}"')
    parameters = connection.parameters
    assert (parameters.hosts, parameters.database, parameters.user) == ((("db", 6),), "sales", "me")
    assert connection.to_core("x")["password"] == "s3cret!word"
    # As it is written, and as it is: both can end up in a message of the server.
    assert {"s3cret!word", "s3cret%21word"} <= found.secrets
    assert "s3cret" not in json.dumps(describe(found)) + repr(found)


def test_single_keys(tmp_path: Path) -> None:
    keys = (
        'host: db, port: 6, database: d, user: u, password: "${env:PASSWORD}", sslmode: verify-full, '
        "sslrootcert: ca.crt, connect_timeout_seconds: 5, options: -c x=1, lock_timeout_seconds: 7, "
        "stall_timeout_seconds: 9, "
        "ledger: {schema: etl}"
    )
    found, connection = bound(tmp_path, keys)
    parameters = connection.parameters
    assert (parameters.hosts, parameters.database, parameters.user) == ((("db", 6),), "d", "u")
    assert (parameters.password, parameters.options) == ("s3cret!word", "-c x=1")
    assert parameters.root_certificates == str(tmp_path / "ca.crt")
    assert (connection.lock_timeout_seconds, connection.ledger_schema) == (7, "etl")
    assert connection.to_core("x")["stall_timeout_seconds"] == 9.0
    assert describe(found)["connections"]["warehouse"] == {  # type: ignore[index]
        "name": "warehouse",
        "type": "postgres",
        "host": "db",
        "port": "6",
        "database": "d",
        "user": "u",
        "sslmode": "verify-full",
        "lock_timeout_seconds": 7,
        "stall_timeout_seconds": 9,
        "ledger": "etl",
    }


def test_without_a_word_everything_is_a_default(tmp_path: Path) -> None:
    _, connection = bound(tmp_path, "ledger: off", PGHOST="h", PGUSER="u", PGPASSWORD="from variable")
    assert (connection.parameters.hosts, connection.parameters.database) == ((("h", 5432),), "u")
    assert (connection.ledger_schema, connection.lock_timeout_seconds) == (None, 30)
    assert connection.password_texts == {"from variable"}


def test_url_and_keys_complete_each_other(tmp_path: Path) -> None:
    _, connection = bound(tmp_path, 'url: "postgresql://u@h/d", password: "${env:PASSWORD}"')
    assert (connection.parameters.user, connection.parameters.password) == ("u", "s3cret!word")


REFUSED = {
    "password": "password: geheim",
    "password_in_url": 'url: "postgresql://u:geheim@h/d"',
    "password_in_text": "url: host=h password=geheim",
    "password_beside_reference": 'password: "${env:PASSWORD}x"',
    "twice": 'url: "postgresql://h/d", host: h',
    "url": 'url: "postgresql://h/d?sslmod=require"',
    "sslmode": "sslmode: verify_full",
    "port": "port: 0",
    "ledger": "ledger: on",
    "ledger_key": "ledger: {table: x}",
    "unknown_key": "hots: x",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    text = message(tmp_path, package(REFUSED[name]), environ=ENVIRON)
    assert "s3cret" not in text
    assert_snapshot(f"postgres_{name}", text)


def test_a_password_given_by_a_parameter_is_no_secret_and_refused(tmp_path: Path) -> None:
    text = package('password: "${mode}"')
    with pytest.raises(PackageError, match="the package holds a password"):
        load(tmp_path, text, environ=ENVIRON)


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("postgresql://u:hunter2@h/d", "d"),
        ("postgres://u:hunter2@h/d", "d"),
        ("postgres:host=h user=u password=hunter2 dbname=d", "d"),
        ("postgresql:user=u password=hunter2", "u"),
        ("postgres:", "me"),
    ],
)
def test_the_command_line(tmp_path: Path, url: str, database: str) -> None:
    found = load(tmp_path, COMPLETE, connections=[f"warehouse={url}"], environ={"PGUSER": "me", "HOME": "/nowhere"})
    connection = found.connections["warehouse"]
    assert isinstance(connection, PostgresConnection)
    assert connection.parameters.database == database
    assert connection.parameters.password == ("hunter2" if "hunter2" in url else None)
    assert found.secrets == ({"hunter2"} if "hunter2" in url else set())
    assert "hunter2" not in json.dumps(describe(found)) + repr(found)


def test_ledger_and_lock_timeout_of_the_package_hold_for_another_server(tmp_path: Path) -> None:
    text = package('url: "${env:NOT_SET}", lock_timeout_seconds: 5, ledger: {schema: etl}')
    found = load(tmp_path, text, connections=["warehouse=postgresql://h/d"], environ={"PGUSER": "me"})
    connection = found.connections["warehouse"]
    assert isinstance(connection, PostgresConnection)
    assert (connection.lock_timeout_seconds, connection.ledger_schema) == (5, "etl")


def test_a_wrong_string_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(CommandLineError) as caught:
        load(tmp_path, COMPLETE, connections=["warehouse=postgresql://u:hunter2@h:x/d"], environ={})
    assert_snapshot("postgres_command_line", caught.value.render())


def test_a_source_cannot_be_a_server(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="a source cannot use the connection `inbox`"):
        load(tmp_path, change("{type: files, path: data}", "{type: postgres}"), environ=ENVIRON)
