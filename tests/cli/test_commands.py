"""Every command on real data: what it prints, its JSON document, its exit code, what it leaves behind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace.run as run_package
from headrace.cli import demo
from headrace.tpch import TABLES
from headrace.tpch.verify import TableCheck
from tests.cli.conftest import CommandLine
from tests.cli.filters import stable
from tests.snapshots import assert_snapshot

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "tpch" / "load.yaml")
SCALE = "0.001"

PACKAGE = """\
headrace: 1
package: small
connections:
  here:      {type: files, path: .}
  warehouse: {type: duckdb, path: small.duckdb}
layouts:
  orders:
    delimiter: ";"
    header: skip
    columns:
      - {name: id, type: int32, nullable: false}
      - {name: day, type: date}
      - {name: amount, type: "decimal(12,2)"}
tasks:
  load_orders:
    data_flow:
      rejects: {limit: 1}
      sources:
        orders: {connection: here, files: "orders*.csv", layout: orders}
      destinations:
        loaded: {input: orders, connection: warehouse, table: orders, target: replace, load: single}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of the command; the machine has two processors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1}, raising=False)
    yield tmp_path


@pytest.fixture(scope="session")
def tpch_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H files at a small scale, four chunks."""
    import threading

    from headrace.tpch.generate import GenerateRequest, generate

    data = tmp_path_factory.mktemp("tpch")
    generate(GenerateRequest(data, float(SCALE), chunks=4), threading.Event(), lambda _written, _expected: None)
    return data


def write_small(folder: Path, rows: str) -> None:
    (folder / "small.yaml").write_text(PACKAGE)
    (folder / "orders.csv").write_text(f"id;day;amount\n{rows}")


def document(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


def test_generate(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("generate", "tpch", "--scale", SCALE, "--chunks", "2", "--out", "data")
    assert outcome.exit_code == 0
    names = {path.name for path in (folder / "data").iterdir()}
    chunked = {f"{table}.tbl.{number}" for table in TABLES if table not in ("nation", "region") for number in (1, 2)}
    assert names == chunked | {"nation.tbl", "region.tbl"}
    assert_snapshot("generate", stable(outcome.text(), folder))


def test_generate_one_chunk_as_json(headrace: CommandLine, folder: Path) -> None:
    arguments = ["--scale", SCALE, "--chunks", "3", "--chunk", "2", "--tables", "orders,lineitem", "--out", "data"]
    outcome = headrace("generate", "tpch", *arguments, "--json", "--quiet")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    files = document(outcome.stdout)["files"]
    assert {Path(file["path"]).name for file in files} == {"orders.tbl.2", "lineitem.tbl.2"}
    for file in files:
        content = Path(file["path"]).read_bytes()
        assert (len(content), content.count(b"\n")) == (file["bytes"], file["rows"])


def test_generate_beside_files_of_another_number_of_chunks_is_refused(headrace: CommandLine, folder: Path) -> None:
    (folder / "orders.tbl.9").touch()
    outcome = headrace("generate", "tpch", "--scale", SCALE, "--chunks", "2", "--tables", "orders", "--out", ".")
    assert outcome.exit_code == 1
    assert_snapshot("generate_other_chunks", outcome.text().replace(str(folder), "FOLDER"))


def test_generate_into_a_file_is_refused(headrace: CommandLine, folder: Path) -> None:
    (folder / "data").touch()
    outcome = headrace("generate", "tpch", "--scale", SCALE, "--out", "data")
    assert outcome.exit_code == 1
    assert_snapshot("generate_into_a_file", outcome.text().replace(str(folder), "FOLDER"))
    as_json = document(headrace("generate", "tpch", "--scale", SCALE, "--out", "data", "--json").stdout)
    assert as_json["error"]["kind"] == "output"


def test_check(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", EXAMPLE, "--set", "data=data", "--set", "tables=orders,region")
    assert outcome.exit_code == 0
    assert_snapshot("check", stable(outcome.text(), folder, ROOT))
    as_json = document(headrace("check", EXAMPLE, "--set", "data=data", "--json").stdout)
    assert as_json["status"] == "success"
    assert as_json["package"] == "tpch-load"


SHOWN = """\
headrace: 1
package: shown
parameters:
  full: {type: boolean, default: false}
  none: {type: date}
  note: {type: string, default: ""}
  days: {type: list, items: date, default: [2026-01-30, 2026-01-31]}
  flags: {type: list, items: boolean, default: [true]}
