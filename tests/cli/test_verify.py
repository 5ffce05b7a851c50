"""`headrace verify`: what it prints about equal, different and other tables, and what it refuses."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.cli.conftest import CommandLine, Outcome
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: verified
connections:
  here:      {type: files, path: .}
  warehouse: {type: duckdb, path: verified.duckdb}
layouts:
  orders:
    delimiter: ";"
    columns:
      - {name: id, type: int32, nullable: false}
      - {name: day, type: date}
      - {name: amount, type: "decimal(12,2)"}
      - {name: note, type: string}
tasks:
  load:
    foreach:
      item: name
      in: [orders, archive]
      tasks:
        load:
          data_flow:
            rejects: {limit: 1}
            sources:
              rows: {connection: here, files: "${name}.csv", layout: orders}
            destinations:
              loaded:
                input: rows
                connection: warehouse
                table: ${name}
                target: {expr: "if(name = 'archive', 'append', 'replace')"}
"""
ORDERS = "1;2026-01-30;120.50;a\n2;2026-01-31;80.00;\nx;;;\n3;;-0.5;Äpfel\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the command, with a package and its files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.yaml").write_text(PACKAGE)
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "archive.csv").write_text("1;;;\n")
    return tmp_path


def change(statement: str) -> None:
    with duckdb.connect("verified.duckdb") as connection:
        connection.execute(statement)


def load(headrace: CommandLine, *arguments: str) -> None:
    outcome = headrace("run", "load.yaml", "--quiet", *arguments)
    assert outcome.exit_code == 0, outcome.stderr


def stable(outcome: Outcome, folder: Path) -> str:
    """The output without run ids and paths; unlike in other commands every number must be what it is."""
    return re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN", outcome.text().replace(str(folder), "FOLDER"))


def document(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


def test_equal_tables(headrace: CommandLine, folder: Path) -> None:
    load(headrace)
    before = sorted(folder.rglob("*"))
    outcome = headrace("verify")
    assert outcome.exit_code == 0
    assert sorted(folder.rglob("*")) == before, "a verification leaves nothing behind"
    assert_snapshot("verify", stable(outcome, folder))
    as_json = document(headrace("verify", "--json", "--quiet").stdout)
    assert (as_json["status"], as_json["error"]) == ("success", None)
    orders, archive = as_json["tables"]
    assert (orders["status"], orders["rows_in_source"], orders["rows_rejected"]) == ("equal", 3, 1)
    assert orders["columns"][2] == {"column": "amount", "compared": ["nulls", "sum", "min", "max"], "equal": True}
    assert (archive["status"], archive["rows_in_table"]) == ("not_comparable", None)


def test_instants_that_their_offset_moves_out_of_the_calendar(headrace: CommandLine, folder: Path) -> None:
    """A database calls the year before the first one 1 BC."""
    (folder / "load.yaml").write_text(PACKAGE.replace("name: day, type: date", "name: day, type: timestamptz"))
    (folder / "orders.csv").write_text("1;0001-01-01 00:00:00.5+01:00;;\n2;9999-12-31 23:59:59-01:00;;\n")
    load(headrace)
    assert headrace("verify", "--quiet").exit_code == 0
    change("UPDATE orders SET day = day + INTERVAL 1 MICROSECOND WHERE id = 1")
    assert headrace("verify", "--quiet").exit_code == 1


def test_different_tables(headrace: CommandLine, folder: Path) -> None:
    load(headrace)
    change("UPDATE orders SET amount = 120.51, note = NULL, day = '2026-01-29' WHERE id = 1")
    change("DELETE FROM orders WHERE id = 3")
    outcome = headrace("verify", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("verify_different", stable(outcome, folder))
    as_json = headrace("verify", "--quiet", "--json")
    assert as_json.exit_code == 1
    found = document(as_json.stdout)
    assert (found["status"], found["error"]["kind"]) == ("failed", "difference")
    assert {"column": "amount", "aggregate": "sum", "source": "200.00", "target": "200.51"} in (
        found["tables"][0]["differences"]
    )


def test_a_table_that_is_gone(headrace: CommandLine, folder: Path) -> None:
    load(headrace)
    change("DROP TABLE orders")
    outcome = headrace("verify", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("verify_no_table", stable(outcome, folder))


def test_nothing_that_could_be_compared(headrace: CommandLine, folder: Path) -> None:
    load(headrace, "--connection", "warehouse=null:")
    outcome = headrace("verify", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("verify_nothing", stable(outcome, folder))


def test_the_last_success_or_the_run_that_is_named(headrace: CommandLine, folder: Path) -> None:
    load(headrace)
    (first,) = (folder / ".headrace" / "runs").iterdir()
    (folder / "orders.csv").write_text(ORDERS.replace("2;", "y;"))
    assert headrace("run", "load.yaml", "--quiet").exit_code == 1
    (folder / "orders.csv").write_text(ORDERS)
    os.utime("orders.csv", ns=(0, 0))
    changed = headrace("verify", "--quiet")
    assert changed.exit_code == 1
    assert_snapshot("verify_changed_file", stable(changed, folder))
    (failed,) = (path for path in first.parent.iterdir() if path != first)
    refused = headrace("verify", failed.name, "--quiet")
    assert refused.exit_code == 6
    assert_snapshot("verify_failed_run", stable(refused, folder))
    load(headrace)
    (good,) = (path for path in first.parent.iterdir() if path not in (first, failed))
    for name in ("last", good.name, str(good)):
        assert f"run {good.name}: 1 of 2 tables equal" in headrace("verify", name, "--quiet").stdout


def test_a_changed_package_is_refused(headrace: CommandLine, folder: Path) -> None:
    load(headrace)
    (folder / "load.yaml").write_text(PACKAGE.replace("limit: 1", "limit: 2"))
    outcome = headrace("verify", "--quiet")
    assert outcome.exit_code == 5
    assert_snapshot("verify_changed_package", stable(outcome, folder))


def test_no_run(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("verify")
    assert outcome.exit_code == 6
    assert_snapshot("verify_no_run", stable(outcome, folder))


def test_a_secret_has_to_be_given_again_and_is_never_shown(
    headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hunter2secret")
    text = PACKAGE.replace("path: verified.duckdb", 'path: "${env:KEY}.duckdb"')
    (folder / "load.yaml").write_text(text)
    load(headrace)
    with duckdb.connect("hunter2secret.duckdb") as connection:
        connection.execute("DROP TABLE orders")
    outcome = headrace("verify")
    assert outcome.exit_code == 1
    assert "hunter2" not in outcome.text()
