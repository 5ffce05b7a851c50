"""Where rows come from: the view `lineage` of the ledger, hashes of texts, columns that name run, package and slice."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.replays import command
from tests.integration.test_packed_sources import bgzf
from tests.integration.xxh3 import xxh3
from tests.snapshots import assert_snapshot

PACKAGE = """
headrace: 1
package: traced
parameters:
  target: {type: string, default: replace}
  limit: {type: integer, default: 0}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  rows:
    delimiter: ","
    header: skip
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: note, type: string}
      - {name: run, type: string, from: run_id, nullable: false}
      - {name: package, type: string, from: package_hash, nullable: false}
      - {name: slice, type: int64, from: slice, nullable: false}
      - {name: path, type: string, from: file_path}
streams: 3
tasks:
  load:
    data_flow:
      rejects: {limit: "${limit}"}
      sources: {rows: {connection: inbox, files: "*", layout: rows}}
      destinations: {loaded: {input: rows, connection: warehouse, table: loaded, target: "${target}"}}
"""
DESTINATION = 'target: "${target}"}'
LINEAGE = "run_id, package, package_hash, task, file, file_bytes, slices, rows_loaded, file_hash, slices_hash"
# Of the rows of each slice of a file: how many, and what they say of themselves.
BY_SLICE = """
SELECT loaded.run, loaded.slice, loaded.path, count(*) FROM loaded
JOIN headrace.slice AS planned
  ON planned.run_id = loaded.run AND planned.slice = loaded.slice AND planned.file = loaded.path