connections:
  here: {type: files, path: "two words"}
  nowhere: {type: "null"}
  server: {type: postgres, url: "${env:SERVER_URL}", database: it's, user: me, sslmode: disable}
layouts:
  one: {delimiter: ";", columns: [{name: id, type: int32}]}
tasks:
  each:
    foreach:
      item: key
      in: ["${env:API_KEY}", plain]
      tasks:
        load:
          data_flow:
            sources: {rows: {connection: here, files: "*", layout: one}}
            destinations:
              out: {input: rows, connection: nowhere, table: "${key}", target: replace, load: single}
"""


def test_check_shows_values_as_they_are_written_and_no_secret(
    headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "hunter2secret")
    monkeypatch.setenv("SERVER_URL", "postgresql://:hunter2%21word@db:6")
    (folder / "shown.yaml").write_text(SHOWN)
    outcome = headrace("check", "shown.yaml", "--set", "note=a b\x1b[31m\nc")
    assert outcome.exit_code == 0
    assert "hunter2" not in outcome.text()
    assert_snapshot("check_shown", stable(outcome.text(), folder))
    assert headrace("check", "shown.yaml", "--set", "full=true", "--set", "flags=true,false").exit_code == 0


def test_a_package_that_cannot_be_read(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    (folder / "secret.yaml").write_text(PACKAGE)
    monkeypatch.setattr(os, "access", lambda *_arguments, **_options: False)
    monkeypatch.setattr("headrace.model.load.read_document", refuse)
    outcome = headrace("check", "secret.yaml")
    assert outcome.exit_code == 5
    assert_snapshot("package_unreadable", outcome.text())


def test_a_folder_is_no_package(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("check", ".")
    assert outcome.exit_code == 5
    assert_snapshot("package_is_a_folder", outcome.text())


def test_check_reports_every_problem(headrace: CommandLine, folder: Path) -> None:
    (folder / "wrong.yaml").write_text(
        PACKAGE.replace("delimiter", "delimeter").replace("load: single", "laod: single")
    )
    outcome = headrace("check", "wrong.yaml")
    assert outcome.exit_code == 5
    assert_snapshot("check_problems", outcome.text())
    problems = document(headrace("check", "wrong.yaml", "--json").stdout)["error"]["problems"]
    assert problems[0]["file"] == "wrong.yaml" and problems[0]["line"] > 1


def test_plan(headrace: CommandLine, folder: Path, tpch_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.cli.console.DEFAULT_WIDTH", 300)  # long temporary paths must not wrap lines
    arguments = [EXAMPLE, "--set", f"data={tpch_data}", "--set", "tables=orders,region"]
    arguments += ["--connection", "warehouse=duckdb:new.duckdb"]
    outcome = headrace("plan", *arguments)
    assert outcome.exit_code == 0
    assert_snapshot("plan", stable(outcome.text(), tpch_data, folder))
    as_json = document(headrace("plan", *arguments, "--json").stdout)
    assert [task["table"] for task in as_json["tasks"]] == ["orders", "region"]
    assert not list(folder.iterdir()), "a plan creates nothing"


def test_plan_of_a_generated_source(headrace: CommandLine, folder: Path) -> None:
    sources = 'orders: {connection: here, files: "orders*.csv", layout: orders}'
    generated = "orders: {generate: {tpch: region, scale: 1}, layout: orders}"
    assert sources in PACKAGE
    columns = "{name: id, type: int32}, {name: name, type: string}, {name: comment, type: string}"
    text = re.sub(r"columns:\n(      - .*\n)+", f"columns: [{columns}]\n", PACKAGE.replace(sources, generated))
    (folder / "generated.yaml").write_text(text)
    outcome = headrace("plan", "generated.yaml", "--connection", "warehouse=null:")
    assert outcome.exit_code == 0
    assert_snapshot("plan_generated", stable(outcome.text(), folder))


def test_run(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "1;2026-01-30;120.50\n2;2026-01-31;80.00\n")
    outcome = headrace("run", "small.yaml")
    assert outcome.exit_code == 0
    assert_snapshot("run", stable(outcome.text(), folder))
    (run_folder,) = (folder / ".headrace" / "runs").iterdir()
    assert document((run_folder / "summary.json").read_text())["rows_loaded"] == 2
    with duckdb.connect("small.duckdb", read_only=True) as connection:
        assert connection.sql("SELECT sum(amount)::VARCHAR FROM orders").fetchall() == [("200.50",)]


def test_run_as_json_and_quiet(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "1;2026-01-30;120.50\n")
    outcome = headrace("run", "small.yaml", "--json", "--quiet", "--streams", "2", "--runs-dir", "runs")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    summary = document(outcome.stdout)
    (run_folder,) = (folder / "runs").iterdir()
    assert summary == document((run_folder / "summary.json").read_text())
    members = {"run_id", "status", "seconds", "phases", "bytes_read", "rows_read", "rows_skipped", "rows_loaded"}
    assert members | {"rows_rejected", "rows_filtered", "tables", "streams", "limit"} <= summary.keys()


def test_run_with_a_rejected_row_within_the_limit(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "1;2026-01-30;120.50\n2;2026-02-30;80.00\n")
    outcome = headrace("run", "small.yaml")
    assert outcome.exit_code == 0
    assert_snapshot("run_with_reject", stable(outcome.text(), folder))


def test_run_over_the_reject_limit(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "1;2026-01-32;120.50\n2;2026-02-30;80.00\n3;2026-01-01;1\n")
    outcome = headrace("run", "small.yaml")
    assert outcome.exit_code == 1
    assert_snapshot("run_over_the_limit", stable(outcome.text(), folder))
    as_json = headrace("run", "small.yaml", "--json")
    assert as_json.exit_code == 1
    assert document(as_json.stdout)["error"]["kind"] == "reject_limit"


def test_run_without_files(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "")
    (folder / "orders.csv").unlink()
    outcome = headrace("run", "small.yaml")
    assert outcome.exit_code == 1
    assert_snapshot("run_without_files", stable(outcome.text(), folder))


def test_run_into_a_folder_that_does_not_exist(headrace: CommandLine, folder: Path) -> None:
    write_small(folder, "1;2026-01-30;120.50\n")
    outcome = headrace("run", "small.yaml", "--connection", "warehouse=duckdb:none/x.duckdb", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("run_into_no_folder", stable(outcome.text(), folder))


def test_a_defect_inside_a_run_is_saved_in_its_folder(
    headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **options: Any) -> None:
        (folder / "run").mkdir()
        options["listener"]({"event": "run_started", "run_folder": str(folder / "run")})
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(run_package, "execute", broken)
    write_small(folder, "")
    outcome = headrace("run", "small.yaml", "--quiet")
    (saved,) = (folder / "run").iterdir()
    assert outcome.exit_code == 1
    assert "Traceback" in saved.read_text()
    assert_snapshot("run_defect", outcome.text().replace(str(saved), "FILE"))


def test_demo(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("demo", "--scale", SCALE, "--chunks", "2", "--streams", "2")
    assert outcome.exit_code == 0
    text = stable(outcome.text(), folder, ROOT)
    assert_snapshot("demo", re.sub(r"^  \S.* (plan|run) \S+ ", r"  headrace \1 PACKAGE ", text, flags=re.MULTILINE))
    with duckdb.connect("demo/tpch.duckdb", read_only=True) as connection:
        tables = {
            row[0]
            for row in connection.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        }
    assert tables == set(TABLES)


def test_demo_again_with_fewer_chunks_as_json(headrace: CommandLine, folder: Path) -> None:
    assert headrace("demo", "--scale", SCALE, "--chunks", "3", "--folder", "d", "--quiet").exit_code == 0
    outcome = headrace("demo", "--scale", SCALE, "--chunks", "2", "--folder", "d", "--quiet", "--json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    result = document(outcome.stdout)
    assert result["status"] == "success"
    assert all(check["equal"] for check in result["verified"]) and len(result["verified"]) == 8
    assert not list((folder / "d" / "data").glob("*.tbl.3"))


def test_demo_that_finds_a_difference_fails(
    headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    different = TableCheck("orders", 1500, 1501, 1, 2, {"o_custkey": ("BIGINT", "INTEGER")})
    monkeypatch.setattr(demo, "verify_tables", lambda *_arguments, **_options: iter([different]))
    outcome = headrace("demo", "--scale", SCALE, "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("demo_difference", outcome.stderr)
    as_json = headrace("demo", "--scale", SCALE, "--quiet", "--json")
    assert as_json.exit_code == 1
    result = document(as_json.stdout)
    assert (result["status"], result["error"]["kind"]) == ("failed", "accounts")
    assert [check["equal"] for check in result["verified"]] == [False]


def test_demo_into_a_file_is_refused(headrace: CommandLine, folder: Path) -> None:
    (folder / "demo").touch()
    outcome = headrace("demo")
    assert outcome.exit_code == 6
    assert_snapshot("demo_into_a_file", outcome.text())


@pytest.mark.parametrize("wrong", ["--scale=0", "--scale=nan", "--chunks=100001", "--streams=1025"])
def test_a_demo_with_a_wrong_command_line_deletes_nothing(headrace: CommandLine, folder: Path, wrong: str) -> None:
    assert headrace("demo", "--scale", SCALE, "--chunks", "2", "--quiet").exit_code == 0
    before = sorted(folder.rglob("*"))
    assert headrace("demo", wrong).exit_code == 6
    assert sorted(folder.rglob("*")) == before


def test_a_demo_does_not_touch_the_files_of_others(headrace: CommandLine, folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "orders.tbl").write_text("precious")
    outcome = headrace("demo", "--folder", ".", "--scale", SCALE)
    assert outcome.exit_code == 6
    assert_snapshot("demo_files_of_others", outcome.text())
    assert (folder / "data" / "orders.tbl").read_text() == "precious"
    assert [path.name for path in folder.rglob("*")] == ["data", "orders.tbl"]


def test_a_demo_deletes_only_files_that_it_wrote(headrace: CommandLine, folder: Path) -> None:
    assert headrace("demo", "--scale", SCALE, "--chunks", "1", "--quiet").exit_code == 0
    own = folder / "demo" / "data" / "orders.tbl.7"
    own.write_text("precious")
    outcome = headrace("demo", "--scale", SCALE, "--chunks", "2")
    assert outcome.exit_code == 6
    assert_snapshot("demo_foreign_data", outcome.text())
    assert own.read_text() == "precious" and (folder / "demo" / "data" / "orders.tbl").exists()


def test_a_demo_in_a_folder_that_cannot_be_made(headrace: CommandLine, folder: Path) -> None:
    (folder / "file").touch()
    outcome = headrace("demo", "--folder", "file/demo", "--scale", SCALE)
    assert outcome.exit_code == 1
    assert_snapshot("demo_no_folder", outcome.text())


@pytest.mark.parametrize("of", ["package", "layout"])
def test_schema(headrace: CommandLine, of: str) -> None:
    outcome = headrace("schema", of)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert document(outcome.stdout)["$schema"].startswith("https://json-schema.org/")
