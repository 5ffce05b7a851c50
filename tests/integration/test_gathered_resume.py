"""Runs that end behind the commit of a query over all rows, and go on: what they say of its table is what the run that
has loaded it said, as long as the run folder has it.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import pytest

from tests.integration import union_scenes
from tests.integration.driver import Ended, Project
from tests.integration.gate import BEHIND
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import ROWS, package, write_files
from tests.patience import HANG_SECONDS

CHAIN = (
    "SELECT *, coalesce(quantity, 0) AS q FROM orders WHERE id % 10 <> 3",
    "SELECT q, count(*) AS n, sum(id)::BIGINT AS ids FROM q1 GROUP BY q",
    "SELECT q, n, ids FROM q2 WHERE q <> 2",
)
COUNTS = ("lines", "rows_read", "rows_skipped", "rows_rejected", "rows_filtered", "rows_loaded", "slices", "gathered")
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def told(ended: Ended) -> dict[str, Any]:
    """The accounts of the first table, and of its rejects."""
    table = ended.summary["tables"][0]
    return {**{name: table[name] for name in COUNTS}, "rejects": _rejects(table)}


def _rejects(table: dict[str, Any]) -> dict[str, Any]:
    return {name: table["rejects"][name] for name in ("count", "by_rule", "by_column")}


def with_rejects(project: Project) -> None:
    """Orders of which two are none."""
    write_files(project)
    for name, line in (("orders.0", "x|1.00|2||||2026-01-01|true\n"), ("orders.2", "7|1.00|2||||2026-13-01|true\n")):
        path = project.inbox / name
        path.write_text(path.read_text() + line)


def rejects(project: Project) -> str:
    shown = project.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout


@pytest.fixture
def orders(project: Project) -> Project:
    with_rejects(project)
    project.execute("CREATE TABLE gate (open BOOL)")
    project.package(package(*CHAIN, limit=5) + BEHIND)
    return project


def test_a_run_that_goes_on_behind_it_tells_the_same(orders: Project) -> None:
    failed = orders.run("--streams", "4")
    assert failed.exit_code == 1
    first = told(failed)
    assert (first["rows_read"], first["rows_rejected"], first["rejects"]["count"]) == (ROWS + 2, 2, 2)
    assert first["gathered"]["rows_in"] == ROWS + 2 - 2 - first["rows_filtered"]
    assert first["gathered"]["rows_out"] == first["rows_loaded"] + 1
    orders.execute("INSERT INTO gate VALUES (true)")
    resumed = orders.resume()
    resumed.succeeded()
    assert told(resumed) == first
    shown = rejects(orders)
    assert "2 of 4,002" in shown
    assert "replay" not in shown
    written = orders.command(
        [sys.executable, "-m", "headrace", "report", "--runs-dir", "runs", "last", "--output", "r.html"]
    )
    assert written.exit_code == 0, written.stderr
    assert "do not balance" not in (orders.folder / "r.html").read_text(encoding="utf-8")


def test_what_nobody_knows_any_more_is_said(orders: Project) -> None:
    assert orders.run().exit_code == 1
    (kept,) = orders.runs.glob("*/rejects/out.gathered.json")
    document = json.loads(kept.read_text())
    document["slices"][0]["out"] += 1
    kept.write_text(json.dumps(document))  # of another attempt
    orders.execute("INSERT INTO gate VALUES (true)")
    (table,) = orders.resume().succeeded()["tables"][:1]
    assert (table["rows_read"], table["rows_loaded"], table["gathered"]) == (7, 6, None)
    assert any("how many rows the query q2 has read is not known any more" in note for note in table["notes"])


@pytest.fixture
def stored(warehouse: PostgresProject) -> PostgresProject:
    with_rejects(warehouse)
    warehouse.package(package(*CHAIN, limit=5))
    return warehouse


def written_in_front(stored: PostgresProject) -> str:
    """What a run has written when its second flow cannot commit; the run is killed then."""
    with (
        stored.target.session("BEGIN; LOCK TABLE headrace.commit IN SHARE MODE"),
        stored.started(stored.arguments("--streams", "4")) as running,
    ):
        before, deadline = set(stored.runs.glob("*/rejects/out.gathered.json")), time.monotonic() + 60
        while not (own := set(stored.runs.glob("*/rejects/out.gathered.json")) - before):
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
            time.sleep(0.02)
        running.signal(signal.SIGKILL)
        running.wait()
    (path,) = own
    return path.read_text()


def kill_before_the_switch(stored: PostgresProject, table: str) -> None:
    with (
        stored.target.session(f"BEGIN; LOCK TABLE {table} IN ACCESS SHARE MODE"),
        stored.started(stored.arguments("--streams", "4")) as running,
    ):
        deadline = time.monotonic() + HANG_SECONDS
        while stored.query(WAITING) == [("0",)]:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
            time.sleep(0.02)
        running.signal(signal.SIGKILL)
        running.wait()


@pytest.mark.faults
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_settled", [True, False])
def test_a_run_that_is_killed_before_the_switch_tells_the_same(
    stored: PostgresProject, is_known: bool, is_settled: bool
) -> None:
    """Not settled: killed when its rows are committed, and before it knows that."""
    whole = stored.run("--streams", "4")
    whole.succeeded()
    in_front = None if is_settled else written_in_front(stored)
    content = stored.query("SELECT * FROM out ORDER BY 1")
    kill_before_the_switch(stored, "out")
    if in_front is not None:
        for kept in stored.runs.glob("*/rejects/out.gathered.json"):
            kept.write_text(in_front)
    if not is_known:
        for kept in stored.runs.glob("*/rejects/out.gathered.json"):
            kept.unlink()
    resumed = stored.resume()
    (table,) = resumed.succeeded()["tables"]
    assert stored.query("SELECT * FROM out ORDER BY 1") == content
    if is_known:
        assert told(resumed) == told(whole)
        assert table["bytes_read"] == 0
        assert "2 of 4,002" in rejects(stored)
        rows = [own["rows"] for own in whole.summary["tables"][0]["transforms"]]
        assert [own["slices_not_counted"] for own in table["transforms"]] == [0, 0, 0]
        assert [own["rows"] for own in table["transforms"]] == rows
    else:
        assert table["rows_loaded"] == 6
        assert "how many rows the query q2 has read is not known any more" in resumed.stderr
    assert stored.leftovers() == []


def test_rows_of_the_query_are_not_told_as_those_of_a_source(warehouse: PostgresProject) -> None:
    """Of a union in front of it nothing is known any more, either."""
    union_scenes.write_files(warehouse)
    sums = 'sums: {input: united, sql: "SELECT channel, count(*) AS n FROM united GROUP BY channel"}'
    warehouse.package(union_scenes.package(sums, input="sums"))
    warehouse.run().succeeded()
    kill_before_the_switch(warehouse, "orders")
    for kept in warehouse.runs.glob("*/rejects/orders.gathered.json"):
        kept.unlink()
    (table,) = warehouse.resume().succeeded()["tables"]
    assert (table["union"], table["gathered"], table["rows_loaded"]) == (None, None, 2)


JOINED = """
headrace: 1
package: joined
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  heads: {delimiter: "|", columns: [{name: id, type: int64, nullable: false}, {name: kind, type: string}]}
  lines: {delimiter: "|", columns: [{name: head, type: int64, nullable: false}, {name: n, type: int32}]}
