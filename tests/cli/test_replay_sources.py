"""What repaired rows need to know of their source: it may be gone, and each file is written in its own way."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.cli.conftest import CommandLine, Outcome
from tests.cli.filters import stable
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: returned
connections:
  here:      {{type: files, path: .}}
  warehouse: {{type: duckdb, path: returned.duckdb}}
tasks:
  load:
    data_flow:
      rejects: {{limit: 100}}
      sources:
        rows:
          connection: here
          files: {files}
          layout: {layout}
      destinations:
        loaded: {{input: rows, connection: warehouse, table: orders, target: replace{destination}}}
"""
COLUMNS = """
            columns:
              - {name: id, type: int32, nullable: false}
              - {name: day, type: date}
              - {name: note, type: string}
"""
BY_NAME = f'\n            delimiter: ";"\n            header: by_name{COLUMNS}'
MADE = """\
              - {name: source, from: file_name, type: string}
              - {name: line, from: row_number, type: int64}
              - {name: place, from: byte_offset, type: int64}
"""
PATH_AND_TIME = """\
              - {name: path, from: file_path, type: string}
              - {name: loaded_at, from: load_time, type: timestamptz}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of the command."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def package(folder: Path, layout: str, destination: str = "", files: object = "orders*") -> None:
    text = PACKAGE.format(layout=layout, destination=destination, files=json.dumps(files))
    (folder / "load.yaml").write_text(text)


def loaded_run(headrace: CommandLine) -> str:
    return str(document(headrace("run", "load.yaml", "--quiet", "--json"))["run_id"])


def copied(headrace: CommandLine, folder: Path, run: str, name: str = "repair") -> bytes:
    outcome = headrace("rejects", run, "--copy", name)
    assert outcome.exit_code == 0, outcome.stderr
    return (folder / name).read_bytes()


def replayed(headrace: CommandLine, run: str, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = document(headrace("replay", run, *arguments, "--quiet", "--json"))
    replay = found["replay"]
    resolved = replay["loaded"] + replay["rejected_again"] + replay["dropped"]
    assert replay["numbers"] + replay["rows_added"] == resolved
    return found


def document(outcome: Outcome) -> dict[str, Any]:
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert isinstance(found, dict)
    return found


def rows(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect("returned.duckdb", read_only=True) as connection:
        return connection.execute(query).fetchall()


def gone(folder: Path) -> None:
    for path in folder.glob("orders*"):
        path.unlink()


@pytest.mark.parametrize("made", [False, True], ids=["read", "made"])
def test_files_archives_and_pipes_that_are_gone(headrace: CommandLine, folder: Path, *, made: bool) -> None:
    """Three orders of columns, two row ends; columns that are made say where the rejects stood."""
    package(folder, BY_NAME + (MADE if made else ""), files=["orders_1.csv", "orders_2.csv.gz", "orders_3.csv"])
    (folder / "orders_1.csv").write_text("id;day;note\n1;2026-01-01;\nx;2026-01-02;a\n2;;\ny;;b\n")
    (folder / "orders_2.csv.gz").write_bytes(gzip.compress(b"note;id;day\r\n;3;\r\nc;z;2026-01-03\r\n"))
    os.mkfifo(folder / "orders_3.csv")
    text = "day;note;id\n2026-01-04;d;4\nnever;e;5\n"
    writer = threading.Thread(target=(folder / "orders_3.csv").write_text, args=(text,), daemon=True)
    writer.start()
    run = loaded_run(headrace)
    writer.join(HANG_SECONDS)
    gone(folder)
    assert copied(headrace, folder, run) == b"x;2026-01-02;a\ny;;b\nc;z;2026-01-03\r\nnever;e;5\n"
    (folder / "repair").write_bytes(b"10;2026-01-02;a\n11;;b\nc;12;2026-01-03\n2026-01-05;e;5\n")
    assert replayed(headrace, run, "repair")["replay"]["loaded"] == 4
    found = rows("SELECT id, day::VARCHAR, note FROM orders ORDER BY id")
    assert found == [
        (1, "2026-01-01", None),
        (2, None, None),
        (3, None, None),
        (4, "2026-01-04", "d"),
        (5, "2026-01-05", "e"),
        (10, "2026-01-02", "a"),
        (11, None, "b"),
        (12, "2026-01-03", "c"),
    ]
    if made:
        assert rows("SELECT id, source, line, place FROM orders ORDER BY id") == [
            (1, "orders_1.csv", 2, 12),
            (2, "orders_1.csv", 4, 41),
            (3, "orders_2.csv.gz", 2, 13),
            (4, "orders_3.csv", 2, 12),
            (5, "orders_3.csv", 3, 27),
            (10, "orders_1.csv", 3, 26),
            (11, "orders_1.csv", 5, 45),
            (12, "orders_2.csv.gz", 3, 18),
        ]


def test_a_replay_of_a_replay_knows_the_first_source(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME + MADE + PATH_AND_TIME)
    (folder / "orders_1.csv").write_text("id;day;note\n1;;\nx;;a\ny;;b\n")
    (folder / "orders_2.csv").write_text("note;id;day\n;2;\nc;z;\n")
    run = loaded_run(headrace)
    gone(folder)
    copied(headrace, folder, run)
    (folder / "repair").write_text("3;;a\ny;;b\nd;z;\n")
    second = replayed(headrace, run, "repair")
    assert second["replay"]["rejected_again"] == 2
    assert copied(headrace, folder, second["run_id"], "again") == b"y;;b\nd;z;\n"
    (table,) = document(headrace("rejects", second["run_id"], "--json"))["tables"]
    assert [(item["file"], item["row"]) for item in table["first"]] == [
        (str(folder / "repair"), 2),
        (str(folder / "repair"), 3),
    ]
    (folder / "again").write_text("4;;b\nd;5;\n")
    third = replayed(headrace, second["run_id"], "again")
    found = rows("SELECT id, note, source, path, line, place FROM orders ORDER BY id")
    first, other = str(folder / "orders_1.csv"), str(folder / "orders_2.csv")
    assert found == [
        (1, None, "orders_1.csv", first, 2, 12),
        (2, None, "orders_2.csv", other, 2, 12),
        (3, "a", "orders_1.csv", first, 3, 16),
        (4, "b", "orders_1.csv", first, 4, 21),
        (5, "d", "orders_2.csv", other, 3, 16),
    ]
    times = rows("SELECT id FROM orders WHERE loaded_at = (SELECT max(loaded_at) FROM orders) ORDER BY id")
    assert times == [(4,), (5,)], "the load time is that of the replay"
    assert third["replay"]["of_run"] == second["run_id"]


def test_a_qualifier_that_swallows_the_next_reject(headrace: CommandLine, folder: Path) -> None:
    """At the end of its file it was a row of its own; in the copy it is not."""
    package(folder, BY_NAME.replace("header:", "qualifier: '\"'\n            header:"))
    (folder / "orders_1.csv").write_text('id;day;note\n1;;\n2;;"a\n')
    (folder / "orders_2.csv").write_text("id;day;note\nx;;b\n")
    run = loaded_run(headrace)
    assert copied(headrace, folder, run) == b'2;;"a\nx;;b\n'
    outcome = headrace("replay", run, "repair", "--quiet")
    assert outcome.exit_code == 1
    assert_snapshot("replay_refused_unclosed", stable(outcome.text(), folder))
    (folder / "repair").write_text('2;;"a"\n3;;b\n')
    assert replayed(headrace, run, "repair")["replay"]["loaded"] == 2


def test_all_rows_that_one_reject_has_swallowed_stood_there(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME.replace("header:", "qualifier: '\"'\n            header:") + MADE)
    (folder / "orders_1.csv").write_text('id;day;note\n1;;\n2;;"a\n3;;b\n4;;c\n')
    run = loaded_run(headrace)
    copied(headrace, folder, run)
    (folder / "repair").write_text("2;;a\n3;;b\n\n4;;c\n")
    found = replayed(headrace, run, "repair", "--rows", "1")["replay"]
    assert (found["numbers"], found["rows_added"], found["loaded"]) == (1, 2, 3)
    assert rows("SELECT id, line, place FROM orders ORDER BY id") == [(1, 2, 12), (2, 3, 16), (3, 3, 16), (4, 3, 16)]


def test_utf16_of_both_orders(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME.replace("header:", "encoding: utf-16\n            header:") + MADE)
    for name, encoding, mark in (("orders_1", "utf-16-le", b"\xff\xfe"), ("orders_2", "utf-16-be", b"\xfe\xff")):
        (folder / name).write_bytes(mark + "id;day;note\n1;;\U0001f600\nx;;ä\n".encode(encoding))
    run = loaded_run(headrace)
    gone(folder)
    bad = copied(headrace, folder, run)
    assert bad == "x;;ä\n".encode("utf-16-le") + "x;;ä\n".encode("utf-16-be")
    (folder / "repair").write_bytes(b"\xff\xfe" + "7;;äö\r\n".encode("utf-16-le") + "8;;ä\n\r\n".encode("utf-16-be"))
    replayed(headrace, run, "repair")
    found = rows("SELECT id, note, source, line, place FROM orders WHERE id > 1 ORDER BY id")
    assert found == [(7, "äö", "orders_1", 3, 38), (8, "ä", "orders_2", 3, 38)]


@pytest.mark.parametrize(
    ("encoding", "reject", "repaired", "value"),
    [
        ("utf-8", b"\xff\xfeabc;2\n", None, ()),  # still not UTF-8
        ("utf-8", b"abc;x\n", b"\xef\xbb\xbfabc;2\n", ("abc",)),
        ("utf-8", b"\xef\xbb\xbfabc;x\n", b"\xef\xbb\xbfabc;2\n", ("\ufeffabc",)),
        ("iso-8859-1", b"\xff\xfeabc;x\n", b"\xff\xfeabc;2\n", ("ÿþabc",)),
    ],
    ids=["no_utf8", "editor", "own", "page"],
)
def test_marks_in_front(
    headrace: CommandLine,
    folder: Path,
    encoding: str,
    reject: bytes,
    repaired: bytes | None,
    value: tuple[str, ...],
) -> None:
    """What an editor has put there is no part of the first row; what stood in the source is."""
    columns = "{name: note, type: string}, {name: id, type: int32, nullable: false}"
    package(folder, f"{{encoding: {encoding}, delimiter: ';', header: none, columns: [{columns}]}}")
    (folder / "orders_1.csv").write_bytes(b"ok;1\n" + reject)
    run = loaded_run(headrace)
    assert copied(headrace, folder, run) == reject
    (folder / "repair").write_bytes(reject if repaired is None else repaired)
    found = replayed(headrace, run, "repair")["replay"]
    assert (found["loaded"], found["rejected_again"]) == (len(value), 1 - len(value))
    assert [row[0] for row in rows("SELECT note FROM orders WHERE note <> 'ok'")] == list(value)


def test_fixed_width(headrace: CommandLine, folder: Path) -> None:
    layout = """
            shape: fixed_width
            columns:
              - {name: id, type: int32, start: 1, width: 3, nullable: false}
              - {name: note, type: string, start: 4, width: 4}
              - {name: line, from: row_number, type: int64}
