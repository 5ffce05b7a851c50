"""`headrace replay`: rejects are loaded once, or dropped, or rejected again; what it prints and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.cli.conftest import CommandLine, Outcome
from tests.cli.filters import stable as without_times
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: replayed
parameters:
  table: {type: string, default: orders}
connections:
  here:      {type: files, path: .}
  warehouse: {type: duckdb, path: replayed.duckdb}
layouts:
  orders:
    delimiter: ";"
    qualifier: '"'
    header: skip
    columns:
      - {name: id, type: int32, nullable: false}
      - {name: day, type: date}
      - {name: note, type: varchar(10)}
tasks:
  load:
    data_flow:
      rejects: {limit: 6}
      sources:
        rows: {connection: here, files: "orders*.csv", layout: orders}
      destinations:
        loaded: {input: rows, connection: warehouse, table: "${table}", target: replace}
"""
SOURCE = 'id;day;note\n1;2026-01-30;a\n2;2026-02-30;b\n3;30.01.2026;"c\nd"\nx;2026-01-30;\n'
REPAIRED = '2;2026-02-28;b\n3;2026-01-30;"c\nd"\n4;2026-01-30;\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the command, with a package and its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.yaml").write_text(PACKAGE)
    (tmp_path / "orders.csv").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def copied(headrace: CommandLine, folder: Path) -> Path:
    """The same behind a run and with a copy of its rejects."""
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    assert headrace("rejects", "--copy", "repair.csv").exit_code == 0
    return folder


def shown(outcome: Outcome, folder: Path) -> str:
    text = without_times(outcome.text(), folder)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "THEN", text)


def rows(query: str = "SELECT id, day::VARCHAR, note FROM orders ORDER BY ALL") -> list[tuple[Any, ...]]:
    with duckdb.connect("replayed.duckdb", read_only=True) as connection:
        return connection.execute(query).fetchall()


def document(outcome: Outcome) -> dict[str, Any]:
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert isinstance(found, dict)
    return found


def accounts(headrace: CommandLine, run: str = "last") -> dict[str, int]:
    (table,) = document(headrace("rejects", run, "--json"))["tables"]
    found = {name: table[name] for name in ("open", "loaded", "rejected_again", "dropped", "unfinished", "rows_added")}
    assert table["rejected"] + found["rows_added"] == sum(found.values()) - found["rows_added"]
    return found


def begun_runs(folder: Path) -> list[str]:
    """In order; ids of the same second are in none."""
    requests = (folder / ".headrace" / "runs").glob("*/request.json")
    return [path.parent.name for path in sorted(requests, key=lambda path: path.stat().st_mtime_ns)]


def first_run(folder: Path) -> str:
    return begun_runs(folder)[0]


