"""`headrace rejects`: what it prints about the rows that a run has rejected, what it writes, what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headrace.cli.cells import cells
from tests.cli.conftest import CommandLine, Outcome
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: rejecting
connections:
  here:      {type: files, path: .}
  warehouse: {type: duckdb, path: rejecting.duckdb}
layouts:
  orders:
    delimiter: ";"
    qualifier: '"'
    columns:
      - {name: id, type: int32, nullable: false}
      - {name: day, type: date}
      - {name: a_long_name_of_a_column_of_texts, type: varchar(10)}
tasks:
  load:
    foreach:
      item: name
      in: [orders, archive, items]
      tasks:
        load:
          data_flow:
            rejects: {limit: 6}
            sources:
              rows: {connection: here, files: "${name}*.csv", layout: orders}
            destinations:
              loaded: {input: rows, connection: warehouse, table: "${name}", target: replace}
"""
FIRST = '1;2026-01-30;a\n2;2026-02-30;b\n3;30.01.2026;"c\nd"\nx;2026-01-30;\n'
SECOND = "5;;\n6;2026-02-31;e\n7;;a text that is longer than ten characters, and than the line\n8;;;9"
ARCHIVE = "1;;\nx;;\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the command, with a package and its files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.yaml").write_text(PACKAGE)
    (tmp_path / "orders_1.csv").write_text(FIRST)
    (tmp_path / "orders_2.csv").write_text(SECOND)
    (tmp_path / "archive.csv").write_text(ARCHIVE)
    (tmp_path / "items.csv").write_text("1;;\n")
    return tmp_path


@pytest.fixture
def loaded(headrace: CommandLine, folder: Path) -> Path:
    """The same behind a run."""
    outcome = headrace("run", "load.yaml", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    return folder


def stable(outcome: Outcome, folder: Path) -> str:
    return re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN", outcome.text().replace(str(folder), "FOLDER"))


def run_folder(folder: Path) -> Path:
    return max((folder / ".headrace" / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def document(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


def test_all_rejects(headrace: CommandLine, loaded: Path) -> None:
    before = sorted(loaded.rglob("*"))
    outcome = headrace("rejects")
    assert outcome.exit_code == 0
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert_snapshot("rejects", stable(outcome, loaded))
    assert sorted(loaded.rglob("*")) == before, "looking leaves nothing behind"


@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "table": ["--table", "archive"],
        "rule": ["--rule", "bad_date", "--first", "0"],
        "code": ["--rule", "HR301", "--first", "1"],
        "column": ["--column", "day", "--first", "5"],
        "no_such_table": ["--table", "order"],
        "table_without_rejects": ["--table", "items"],
        "no_such_rule": ["--rule", "bad_dates"],
        "no_such_column": ["--column", "days"],
        "neither": ["--table", "archive", "--column", "day"],
    }.items(),
)
def test_chosen_rejects(headrace: CommandLine, loaded: Path, name: str, arguments: list[str]) -> None:
    outcome = headrace("rejects", *arguments)
    assert outcome.exit_code == (6 if name.startswith("no") or name in ("neither", "table_without_rejects") else 0)
    assert_snapshot(f"rejects_{name}", stable(outcome, loaded))


def test_as_json(headrace: CommandLine, loaded: Path) -> None:
    orders, archive = document(headrace("rejects", "--json", "--first", "100").stdout)["tables"]
    assert (orders["table"], orders["rows"], orders["rejected"]) == ("orders", 8, 6)
    assert sum(kind["count"] for kind in orders["by_column"]) == sum(orders["by_rule"].values()) == 6
    assert [(Path(reject["file"]).name, reject["row"]) for reject in orders["first"]] == [
        ("orders_1.csv", 2),
        ("orders_1.csv", 3),
        ("orders_1.csv", 4),
        ("orders_2.csv", 2),
        ("orders_2.csv", 3),
        ("orders_2.csv", 4),
    ]
    assert [Path(path).name for path in archive["files"]] == ["archive.jsonl", "archive.bad"]
    few = document(headrace("rejects", "--json").stdout)["tables"][0]["first"]
    assert few == orders["first"][:3], "the first of the summary are the first of the file"


def test_without_rejects(headrace: CommandLine, loaded: Path) -> None:
    (loaded / "orders_1.csv").write_text("1;;\n")
    (loaded / "orders_2.csv").unlink()
    (loaded / "archive.csv").write_text("1;;\n")
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    outcome = headrace("rejects", run_folder(loaded).name, "--table", "orders")
    assert_snapshot("rejects_none", stable(outcome, loaded))


def test_written_as_lines_and_as_parquet(headrace: CommandLine, loaded: Path) -> None:
    (loaded / "archive.csv").write_text('1;;\n"\ud83d\x00";;\n'.encode("utf-8", "surrogatepass").decode("latin-1"))
    outcome = headrace("rejects", "--out", "all.jsonl")
    assert_snapshot("rejects_out", outcome.stderr)
    lines = [json.loads(line) for line in (loaded / "all.jsonl").read_text().splitlines()]
    assert [(line["table"], line["number"]) for line in lines] == [("orders", n) for n in range(1, 7)] + [
        ("archive", 1)
    ]
    assert headrace("rejects", "--column", "day", "--out", "some.parquet").exit_code == 0
    with duckdb.connect() as connection:
        rows = connection.execute('SELECT number, "row", "column", value FROM "some.parquet"').fetchall()
    expected = [line for line in lines if line["column"] == "day"]
    assert rows == [(line["number"], line["row"], line["column"], line["value"]) for line in expected]
    assert {path.name for path in loaded.iterdir() if "unfinished" in path.name} == set()


def test_copied_to_be_repaired(headrace: CommandLine, loaded: Path) -> None:
    outcome = headrace("rejects", "--table", "orders", "--copy", "repair.csv")
    assert_snapshot("rejects_copy", outcome.stderr)
    assert (loaded / "repair.csv").read_text() == (
        '2;2026-02-30;b\n3;30.01.2026;"c\nd"\nx;2026-01-30;\n6;2026-02-31;e\n'
        "7;;a text that is longer than ten characters, and than the line\n8;;;9\n"
    )
    numbers = document((loaded / "repair.csv.numbers").read_text())
    assert numbers == {"run": run_folder(loaded).name, "task": "load[orders].load", "numbers": "1-6"}
    assert headrace("rejects", "--table", "orders", "--column", "day", "--copy", "days.csv").exit_code == 0
    assert (loaded / "days.csv").read_text() == '2;2026-02-30;b\n3;30.01.2026;"c\nd"\n6;2026-02-31;e\n'
    assert document((loaded / "days.csv.numbers").read_text())["numbers"] == "1-2,4"


@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "several_tables": ["--copy", "repair.csv"],
        "over_a_file": ["--table", "orders", "--copy", "orders_1.csv"],
        "no_folder": ["--table", "orders", "--copy", "nowhere/repair.csv"],
        "ending": ["--out", "rejects.csv"],
        "out_no_folder": ["--out", "nowhere/rejects.parquet"],
    }.items(),
)
def test_what_cannot_be_written(headrace: CommandLine, loaded: Path, name: str, arguments: list[str]) -> None:
    before = sorted(loaded.rglob("*"))
    outcome = headrace("rejects", *arguments)
    assert outcome.exit_code in (1, 6)
    assert_snapshot(f"rejects_cannot_{name}", stable(outcome, loaded))
    assert sorted(loaded.rglob("*")) == before


