"""Columns that are made: where a row comes from and when it was loaded; cut, packed, resumed and verified."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.test_packed_sources import bgzf
from tests.snapshots import assert_snapshot

LAYOUT = """
    delimiter: ","
    qualifier: '"'
    header: skip
    columns:
      - {name: src, type: string, nullable: false, from: file_name}
      - {name: id, type: int64}
      - {name: row_no, type: int64, from: row_number}
      - {name: note, type: string}
      - {name: at_byte, type: int64, from: byte_offset}
      - {name: loaded_at, type: timestamptz, from: load_time}
      - {name: whole_path, type: string, from: file_path}
"""
PACKAGE = f"""
headrace: 1
package: made
parameters:
  files: {{type: list, default: ["*"]}}
  target: {{type: string, default: replace}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  rows:{LAYOUT}streams: 3
tasks:
  load:
    data_flow:
      rejects: {{limit: 2000}}
      sources: {{rows: {{connection: inbox, files: "${{files}}", layout: rows}}}}
      destinations: {{loaded: {{input: rows, connection: warehouse, table: loaded, target: "${{target}}"}}}}
"""
# Row number, first byte, id.
Places = list[tuple[int, int, int]]


@pytest.fixture(params=["duckdb", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "duckdb":
        made = Project(tmp_path)
    else:
        made = request.getfixturevalue("warehouse")
    made.package(PACKAGE)
    return made


def text(rows: int, bytes_per_row: int = 40) -> tuple[bytes, Places]:
    """Qualified line feeds, blank and bad rows among good ones, and where the good ones stand."""
    lines, places, at = [b"id,note\n"], [], 8
    for number in range(2, rows + 2):
        line = f'{number},"a\n{number},""x"" {"." * (bytes_per_row - 20)}"\n'.encode()
        if number % 97 == 5:
            line = b"\n"
        elif number % 101 == 7:
            line = b'x,"not a number,\n"\n'
        else:
            places.append((number, at, number))
        lines.append(line)
        at += len(line)
    return b"".join(lines), places


def check(project: Project, name: str, places: Places) -> None:
    """The table holds these rows of a file, and nothing else of it."""
    columns = "row_no, at_byte, id, src, whole_path"
    rows = project.query(f"SELECT {columns} FROM loaded WHERE src = '{name}' ORDER BY row_no")
    found = [(int(row or 0), int(byte or 0), int(id_ or 0)) for row, byte, id_, _, _ in rows]
    assert len(found) == len(places)
    assert found == places
    path = name if name == "-" else str(project.inbox / name)
    assert {row[4] for row in rows} == {path}


def load_times(project: Project) -> list[int]:
    """Seconds since 1970, each once."""
    rows = project.query("SELECT DISTINCT (extract(epoch FROM loaded_at) * 1000000)::BIGINT FROM loaded")
    return [int(row[0] or 0) for row in rows]


def check_verified(project: Project) -> None:
    command = [sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", "last"]
    verified = project.command(command)
    assert verified.exit_code == 0, verified.stderr
    (table,) = json.loads(verified.stdout)["tables"]
    assert table["status"] == "equal"
    assert {column["column"] for column in table["columns"]} == {
        "src",
        "id",
        "row_no",
        "note",
        "at_byte",
        "loaded_at",
        "whole_path",
    }


def rejected_rows(ended: Ended) -> list[int]:
    rows = []
    for file in ended.succeeded()["tables"][0]["rejects"]["files"]:
        if file.endswith(".jsonl"):
            rows += [json.loads(line)["row"] for line in Path(file).read_text().splitlines()]
    return rows


def test_rows_of_several_slices_and_files(project: Project) -> None:
    large, places = text(120_000, 90)
    small, few = text(50)
    project.file("large.csv", large)
    project.file("small.csv", b"\xef\xbb\xbf" + small)
    project.file("packed.csv.gz", gzip.compress(small))
    project.file("pieces.csv.gz", bgzf(small, 700))
    before = datetime.now(UTC)
    ended = project.run()
    summary = ended.succeeded()
    assert summary["tables"][0]["slices"] > 4
    check(project, "large.csv", places)
    check(project, "small.csv", [(row, byte + 3, number) for row, byte, number in few])
    check(project, "packed.csv.gz", few)
    check(project, "pieces.csv.gz", few)
    # The number of a row that was loaded is no reject's.
    all_rows = {row for row, _, _ in places}
    assert all_rows.isdisjoint(row for row in rejected_rows(ended) if row > 60)
    (loaded_at,) = load_times(project)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=loaded_at)
    assert before <= moment <= datetime.now(UTC)
    assert f"{moment:%Y%m%d-%H%M%S}" == summary["run_id"][:15]
    check_verified(project)


def test_the_plan_says_what_is_made_and_counted(project: Project) -> None:
    large, _ = text(120_000, 90)
    project.file("large.csv", large)
    planned = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"])
    (task,) = json.loads(planned.stdout)["tasks"]
    notes = [note for note in task["notes"] if "made" in note or "count" in note]
    assert_snapshot("made_columns_plan", project.stable("\n".join(notes)) + "\n")
    made = {column["name"]: column["from"] for column in task["flow"]["layout"]["made"]}
    assert made["loaded_at"] == {"load_time": None}


def test_standard_input(project: Project) -> None:
    content, places = text(3000)
    project.inbox.joinpath("rows.csv").write_bytes(content)
    run = shlex.join(project.arguments(files="-"))
    ended = project.command(["bash", "-c", f"cat inbox/rows.csv | {run}"])
    assert ended.succeeded()["rows_loaded"] == len(places)
    check(project, "-", places)


def test_columns_that_are_not_loaded_are_not_made(project: Project) -> None:
    content, places = text(300)
    project.file("rows.csv", content)
    chosen = "{number: id, file: src}"
    project.package(PACKAGE.replace('target: "${target}"}', f'target: "${{target}}", columns: {chosen}}}'))
    project.run().succeeded()
    assert len(project.query("SELECT number FROM loaded WHERE file = 'rows.csv'")) == len(places)
    planned = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"])
    (task,) = json.loads(planned.stdout)["tasks"]
    assert [column["name"] for column in task["flow"]["layout"]["made"]] == ["src"]


def test_an_existing_table(project: Project) -> None:
    """Columns that cannot hold what is made are refused before the first row; longer ones take it."""
    content, places = text(300)
    project.file("a file with a long name.csv", content)
    columns = "src varchar({length}), id bigint, row_no {number}, note text, at_byte bigint, loaded_at timestamptz"
    project.execute(f"CREATE TABLE loaded ({columns.format(length=10, number='integer')}, whole_path text)")
    refused = project.run()
    assert refused.exit_code == 1
    kind = "postgres" if isinstance(project, PostgresProject) else "duckdb"
    assert_snapshot(f"made_columns_do_not_fit_{kind}", project.stable(refused.error))
    project.execute("DROP TABLE loaded")
    project.execute(f"CREATE TABLE loaded ({columns.format(length=27, number='numeric(20)')}, whole_path text)")
    project.run().succeeded()
    check(project, "a file with a long name.csv", places)
    check_verified(project)


@pytest.mark.parametrize("names", ["as_they_are", "of_positions"])
@pytest.mark.parametrize("query", [None, "SELECT * FROM rows WHERE row_no <> 2"], ids=["plain", "query"])
@pytest.mark.parametrize("key", ["UNIQUE (src, loaded_at)", "UNIQUE (src)", "CHECK (row_no <> 4)"])
def test_a_row_that_breaks_a_constraint_is_named(project: Project, key: str, query: str | None, names: str) -> None:
    """Whatever looks for it makes the same columns, whatever they are called, for what stands behind them."""
    content, places = text(300)
    file = project.file("rows.csv", content)
    made = PACKAGE
    if query:
        made = made.replace("input: rows", "input: kept").replace(
            "      destinations:", f'      transforms: {{kept: {{input: rows, sql: "{query}"}}}}\n      destinations:'
        )
    if names == "of_positions":
        made, key = made.replace("row_no", "position"), key.replace("row_no", "position")
    project.package(made.replace("streams: 3", "streams: 1"))
    columns = "src text, id bigint, row_no bigint, note text, at_byte bigint, loaded_at timestamptz, whole_path text"
    columns = columns.replace("row_no", "position") if names == "of_positions" else columns
    project.execute(f"CREATE TABLE loaded ({columns}, {key})")
    ended = project.run(target="append")
    assert ended.exit_code == 1
    kept = [place for place in places if not query or place[0] != 2]
    row, byte, _ = next(place for place in kept if place[0] == 4) if "CHECK" in key else kept[1]
    assert ended.summary["error"]["at"] == {"file": str(file), "row": row, "byte": byte}, ended.error


def test_a_row_of_a_union_that_breaks_a_constraint_is_named(project: Project) -> None:
    content, places = text(300)
    file = project.file("rows.csv", content)
    source = "{connection: inbox, files: [FILE], layout: rows}"
    sources = f"{{rows: {source.replace('FILE', 'rows.csv')}, more: {source.replace('FILE', 'more')}}}"
    united = PACKAGE.replace('{rows: {connection: inbox, files: "${files}", layout: rows}}', sources)
    united = united.replace("input: rows", "input: all").replace(
        "      destinations:", "      transforms: {all: {union: {sources: [rows, more]}}}\n      destinations:"
    )
    project.file("more", b"id,note\n")
    project.package(united.replace("streams: 3", "streams: 1"))
    columns = "src text, id bigint, row_no bigint, note text, at_byte bigint, loaded_at timestamptz, whole_path text"
    project.execute(f"CREATE TABLE loaded ({columns}, UNIQUE (src))")
    ended = project.run(target="append")
    assert ended.exit_code == 1
    row, byte, _ = places[1]
    assert ended.summary["error"]["at"] == {"file": str(file), "row": row, "byte": byte}, ended.error


def test_a_killed_run_goes_on_with_its_own_time_and_numbers(warehouse: PostgresProject) -> None:
    content, places = text(120_000, 60)
    warehouse.file("rows.csv", content)
    commit = PACKAGE.replace('target: "${target}"}', 'target: "${target}", commit: {bytes: 1 MB}}')
    warehouse.package(commit.replace("streams: 3", "streams: 2"))
    counted = 'SELECT count(DISTINCT slice) FROM headrace."commit" WHERE slice > 0'
    with warehouse.started(warehouse.arguments(target="append")) as running:
        while running.poll() is None and (not warehouse.ledger() or int(warehouse.query(counted)[0][0] or 0) < 2):
            time.sleep(0.005)
        running.end()
    assert warehouse.ledger() == ["running"], f"killed too late: {running.stderr}"
    time.sleep(1.1)
    run = warehouse.resume()
    assert "were committed before" in run.stderr
    assert run.succeeded()["rows_loaded"] == len(places)
    check(warehouse, "rows.csv", places)
    (loaded_at,) = load_times(warehouse)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=loaded_at)
    assert f"{moment:%Y%m%d-%H%M%S}" == run.summary["run_id"][:15]