"""
    package(folder, layout)
    (folder / "orders_1").write_text("001abcd\n0x2efgh\n003ij\n")
    run = loaded_run(headrace)
    gone(folder)
    assert copied(headrace, folder, run) == b"0x2efgh\n003ij\n"
    (folder / "repair").write_text("002efgh\n\n")
    assert replayed(headrace, run, "repair")["replay"]["dropped"] == 1
    assert rows("SELECT id, note, line FROM orders ORDER BY id") == [(1, "abcd", 1), (2, "efgh", 2)]


def test_blank_rows_that_are_data_are_dropped_by_their_numbers(headrace: CommandLine, folder: Path) -> None:
    layout = """
            delimiter: ";"
            blank_rows: keep
            columns:
              - {name: id, type: int32, nullable: false}
"""
    package(folder, layout)
    (folder / "orders_1").write_text("1\n\nx\n")
    run = loaded_run(headrace)
    assert copied(headrace, folder, run) == b"\nx\n"
    (folder / "repair").write_text("2\n")
    found = replayed(headrace, run, "repair", "--drop", "1")["replay"]
    assert (found["loaded"], found["dropped"], found["open"]) == (1, 1, 0)
    assert rows("FROM orders ORDER BY id") == [(1,), (2,)]


def test_a_reject_that_was_cut_is_named(headrace: CommandLine, folder: Path) -> None:
    """The file of rejects is made as one would be of which a gigabyte was kept."""
    package(folder, BY_NAME)
    (folder / "orders_1.csv").write_text("id;day;note\n1;;\nx;;a\ny;;b\nz;;c\n")
    run = loaded_run(headrace)
    path = folder / ".headrace" / "runs" / run / "rejects" / "orders.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["row_bytes"] += 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    bad = folder / ".headrace" / "runs" / run / "rejects" / "orders.bad"
    refused = headrace("replay", run, str(bad), "--quiet")
    assert refused.exit_code == 1
    assert_snapshot("replay_refused_cut", stable(refused.text(), folder))
    assert copied(headrace, folder, run) == b"x;;a\nz;;c\n", "a copy leaves it out"
    (folder / "repair").write_text("2;;a\n4;;c\n")
    assert replayed(headrace, run, "repair")["replay"]["open"] == 1
    (folder / "long").write_text("3;;b and all the rest\n")
    assert replayed(headrace, run, "long", "--rows", "2")["replay"]["open"] == 0
    assert rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_messages_name_the_file_that_was_given(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME.replace("header:", "qualifier: '\"'\n            header:"))
    (folder / "orders_1.csv").write_text("id;day;note\nx;;a\ny;;b\n")
    run = loaded_run(headrace)
    copied(headrace, folder, run)
    (folder / "repair").write_text("1;;a\r\ny;;b\n")
    outcome = headrace("replay", run, "repair")
    assert outcome.exit_code == 0, outcome.stderr
    assert "lines end in two ways in" not in outcome.stderr  # each row as its source or an editor ends it
    for text in (outcome.stdout, outcome.stderr):
        assert os.path.join("replay", "repair") not in text
    replays = [path.parent for path in (folder / ".headrace" / "runs").glob("*/replay.json")]
    for name in ("summary.json", "events.jsonl", "rejects/orders.jsonl", "sources.json"):
        assert os.path.join("replay", "repair") not in (replays[0] / name).read_text(), name
    (line,) = (replays[0] / "rejects" / "orders.jsonl").read_text().splitlines()
    assert (json.loads(line)["file"], json.loads(line)["row"]) == (str(folder / "repair"), 2)
    assert rows(
        "SELECT DISTINCT file FROM headrace.slice JOIN headrace.run USING (run_id) "
        "WHERE slice > 0 AND of_run IS NOT NULL"
    ) == [(str(folder / "repair"),)]


def test_a_path_with_a_secret(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOMER", "orders_hidden")
    package(folder, BY_NAME + MADE)
    (folder / "load.yaml").write_text((folder / "load.yaml").read_text().replace('"orders*"', '"${env:CUSTOMER}*"'))
    (folder / "orders_hidden.csv").write_text("id;day;note\nx;;a\n")
    run = loaded_run(headrace)
    copied(headrace, folder, run)
    refused = headrace("replay", run, "repair", "--quiet")
    assert refused.exit_code == 1
    assert_snapshot("replay_refused_hidden_path", stable(refused.text(), folder))
    assert "orders_hidden" not in refused.text()


@pytest.mark.parametrize("load", ["view", "staged"])
def test_declared_partitions(headrace: CommandLine, folder: Path, load: str) -> None:
    """Rows go into tables that are there, and into new ones; outside they are rejected again."""
    declared = ", partition: {range: {column: id, every: 10, from: 0, to: 30}}"
    package(folder, BY_NAME, f", load: {load}{declared}")
    (folder / "orders_1.csv").write_text("id;day;note\n1;;a\n40;;b\n2;x;c\n3;x;d\n")
    run = loaded_run(headrace)
    gone(folder)
    copied(headrace, folder, run)
    (folder / "repair").write_text("41;;b\n22;;c\n3;;d\n")
    found = replayed(headrace, run, "repair")
    assert found["replay"]["rejected_again"] == 1
    assert rows("SELECT id, note FROM orders ORDER BY id") == [(1, "a"), (3, "d"), (22, "c")]
    copied(headrace, folder, found["run_id"], "again")
    (folder / "again").write_text("11;;b\n")
    replayed(headrace, found["run_id"], "again")
    assert rows("SELECT count(*) FROM orders") == [(4,)]
    if load == "view":
        tables = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'main'"
        assert rows(tables) == [(3,)]


def test_a_table_that_is_gone(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME)
    (folder / "orders_1.csv").write_text("id;day;note\n1;;\nx;;a\n")
    run = loaded_run(headrace)
    before = (folder / "returned.duckdb").read_bytes()
    copied(headrace, folder, run)
    (folder / "repair").write_text("2;;a\n")
    with duckdb.connect("returned.duckdb") as connection:
        connection.execute("DROP TABLE orders")
    refused = headrace("replay", run, "repair", "--quiet")
    assert refused.exit_code == 1
    assert_snapshot("replay_refused_dropped", stable(refused.text(), folder))
    (folder / "returned.duckdb").write_bytes(before)  # restored
    replayed(headrace, run, "repair")
    (folder / "returned.duckdb").write_bytes(before)  # and once more: nothing of the replay is there
    replayed(headrace, run, "repair")
    assert rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]
    (folder / "returned.duckdb").unlink()
    assert headrace("replay", run, "repair", "--quiet").exit_code == 1


def test_a_key_that_is_there_already(headrace: CommandLine, folder: Path) -> None:
    """The row is named in the file that was given, although two files of a source are read again to find it."""
    package(folder, BY_NAME)
    (folder / "orders_1.csv").write_text("id;day;note\n1;;\nx;;a\n")
    (folder / "orders_2.csv").write_text("note;id;day\nc;z;\n")
    run = loaded_run(headrace)
    with duckdb.connect("returned.duckdb") as connection:
        connection.execute("CREATE UNIQUE INDEX one ON orders (id)")
    copied(headrace, folder, run)
    (folder / "repair").write_text("2;;a\nc;1;\n")
    refused = headrace("replay", run, "repair", "--quiet")
    assert refused.exit_code == 1
    assert_snapshot("replay_refused_by_a_key", stable(refused.text(), folder))
    (folder / "repair").write_text("2;;a\nc;3;\n")
    replayed(headrace, run, "repair")
    assert rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (3,)]


def test_a_name_that_is_no_text(headrace: CommandLine, folder: Path) -> None:
    package(folder, BY_NAME)
    (folder / "orders_1.csv").write_text("id;day;note\nx;;a\ny;;b\n")
    run = loaded_run(headrace)
    name = os.fsdecode(b"repair\xff")
    Path(name).write_text("1;;a\ny;;b\n")
    found = replayed(headrace, run, name)
    assert found["replay"]["rejected_again"] == 1
    (line,) = Path(found["run_folder"], "rejects", "orders.jsonl").read_text().splitlines()
    assert json.loads(line)["file"] == f"{folder}/repair\\xff"
