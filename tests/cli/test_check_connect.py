"""`headrace check --connect` with destinations that need no server; tests/integration has a server."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import duckdb
import pytest

from tests.cli.conftest import CommandLine, Outcome
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: checked
connections:
  here:      {type: files, path: nowhere}
  warehouse: {type: duckdb, path: warehouse.duckdb}
layouts:
  one: {delimiter: ";", columns: [{name: id, type: int32}]}
tasks:
  load:
    data_flow:
      sources: {rows: {connection: here, files: "*", layout: one}}
      destinations: {out: {input: rows, connection: warehouse, table: rows, target: replace}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the command, with the package."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.yaml").write_text(PACKAGE)
    return tmp_path


def stable(outcome: Outcome, folder: Path) -> str:
    text = re.sub(r"[\d,]+ bytes", "N bytes", outcome.text().replace(str(folder), "FOLDER"))
    return text.replace(duckdb.__version__, "VERSION")


def test_a_file_that_is_not_there_yet(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", "load.yaml", "--connect")
    assert outcome.exit_code == 0
    assert_snapshot("check_connect_new", stable(outcome, folder))
    assert not (folder / "warehouse.duckdb").exists()


def test_a_file_with_the_table(headrace: CommandLine, folder: Path) -> None:
    with duckdb.connect("warehouse.duckdb") as connection:
        connection.execute("CREATE TABLE rows (id INTEGER)")
    before = (folder / "warehouse.duckdb").read_bytes()
    outcome = headrace("check", "load.yaml", "--connect", "--json")
    [found] = json.loads(outcome.stdout)["destinations"]
    assert (outcome.exit_code, found["status"], found["tables"], found["tables_found"]) == (0, "ready", 1, 1)
    assert (folder / "warehouse.duckdb").read_bytes() == before


def test_a_place_that_cannot_be_written(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    outcome = headrace("check", "load.yaml", "--connect", "--json")
    document = json.loads(outcome.stdout)
    [destination] = document["destinations"]
    assert (outcome.exit_code, document["status"], destination["status"]) == (1, "failed", "failed")
    assert destination["problems"] == [f"the user may not write {folder}"]
    assert_snapshot("check_connect_no_right", outcome.stderr.replace(str(folder), "FOLDER"))


def test_a_destination_that_cannot_be_opened(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", "load.yaml", "--connect", "--connection", "warehouse=duckdb:none/x.duckdb")
    assert outcome.exit_code == 1
    assert_snapshot("check_connect_no_folder", stable(outcome, folder))
    as_json = headrace("check", "load.yaml", "--connect", "--json", "--connection", "warehouse=duckdb:none/x.duckdb")
    document = json.loads(as_json.stdout)
    assert (as_json.exit_code, document["status"], document["error"]["kind"]) == (1, "failed", "target")


def test_nothing_is_stored(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", "load.yaml", "--connect", "--connection", "warehouse=null:")
    assert outcome.exit_code == 0
    assert_snapshot("check_connect_null", stable(outcome, folder))


def test_without_connect_nothing_is_opened(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", "load.yaml", "--json", "--connection", "warehouse=duckdb:none/x.duckdb")
    assert outcome.exit_code == 0
    assert "destinations" not in json.loads(outcome.stdout)