JOIN headrace.run AS run ON run.run_id = loaded.run AND run.package_hash = loaded.package
GROUP BY 1, 2, 3 ORDER BY 1, 2
"""
BY_COMMIT = """
SELECT run_id, slice, file, sum(rows_loaded) FROM headrace."commit" JOIN headrace.slice USING (run_id, task, slice)
WHERE slice > 0 GROUP BY 1, 2, 3 HAVING sum(rows_loaded) > 0 ORDER BY 1, 2
"""


@pytest.fixture(params=["duckdb", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    made: Project = Project(tmp_path) if request.param == "duckdb" else request.getfixturevalue("warehouse")
    made.package(PACKAGE)
    return made


def text(rows: int) -> bytes:
    return b"id,note\n" + b"".join(f"{number},{'.' * 70}\n".encode() for number in range(rows))


def lineage(project: Project, run_id: str) -> dict[str, dict[str, Any]]:
    """What the view says of the files of a run, by name."""
    rows = project.query(f"SELECT {LINEAGE} FROM headrace.lineage WHERE run_id = '{run_id}'")
    files = [dict(zip(LINEAGE.split(", "), row, strict=True)) for row in rows]
    found = {Path(file["file"]).name: file for file in files}
    assert len(found) == len(rows)
    return found


def slice_hashes(project: Project, run_id: str, path: Path) -> list[str]:
    """Those of a file that is not compressed, made anew from what the ledger says of its slices."""
    sql = (
        f"SELECT begin_byte, end_byte FROM headrace.slice WHERE run_id = '{run_id}' AND file = '{path}' ORDER BY slice"
    )
    content = path.read_bytes()
    ranges = [(int(begin), int(end)) for begin, end in project.query(sql)]
    return [xxh3(content[begin if number else 0 : end]) for number, (begin, end) in enumerate(ranges)]


def together(hashes: list[str]) -> str:
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def check_columns(project: Project) -> None:
    """Every row names the run and the slice that have loaded it."""

    def counts(sql: str) -> list[tuple[str, int, str, int]]:
        return [(str(run), int(number), str(path), int(rows)) for run, number, path, rows in project.query(sql)]

    assert counts(BY_SLICE) == counts(BY_COMMIT) != []


def test_every_file_of_a_run_is_told_with_its_hash(project: Project) -> None:
    large, small = text(120_000), text(500)
    paths = {
        "large.csv": project.file("large.csv", large),
        "small.csv": project.file("small.csv", b"\xef\xbb\xbf" + small),
        "packed.csv.gz": project.file("packed.csv.gz", gzip.compress(small)),
        "pieces.csv.gz": project.file("pieces.csv.gz", bgzf(small, 700)),
        "header.csv": project.file("header.csv", b"id,note" + b"." * 300 + b"\n"),
    }
    summary = project.run().succeeded()
    run_id = summary["run_id"]
    found = lineage(project, run_id)
    assert set(found) == set(paths)
    for name, path in paths.items():
        assert int(found[name]["file_bytes"]) == path.stat().st_size
        assert (found[name]["package"], found[name]["task"]) == ("traced", "load")
    assert {name: int(file["rows_loaded"]) for name, file in found.items()} == {
        "large.csv": 120_000,
        "small.csv": 500,
        "packed.csv.gz": 500,
        "pieces.csv.gz": 500,
        "header.csv": 0,
    }
    assert sum(int(file["slices"]) for file in found.values()) == summary["tables"][0]["slices"]
    # What `xxhsum -H3` tells of the file, or of `zcat` of it.
    assert found["small.csv"]["file_hash"] == xxh3(paths["small.csv"].read_bytes())
    assert found["packed.csv.gz"]["file_hash"] == found["pieces.csv.gz"]["file_hash"] == xxh3(small)
    assert found["header.csv"]["file_hash"] == xxh3(paths["header.csv"].read_bytes())
    hashes = slice_hashes(project, run_id, paths["large.csv"])
    assert int(found["large.csv"]["slices"]) == len(hashes) > 2
    assert (found["large.csv"]["file_hash"], found["large.csv"]["slices_hash"]) == (None, together(hashes))
    assert found["small.csv"]["slices_hash"] == together([str(found["small.csv"]["file_hash"])])
    check_columns(project)
    check_moments(project, paths)
    verified = project.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", "last"])
    assert [table["status"] for table in json.loads(verified.stdout)["tables"]] == ["equal"]
    # The same files once more, by another number of streams.
    again = lineage(project, project.run("--streams", "1").succeeded()["run_id"])
    assert {name: file["file_hash"] for name, file in again.items() if name != "large.csv"} == {
        name: file["file_hash"] for name, file in found.items() if name != "large.csv"
    }


def check_moments(project: Project, paths: dict[str, Path]) -> None:
    """Files are as old as they are, to the microsecond; their rows are newer."""
    moments = project.query("SELECT file, extract(epoch FROM modified), committed_at >= modified FROM headrace.lineage")
    assert {Path(str(file)).name: round(float(seconds) * 1e6) for file, seconds, _ in moments} == {
        name: path.stat().st_mtime_ns // 1000 for name, path in paths.items()
    }
    assert {str(newer)[0].lower() for _, _, newer in moments} == {"t"}


def test_columns_of_a_run_that_is_only_planned(project: Project) -> None:
    project.file("small.csv", text(10))
    planned = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"])
    (task,) = json.loads(planned.stdout)["tasks"]
    made = {column["name"]: column["from"] for column in task["flow"]["layout"]["made"]}
    assert made == {
        "run": {"run_id": None},
        "package": {"package_hash": None},
        "slice": "slice",
        "path": "file_path",
    }
    layout = PACKAGE.partition("  rows:")[2].partition("streams:")[0]
    project.folder.joinpath("layout.yaml").write_text(layout)
    of_file = ["--file", "inbox/small.csv", "--layout", "layout.yaml"]
    checked = project.command([sys.executable, "-m", "headrace", "check", *of_file])
    assert checked.exit_code == 0, checked.stderr


def test_a_table_whose_columns_are_too_short_for_a_run(project: Project) -> None:
    project.file("small.csv", text(10))
    columns = "id bigint, note text, run varchar(10), package varchar(64), slice integer, path text"
    project.execute(f"CREATE TABLE loaded ({columns})")
    kind = "postgres" if isinstance(project, PostgresProject) else "duckdb"
    assert_snapshot(f"lineage_columns_do_not_fit_{kind}", project.stable(project.run().error))
    project.execute(
        "DROP TABLE loaded", f"CREATE TABLE loaded ({columns.replace('(10)', '(22)')})".replace("integer", "bigint")
    )
    project.run().succeeded()
    check_columns(project)


def test_repaired_rows_are_those_of_the_replay(project: Project) -> None:
    bad = b"".join(b"x%d,%s\n" % (number, b"." * 30) for number in range(20))
    source = project.file("rows.csv", text(500) + bad)
    run_id = project.run(limit=100).succeeded()["run_id"]
    assert project.command(command("rejects", run_id, "--copy", "repair.csv")).exit_code == 0
    repair = project.folder / "repair.csv"
    repair.write_text(repair.read_text().replace("x", "9000"))
    replay = project.command(command("replay", run_id, "repair.csv"))
    assert replay.exit_code == 0, replay.stderr
    replay_id = json.loads(replay.stdout)["run_id"]
    # They say where they stood, but which run has loaded them, from which slice of the repaired file.
    rows = project.query("SELECT run, slice, path, count(*) FROM loaded GROUP BY 1, 2, 3 ORDER BY 1")
    assert [(str(run), int(number), str(path), int(count)) for run, number, path, count in rows] == [
        (run_id, 1, str(source), 500),
        (replay_id, 1, str(source), 20),
    ]
    (file,) = lineage(project, replay_id).values()
    assert (file["file"], int(file["rows_loaded"]), file["file_hash"]) == (str(repair), 20, xxh3(repair.read_bytes()))
    (file,) = lineage(project, run_id).values()
    assert (file["file"], int(file["rows_loaded"]), file["file_hash"]) == (str(source), 500, xxh3(source.read_bytes()))


@pytest.mark.faults
@pytest.mark.parametrize("is_staged", [False, True], ids=["append", "replace"])
def test_a_killed_run_goes_on_as_itself(warehouse: PostgresProject, *, is_staged: bool) -> None:
    path = warehouse.file("rows.csv", text(120_000))
    if not is_staged:
        # What is appended to a table that is there is seen at once.
        warehouse.execute("CREATE TABLE loaded (id bigint, note text, run text, package text, slice bigint, path text)")
    package = PACKAGE.replace(DESTINATION, 'target: "${target}", commit: {bytes: 1 MB}}')
    warehouse.package(package.replace("streams: 3", "streams: 2"))
    counted = 'SELECT count(DISTINCT slice) FROM headrace."commit" WHERE slice > 0'
    arguments = warehouse.arguments(target="replace" if is_staged else "append")
    with warehouse.started(arguments) as running:
        while running.poll() is None and (not warehouse.ledger() or int(warehouse.query(counted)[0][0] or 0) < 2):
            time.sleep(0.005)
        running.end()
    assert warehouse.ledger() == ["running"], f"killed too late: {running.stderr}"
    broken = warehouse.query("SELECT rows_loaded > 0, file_hash, slices_hash, committed_at FROM headrace.lineage")
    # Nobody sees the rows of a hidden table.
    assert broken == ([] if is_staged else [("t", None, None, None)])
    ended = warehouse.resume()
    assert "were committed before" in ended.stderr
    run_id = ended.succeeded()["run_id"]
    check_columns(warehouse)
    (file,) = lineage(warehouse, run_id).values()
    assert file["slices_hash"] == together(slice_hashes(warehouse, run_id, path))
    assert (file["rows_loaded"], file["file_hash"]) == ("120000", None)
    assert warehouse.query("SELECT count(*) FROM headrace.lineage WHERE committed_at IS NULL") == [("0",)]


def test_partitions_share_the_slices_of_a_file(warehouse: PostgresProject) -> None:
    """Several commit rows belong to each slice: its text is one."""
    path = warehouse.file("rows.csv", text(20_000))
    partition = "load: staged, partition: {range: {column: id, bounds: [5000, 10000, 15000]}}"
    warehouse.package(PACKAGE.replace(DESTINATION, f'target: "${{target}}", {partition}}}'))
    run_id = warehouse.run().succeeded()["run_id"]
    rows = warehouse.query('SELECT count(*), count(DISTINCT slice) FROM headrace."commit" WHERE slice > 0')
    assert int(rows[0][0] or 0) > int(rows[0][1] or 0)
    counted = 'SELECT DISTINCT count(text_hash) FROM headrace."commit" WHERE slice > 0 GROUP BY slice'
    assert warehouse.query(counted) == [("1",)]
    check_columns(warehouse)
    (file,) = lineage(warehouse, run_id).values()
    assert file["slices_hash"] == together(slice_hashes(warehouse, run_id, path))
    assert file["rows_loaded"] == "20000"
