"""`headrace init`: from unknown files to a loaded table."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import duckdb
import pytest

from headrace import model
from tests.cli.conftest import CommandLine
from tests.snapshots import assert_snapshot


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: files of two kinds, and one whose name is difficult."""
    monkeypatch.chdir(tmp_path)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in (1, 2, 10):
        (inbox / f"orders_{number}.csv").write_text(f"id;day;amount\n{number};31/12/2025;1,5\n{number + 100};;12\n")
    (inbox / "customers.csv").write_text('id,name\n1,"Smith, Ada"\n2,\n')
    (inbox / "we[ir]d ${x}.csv").write_text("id|when\n1|03/04/2026\n")
    return tmp_path


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted((folder / "inbox").iterdir())]


def without_seconds(text: str) -> str:
    return re.sub(r"in [0-9.]+ s", "in N s", text)


def test_files_become_a_package_that_loads_them(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("init", *files(folder), "--folder", "sales")
    assert outcome.exit_code == 0
    assert_snapshot("init", without_seconds(outcome.text()))
    made = sorted(path for path in (folder / "sales").rglob("*") if path.is_file())
    parts = [f"--- {path.relative_to(folder)}\n{path.read_text()}" for path in made]
    assert_snapshot("init_files", "\n".join(parts).replace(str(folder), "FOLDER"))
    assert headrace("run", "sales/package.yaml", "--quiet").exit_code == 0
    with duckdb.connect(str(folder / "sales" / "sales.duckdb"), read_only=True) as database:
        tables = {
            table: database.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
            for table in ("orders", "customers", "we_ir_d_x")
        }
    assert len(tables["orders"]) == 6
    assert tables["customers"] == [(1, "Smith, Ada"), (2, None)]
    assert tables["we_ir_d_x"] == [(1, "03/04/2026")]


def test_nothing_is_overwritten(folder: Path, headrace: CommandLine) -> None:
    (folder / "layouts").mkdir()
    (folder / "layouts" / "orders.yaml").write_text("mine")
    outcome = headrace("init", "inbox/orders_1.csv")
    assert outcome.exit_code == 1
    assert_snapshot("init_existing", outcome.text())
    assert not (folder / "package.yaml").exists()
    (folder / "package.yaml").write_text("mine")
    assert_snapshot("init_existing_package", headrace("init", "inbox/customers.csv").text())
    assert (folder / "package.yaml").read_text() == "mine"


def test_a_destination_of_its_own_is_created_only(folder: Path, headrace: CommandLine) -> None:
    url = "postgresql://loader@db.example/${env:DATABASE}"
    assert headrace("init", "inbox/customers.csv", "--to", url, "--package", "My Data!").exit_code == 0
    assert_snapshot("init_postgres", (folder / "package.yaml").read_text())
    environ = {**os.environ, "DATABASE": "x"}
    model.load_package(folder / "package.yaml", sets=[], connections=[], streams=None, environ=environ)


@pytest.mark.parametrize(
    ("name", "to"),
    [("password", "postgresql://me:secret-word@db/x"), ("scheme", "mysql://x"), ("no_scheme", "warehouse")],
)
def test_destinations_that_are_refused(name: str, to: str, folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("init", "inbox/customers.csv", "--to", to)
    assert outcome.exit_code == 6
    assert "secret-word" not in outcome.text()
    assert_snapshot(f"init_{name}", outcome.text())
    assert not (folder / "package.yaml").exists()


def test_a_file_that_is_no_table_stops_it(folder: Path, headrace: CommandLine) -> None:
    (folder / "inbox" / "x.json").write_text("{}\n")
    outcome = headrace("init", "inbox/customers.csv", "inbox/x.json")
    assert outcome.exit_code == 1
    assert not (folder / "package.yaml").exists()


def test_json(folder: Path, headrace: CommandLine) -> None:
    document = json.loads(headrace("init", *files(folder), "--folder", "sales", "--json").stdout)
    assert document["files"][-1] == "sales/package.yaml"
    assert {table["table"]: table["rows"] for table in document["tables"]} == {
        "customers": 2,
        "orders": 6,
        "we_ir_d_x": 1,
    }