tasks:
  load:
    data_flow:
      rejects: {limit: 1}
      sources:
        heads: {connection: inbox, files: "heads.*", layout: heads}
        lines: {connection: inbox, files: "lines.*", layout: lines}
      transforms:
        met: {join: {left: heads, right: lines, on: {id: head}, type: inner}}
        few: {input: met, sql: "SELECT * FROM met WHERE n > 2"}
        kinds: {input: few, sql: "SELECT kind, count(*) AS lines FROM few GROUP BY kind"}
        chosen: {input: kinds, sql: "SELECT * FROM kinds WHERE kind <> 'k1'"}
      destinations:
        out: {input: chosen, connection: warehouse, table: out, target: replace}
"""


def test_a_join_in_front_of_it(project: Project) -> None:
    """Each pair of files is told by its first slice; the join is known behind a resume, too."""
    for number in range(2):
        ids = range(number * 10, number * 10 + 10)
        project.file(f"heads.{number}", "".join(f"{own}|k{own % 5}\n" for own in ids))
        project.file(f"lines.{number}", "".join(f"{own}|{line}\n" for own in ids for line in range(5)))
    with (project.inbox / "lines.1").open("a") as file:
        file.write("x|1\n")
    project.execute("CREATE TABLE gate (open BOOL)")
    project.package(JOINED + BEHIND)
    failed = project.run()
    (table, *_) = failed.summary["tables"]
    assert [(own["rows"], own["matched"], own["slices_not_counted"]) for own in table["transforms"]] == [
        (100, 40, 0),
        (40, 5, 0),
        (5, 4, 0),
    ]
    assert (table["gathered"], table["join"]["rows_out"]) == (
        {"rows_in": 40, "rows_out": 5, "filtered_behind": 1},
        100,
    )
    project.execute("INSERT INTO gate VALUES (true)")
    resumed = project.resume()
    resumed.succeeded()
    assert told(resumed) == told(failed)
    assert resumed.summary["tables"][0]["join"] == table["join"]