def test_repaired_rows_are_loaded_once(headrace: CommandLine, copied: Path) -> None:
    (copied / "repair.csv").write_text(REPAIRED)
    outcome = headrace("replay", "last", "repair.csv", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert_snapshot("replay", shown(outcome, copied))
    loaded = [(1, "2026-01-30", "a"), (2, "2026-02-28", "b"), (3, "2026-01-30", "c\nd"), (4, "2026-01-30", None)]
    assert rows() == loaded
    run = first_run(copied)
    assert accounts(headrace, run) == {
        "open": 0,
        "loaded": 3,
        "rejected_again": 0,
        "dropped": 0,
        "unfinished": 0,
        "rows_added": 0,
    }
    assert_snapshot("replay_rejects_behind_it", shown(headrace("rejects", run), copied))
    again = headrace("replay", "last", "repair.csv", "--quiet")
    assert again.exit_code == 1
    assert_snapshot("replay_twice", shown(again, copied))
    (copied / "repair.csv").write_text(REPAIRED.replace("02-28", "02-27"))
    assert headrace("replay", run, "repair.csv", "--quiet").exit_code == 1, "a changed file is the same rejects"
    assert rows() == loaded
    assert_snapshot("replay_nothing_to_verify", shown(headrace("verify", "--quiet"), copied))
    refused = headrace("verify", begun_runs(copied)[1], "--quiet").stderr
    assert "is a replay: its rows are beside those of another run" in refused
    assert "resume" not in refused
    assert headrace("rejects", run, "--copy", "left.csv").exit_code == 0
    assert (copied / "left.csv").read_bytes() == b"", "nothing is open"


def test_the_note_of_a_copy_says_of_which_table_it_is(headrace: CommandLine, folder: Path) -> None:
    """The commands of the how-to, with rejects of a second table in the run."""
    more = PACKAGE.partition("tasks:\n")[2].replace("load:", "again:", 1).replace("${table}", "others")
    (folder / "load.yaml").write_text(PACKAGE + more)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    assert headrace("rejects", "last", "--table", "others", "--copy", "repair.csv").exit_code == 0
    (folder / "repair.csv").write_text(REPAIRED)
    assert document(headrace("replay", "last", "repair.csv", "--json"))["replay"]["loaded"] == 3
    assert rows("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM others)") == [(1, 4)]


def test_rows_that_are_rejected_again_and_replayed_again(headrace: CommandLine, copied: Path) -> None:
    (copied / "repair.csv").write_text(REPAIRED.replace("2026-02-28", "2026-02-29"))
    found = document(headrace("replay", "last", "repair.csv", "--quiet", "--json"))
    assert found["replay"] == {
        "of_run": first_run(copied),
        "numbers": 3,
        "loaded": 2,
        "rejected_again": 1,
        "filtered": 0,
        "dropped": 0,
        "rows_added": 0,
        "open": 0,
    }
    assert headrace("rejects", "--copy", "again.csv").exit_code == 0
    assert (copied / "again.csv").read_text() == "2;2026-02-29;b\n"
    (copied / "again.csv").write_text("2;2026-02-28;b\n")
    outcome = headrace("replay", found["run_id"], "again.csv", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(rows()) == 4
    assert accounts(headrace, first_run(copied))["rejected_again"] == 1


def test_the_limit_of_a_replay(headrace: CommandLine, copied: Path) -> None:
    outcome = headrace("replay", "last", "repair.csv", "--limit", "2", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("replay_over_its_limit", shown(outcome, copied))
    assert len(rows()) == 1
    assert accounts(headrace, first_run(copied))["unfinished"] == 3
    assert_snapshot("replay_unfinished", shown(headrace("rejects", first_run(copied)), copied))
    (copied / "repair.csv").write_text(REPAIRED)
    assert headrace("replay", first_run(copied), "repair.csv", "--quiet").exit_code == 0, "it blocks no corrected file"
    assert accounts(headrace, first_run(copied))["unfinished"] == 0
    resumed = headrace("resume", "--quiet")
    assert resumed.exit_code == 1
    assert_snapshot("replay_resumed_too_late", shown(resumed, copied))
    assert len(rows()) == 4


def test_emptied_rows_are_dropped(headrace: CommandLine, copied: Path) -> None:
    (copied / "repair.csv").write_text("2;2026-02-28;b\n\n4;2026-01-30;\n\n\n")
    found = document(headrace("replay", "last", "repair.csv", "--quiet", "--json"))["replay"]
    assert (found["numbers"], found["loaded"], found["dropped"], found["open"]) == (3, 2, 1, 0)
    assert [row[0] for row in rows()] == [1, 2, 4]
    claims = rows("SELECT first_number, last_number, action, of_run <> run_id FROM headrace.replay ORDER BY ALL")
    assert claims == [(1, 1, "load", True), (2, 2, "drop", True), (3, 3, "load", True)]


def test_dropped_without_a_file(headrace: CommandLine, copied: Path) -> None:
    outcome = headrace("replay", "last", "--drop", "1,3", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert_snapshot("replay_drop", shown(outcome, copied))
    assert len(rows()) == 1
    assert headrace("rejects", first_run(copied), "--copy", "left.csv").exit_code == 0
    assert (copied / "left.csv").read_text() == '3;30.01.2026;"c\nd"\n'
    assert json.loads((copied / "left.csv.numbers").read_text())["numbers"] == "2"
    again = headrace("replay", first_run(copied), "--drop", "3", "--quiet")
    assert_snapshot("replay_drop_twice", shown(again, copied))


def test_some_rows_by_their_numbers(headrace: CommandLine, copied: Path) -> None:
    (copied / "some.csv").write_text("\ufeff4;2026-01-30;\r\n", encoding="utf-8", newline="")
    assert headrace("replay", "last", "some.csv", "--rows", "3", "--quiet").exit_code == 0
    (copied / "more.csv").write_text("2;;b\n20;;b\n21;;b\n")
    found = document(headrace("replay", first_run(copied), "more.csv", "--rows", "1", "--quiet", "--json"))["replay"]
    assert (found["numbers"], found["loaded"], found["rows_added"], found["open"]) == (1, 3, 2, 1)
    assert [row[0] for row in rows()] == [1, 2, 4, 20, 21]
    assert accounts(headrace, first_run(copied)) == {
        "open": 1,
        "loaded": 4,
        "rejected_again": 0,
        "dropped": 0,
        "unfinished": 0,
        "rows_added": 2,
    }


def test_a_file_without_a_note_is_all_rejects(headrace: CommandLine, copied: Path) -> None:
    (copied / "repair.csv").rename("other.csv")
    (copied / "other.csv").write_text(REPAIRED)
    assert headrace("replay", "last", "other.csv", "--quiet").exit_code == 0
    assert len(rows()) == 4


def _note(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "repair.csv.numbers").write_text(text)


@pytest.mark.parametrize(
    ("name", "arguments", "change"),
    [
        ("no_file_no_drop", [], None),
        ("rows_without_file", ["--rows", "1"], None),
        ("no_such_file", ["nothing.csv"], None),
        ("folder_for_a_file", ["."], None),
        ("not_a_list", ["repair.csv", "--rows", "3-1"], None),
        ("no_such_number", ["repair.csv", "--rows", "2-4"], None),
        ("rows_and_drop", ["repair.csv", "--rows", "1-3", "--drop", "2"], None),
        ("row_deleted", ["repair.csv"], lambda folder: (folder / "repair.csv").write_text("2;;b\n")),
        ("row_added", ["repair.csv"], lambda folder: (folder / "repair.csv").write_text("2;;b\n" * 4)),
        ("other_run", ["repair.csv"], _note('{"run": "20200101-000000-abcdef", "task": "load", "numbers": "1"}')),
        ("note_damaged", ["repair.csv"], _note("{")),
        ("note_without_numbers", ["repair.csv"], _note('{"run": "x"}')),
        ("no_such_table", ["repair.csv", "--table", "items"], None),
        ("other_table", ["repair.csv", "--set", "table=items"], None),
        ("other_connection", ["repair.csv", "--connection", "warehouse=duckdb:other.duckdb"], None),
        ("into_nothing", ["repair.csv", "--connection", "warehouse=null:"], None),
        (
            "package_changed",
            ["repair.csv"],
            lambda folder: (folder / "load.yaml").write_text(PACKAGE.replace("varchar(10)", "varchar(20)")),
        ),
        (
            "files_gone",
            ["repair.csv"],
            lambda folder: (folder / ".headrace" / "runs" / first_run(folder) / "rejects" / "orders.bad").unlink(),
        ),
    ],
)
def test_what_is_refused(
    headrace: CommandLine, copied: Path, name: str, arguments: list[str], change: Callable[[Path], object] | None
) -> None:
    if change is not None:
        change(copied)
    outcome = headrace("replay", "last", *arguments, "--quiet")
    assert outcome.exit_code in (1, 5, 6)
    assert_snapshot(f"replay_refused_{name}", shown(outcome, copied))
    assert len(rows()) == 1


def test_a_table_that_was_loaded_anew(headrace: CommandLine, copied: Path) -> None:
    of = first_run(copied)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    outcome = headrace("replay", of, "repair.csv", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("replay_refused_loaded_anew", shown(outcome, copied))
    assert len(rows()) == 1


@pytest.mark.parametrize("content", ["", "id;day;note\n"], ids=["no_byte", "no_row"])
def test_a_table_that_was_emptied(headrace: CommandLine, folder: Path, content: str) -> None:
    """A load without a single slice has made it anew."""
    (folder / "load.yaml").write_text(PACKAGE.replace("layout: orders}", "layout: orders, empty: allow}"))
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    (folder / "orders.csv").write_text(content)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    (folder / "repair.csv").write_text(REPAIRED)
    outcome = headrace("replay", first_run(folder), "repair.csv", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("replay_refused_loaded_anew", shown(outcome, folder))
    assert rows() == []
    with duckdb.connect("replayed.duckdb") as connection:  # as if it had died since
        connection.execute("UPDATE headrace.run SET status = 'running' WHERE run_id = ?", [first_run(folder)])
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    events = [path.read_text() for path in (folder / ".headrace" / "runs").glob("*/events.jsonl")]
    (told,) = (text for text in events if "died before it ended" in text)
    assert "it had committed" not in told, "nothing of that run is there any more"


def test_claims_of_an_earlier_version(headrace: CommandLine, copied: Path) -> None:
    (copied / "repair.csv").write_text(REPAIRED)
    assert headrace("replay", "last", "repair.csv", "--rows", "1-2", "--drop", "3", "--quiet").exit_code == 1
    (copied / "two.csv").write_text("".join(REPAIRED.splitlines(True)[:3]))
    assert headrace("replay", "last", "two.csv", "--rows", "1-2", "--quiet").exit_code == 0
    before = accounts(headrace, first_run(copied))
    with duckdb.connect("replayed.duckdb") as connection:
        connection.execute("CREATE TABLE headrace.earlier AS SELECT * EXCLUDE (rows_added) FROM headrace.replay")
        connection.execute("DROP TABLE headrace.replay")
        connection.execute("ALTER TABLE headrace.earlier RENAME TO replay")
    assert accounts(headrace, first_run(copied)) == before
    assert (before["open"], before["loaded"]) == (1, 2)
    assert "already" in headrace("replay", "last", "two.csv", "--rows", "1-2", "--quiet").stderr


def test_secrets_in_names(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a task and of its table, which no document of the run and no ledger holds."""
    monkeypatch.setenv("TENANT", "load_acme")
    text = PACKAGE.replace('"${table}"', '"${env:TENANT}"').replace("tasks:\n  load:", "tasks:\n  load_acme:")
    (folder / "load.yaml").write_text(text)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    (folder / "repair.csv").write_text(REPAIRED)
    outcome = headrace("replay", "last", "repair.csv", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert "acme" not in outcome.text()
    assert len(rows("FROM load_acme")) == 4
    assert accounts(headrace, first_run(folder))["loaded"] == 3
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    again = headrace("replay", first_run(folder), "repair.csv", "--quiet")
    assert "was loaded anew since" in again.stderr


def test_a_run_that_did_not_succeed(headrace: CommandLine, copied: Path) -> None:
    (copied / "orders.csv").write_text(SOURCE + "y;;\n" * 9)
    assert headrace("run", "load.yaml", "--quiet").exit_code == 1
    outcome = headrace("replay", begun_runs(copied)[1], "repair.csv", "--quiet")
    assert outcome.exit_code == 6
    assert_snapshot("replay_refused_failed_run", shown(outcome, copied))


def test_nothing_was_rejected(headrace: CommandLine, folder: Path) -> None:
    (folder / "orders.csv").write_text("id;day;note\n1;;\n")
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    outcome = headrace("replay", "last", "orders.csv", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("replay_refused_no_rejects", shown(outcome, folder))


def test_what_follows_is_not_in_the_way(headrace: CommandLine, copied: Path) -> None:
    """A later run that appends is neither refused nor a reason to refuse."""
    (copied / "repair.csv").write_text(REPAIRED)
    (copied / "more.csv").write_text("id;day;note\n9;;\n")
    text = PACKAGE.replace("orders*.csv", "more*.csv").replace("target: replace", "target: append")
    (copied / "append.yaml").write_text(text)
    assert headrace("run", "append.yaml", "--quiet").exit_code == 0
    assert headrace("replay", first_run(copied), "repair.csv", "--quiet").exit_code == 0
    with duckdb.connect("replayed.duckdb") as connection:  # as if it had been killed behind its commit
        connection.execute("UPDATE headrace.run SET status = 'running' WHERE of_run IS NOT NULL")
    assert headrace("run", "append.yaml", "--quiet").exit_code == 0
    assert [row[0] for row in rows()] == [1, 2, 3, 4, 9, 9]


def test_several_dialects_in_one_file(headrace: CommandLine, folder: Path) -> None:
    """Two source files with their columns in another order and other row ends."""
    text = PACKAGE.replace("header: skip", "header: by_name\n    mixed_row_ends: reject")
    (folder / "load.yaml").write_text(text)
    (folder / "orders.csv").write_text("id;day;note\n1;;\nx;;a\ny;;b\n")
    (folder / "orders_2.csv").write_bytes(b"note;id;day\r\n;2;\r\nc;z;\r\n")
    assert headrace("run", "load.yaml", "--quiet").exit_code == 0
    assert headrace("rejects", "--copy", "repair.csv").exit_code == 0
    assert (folder / "repair.csv").read_bytes() == b"x;;a\ny;;b\nc;z;\r\n"
    (folder / "repair.csv").write_bytes(b"3;;a\n4;;b\nc;5;\n")
    outcome = headrace("replay", "last", "repair.csv", "--quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert rows() == [(1, None, None), (2, None, None), (3, None, "a"), (4, None, "b"), (5, None, "c")]
