"""Environments: what they give to a package, what is stronger, and every message about the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.model import BoundPackage, DuckdbConnection, PostgresConnection, describe, load_package
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE

FILE = """\
headrace: 1
environments:
  test:
    description: what testers see
    parameters: {day: 2025-06-30, tables: [orders]}
    connections: {warehouse: "duckdb:test.duckdb"}
  production:
    parameters: {day: "${env:DAY}"}
    connections:
      warehouse: {type: postgres, host: db, user: me, password: "${env:PRODUCTION_PASSWORD}", lock_timeout_seconds: 7}
"""
ENVIRON = {"DAY": "2025-12-31", "PRODUCTION_PASSWORD": "hunter2secret"}


def bound(
    folder: Path, name: str | None, file: str | None = FILE, environ: dict[str, str] | None = None, **options: Any
) -> BoundPackage:
    """The complete package in one of the environments of a file."""
    (folder / "package.yaml").write_text(COMPLETE)
    if file is not None:
        (folder / "environments.yaml").write_text(file)
    return load_package(
        folder / "package.yaml", environment=name, environ=ENVIRON if environ is None else environ, **options
    )


def said(folder: Path, name: str, file: str | None, environ: dict[str, str] | None = None) -> tuple[int, str]:
    with pytest.raises(HeadraceError) as raised:
        bound(folder, name, file, environ)
    text = raised.value.render().replace(f"{folder}/", "")
    assert "hunter2" not in text
    return raised.value.exit_code, text


def test_an_environment_is_stronger_than_the_package_and_weaker_than_the_command_line(tmp_path: Path) -> None:
    package = bound(tmp_path, "test", sets=["tables=returns"])
    assert (str(package.parameters["day"]), package.parameters["tables"]) == ("2025-06-30", ["returns"])
    assert package.given == {"day": True, "mode": False, "tables": True}
    assert package.flows[0].destination.connection == DuckdbConnection("warehouse", tmp_path / "test.duckdb")
    own = tmp_path / "own.duckdb"
    other = bound(tmp_path, "test", sets=["day=2020-01-01"], connections=[f"warehouse=duckdb:{own}"])
    assert str(other.parameters["day"]) == "2020-01-01"
    assert other.flows[0].destination.connection == DuckdbConnection("warehouse", own)


def test_secrets_of_the_chosen_environment_alone_are_needed_and_hidden(tmp_path: Path) -> None:
    bound(tmp_path, "test", environ={})
    package = bound(tmp_path, "production")
    connection = package.flows[0].destination.connection
    assert isinstance(connection, PostgresConnection) and connection.lock_timeout_seconds == 7
    assert str(package.parameters["day"]) == "2025-12-31"
    assert "hunter2secret" in package.secrets and "hunter2" not in str(describe(package))


def test_another_environment_is_another_package_to_resume(tmp_path: Path) -> None:
    hashes = [bound(tmp_path, name).content_hash for name in (None, "test", "production")]
    assert len(set(hashes)) == 3
    changed = FILE.replace("test.duckdb", "other.duckdb")
    assert bound(tmp_path, "production", changed).content_hash == hashes[2]
    assert bound(tmp_path, "test", changed).content_hash != hashes[1]


def environment(text: str) -> str:
    """A file with the environment `test`."""
    return f"headrace: 1\nenvironments:\n  test: {text}\n"


MESSAGES: dict[str, tuple[str, str | None]] = {
    "no_file": ("test", None),
    "unknown": ("tset", FILE),
    "not_yaml": ("test", "environments: [\n"),
    "empty": ("test", ""),
    "no_environments": ("test", "headrace: 1\n"),
    "newer_format": ("test", "headrace: 2\nenvironments: {}\n"),
    "unknown_key": ("test", environment("{paramters: {day: 2024-01-01}}")),
    "unknown_parameter": ("test", environment("{parameters: {dya: 2024-01-01}}")),
    "unknown_connection": ("test", environment("{connections: {warehose: 'duckdb:x.duckdb'}}")),
    "value_of_another_type": ("test", environment("{parameters: {day: soon}}")),
    "value_not_allowed": ("test", environment("{parameters: {mode: stagde}}")),
    "value_from_a_parameter": ("test", environment("{parameters: {day: '${mode}'}}")),
    "url_without_scheme": ("test", environment("{connections: {warehouse: x.duckdb}}")),
    "connection_without_type": ("test", environment("{connections: {warehouse: {path: x.duckdb}}}")),
    "connection_with_unknown_key": ("test", environment("{connections: {warehouse: {type: duckdb, paht: x}}}")),
    "connection_is_a_list": ("test", environment("{connections: {warehouse: [a]}}")),
    "variable_missing": ("production", FILE),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str, tmp_path: Path) -> None:
    chosen, file = MESSAGES[name]
    code, text = said(tmp_path, chosen, file, {})
    assert_snapshot(f"environment_{name}", f"exit code {code}\n{text}")