def test_a_run_that_failed(headrace: CommandLine, folder: Path) -> None:
    (folder / "archive.csv").write_text("x;;\n" * 8)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 1
    assert_snapshot("rejects_failed_run", stable(headrace("rejects", "--table", "archive"), folder))


def test_a_run_that_did_not_end(headrace: CommandLine, loaded: Path) -> None:
    own = run_folder(loaded)
    (own / "summary.json").unlink()
    (own / "rejects" / ".orders.slice-000001.jsonl").write_text("{}\n")
    outcome = headrace("rejects")
    assert outcome.exit_code == 1
    assert_snapshot("rejects_unfinished_run", stable(outcome, loaded))
    assert headrace("rejects", "nothing").exit_code == 6


@pytest.mark.parametrize(
    ("name", "damage"),
    {
        "row_missing": lambda path: (path / "orders.bad").write_bytes((path / "orders.bad").read_bytes()[:-3]),
        "row_added": lambda path: (path / "orders.bad").write_bytes((path / "orders.bad").read_bytes() + b"x;;\n" * 30),
        "line_missing": lambda path: (path / "orders.jsonl").write_text(
            (path / "orders.jsonl").read_text().partition("\n")[2]
        ),
        "line_cut": lambda path: (path / "orders.jsonl").write_text((path / "orders.jsonl").read_text()[:-30]),
        "line_other": lambda path: (path / "orders.jsonl").write_text("7\n"),
        "gone": lambda path: (path / "orders.jsonl").unlink(),
        "bytes_gone": lambda path: (path / "orders.bad").unlink(),
    }.items(),
)
def test_damaged_files(headrace: CommandLine, loaded: Path, name: str, damage: Any) -> None:
    damage(run_folder(loaded) / "rejects")
    before = sorted(loaded.rglob("*"))
    outcome = headrace("rejects", "--table", "orders", "--copy", "repair.csv")
    assert outcome.exit_code == 1
    assert_snapshot(f"rejects_damaged_{name}", stable(outcome, loaded))
    assert sorted(loaded.rglob("*")) == before, "no half of a copy"
    assert headrace("rejects").exit_code == 0, "the counts are those of the summary"


def test_a_row_that_was_too_long_to_keep(headrace: CommandLine, folder: Path) -> None:
    """The file of rejects is made as one would be of which a gigabyte was kept."""
    (folder / "orders_2.csv").write_text("9;x;\n")
    outcome = headrace("run", "load.yaml", "--quiet", "--json")
    run = document(outcome.stdout)["run_id"]
    path = folder / ".headrace" / "runs" / run / "rejects" / "orders.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[-1]["row_bytes"] += 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    outcome = headrace("rejects", "--table", "orders", "--copy", "repair.csv")
    assert_snapshot("rejects_copy_cut", outcome.stderr)
    assert document((folder / "repair.csv.numbers").read_text())["numbers"] == "1-3"


def test_values_that_do_not_fit_a_line(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide characters take two cells, control characters steer nothing, long values are cut."""
    monkeypatch.setenv("NO_COLOR", "1")
    wide = "\u6771\u4eac\u90fd\u5343\u4ee3\u7530\u533a" * 12
    rows = [
        f"x{wide};2026-01-30;wide",
        "2;\x1b[31mred\x1b[0m\x07\u202e;controls",
        f"3;{'9' * 5000};long",
        f"4;{'word ' * 40};words",
        f"5;2026-01-30;{wide}",
        "e\u0301;2026-01-30;combined",
    ]
    (folder / "orders_1.csv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    (folder / "orders_2.csv").unlink()
    outcome = headrace("run", "load.yaml", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    shown = headrace("rejects", "--first", "9")
    assert shown.exit_code == 0
    assert [line for line in shown.stdout.splitlines() if cells(line) > 80] == []
    assert not any(character < " " or character == "\u202e" for character in shown.stdout.replace("\n", ""))
    assert_snapshot("rejects_values", stable(shown, folder))
