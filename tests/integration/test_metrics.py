"""What runs of the command line leave in metrics.jsonl."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.run.metrics import Sample
from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.metrics_file import Metrics, read_metrics
from tests.servers.cluster import LOADER

# What is no counter, but how things are at the moment.
GAUGES = {
    "t",
    "attempt",
    "cpus",
    "total_bytes",
    "available_bytes",
    "resident_bytes",
    "streams_active",
    "blocks_used",
    "blocks_total",
    "slice",
    "file",
    "slice_bytes",
    "slice_bytes_total",
    "spill_bytes",
    "rtt_seconds",
    "least_rtt_seconds",
    "delivery_rate_bytes",
    "not_sent_bytes",
    "unacknowledged",
    "congestion_window",
    "segment_bytes",
    "blocked_by",
}


def numbers(data: Any, *path: object) -> Iterator[tuple[tuple[object, ...], float]]:
    """All counters, each by its path; members of lists by their process or number."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name not in GAUGES:
                yield from numbers(value, *path, name)
    elif isinstance(data, list):
        for position, item in enumerate(data):
            keys = (item.get("process_id"), item.get("number")) if isinstance(item, dict) else (position,)
            yield from numbers(item, *path, *keys)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path, data


def check_counters(samples: list[Sample]) -> int:
    """No counter falls from line to line; how many there are in the last one."""
    before: dict[tuple[object, ...], float] = {}
    for sample in samples:
        now = dict(numbers(sample.members))
        assert {path: (before[path], value) for path, value in now.items() if value < before.get(path, value)} == {}
        before = now
    return len(before)


def check(metrics: Metrics, task: str, kind: str) -> None:
    """Whole lines in order, once a second, from the beginning to the end."""
    assert (metrics.damaged, metrics.out_of_order, metrics.attempts) == (0, 0, [1])
    assert set(metrics.by_kind) <= {"machine", "flow", "destination", "verdict"}
    watched = metrics.of("destination", task=task)
    assert len(watched) == len(metrics.destinations)
    assert {sample.members["type"] for sample in watched} == {kind}
    assert len(metrics.flows) == len(watched)
    for samples in (metrics.machine, watched, metrics.flows):
        assert len(samples) >= 3
        assert check_counters(samples) > 1
        gaps = [after.t - before.t for before, after in pairwise(samples)]
        assert statistics.median(gaps) < 1.5
        # A machine that is busy with something else may hold up some of them.
        assert max(gaps) < 10


def metrics_of(project: Project) -> Metrics:
    [path] = project.runs.glob("*/metrics.jsonl")
    return read_metrics(path)


@pytest.fixture
def some_seconds(tpch_files: Path) -> list[Path]:
    """Files of LINEITEM, to be loaded several times over."""
    return sorted(tpch_files.glob("lineitem.*"))


def test_a_run_into_postgresql(warehouse: PostgresProject, some_seconds: list[Path]) -> None:
    """Every writer is found at work; the watch is nobody's writer and leaves nothing behind."""
    warehouse.tpch("lineitem")
    warehouse.link(some_seconds, copies=12)
    warehouse.run().succeeded()
    metrics = metrics_of(warehouse)
    check(metrics, "load_lineitem", "postgres")
    last = metrics.destinations[-1].members
    assert (last["is_local"], len(last["sessions"])) == (True, 4)
    for session in last["sessions"]:
        assert session["cpu_seconds"] > 0 and session["tuples"] > 0
        assert 0 < sum(session["found"].values()) <= last["samples"]
    assert last["wal_bytes"] > 0
    assert "connection" in last and last["connection"] == "warehouse"
    assert warehouse.leftovers() == []


def test_writers_of_all_tables_of_a_flow_are_found_at_work(
    warehouse: PostgresProject, some_seconds: list[Path]
) -> None:
    warehouse.tpch("lineitem")
    loaded = "loaded: {input: rows, connection: warehouse, table: lineitem,"
    path = warehouse.folder / "package.yaml"
    package = path.read_text()
    assert loaded in package
    again = loaded.replace("loaded", "again").replace("table: lineitem", "table: copies")
    path.write_text(package.replace(loaded, f"{again} target: replace}}\n        {loaded}"))
    warehouse.link(some_seconds, copies=6)
    warehouse.run().succeeded()
    metrics = metrics_of(warehouse)
    watched, counted = metrics.destinations[-1].members, metrics.flows[-1].members
    assert len(watched["sessions"]) == 8
    assert {session["process_id"] for session in watched["sessions"]} == {
        writer["process_id"] for writer in counted["writers"]
    }
    assert all(sum(session["found"].values()) > 0 for session in watched["sessions"])


def test_a_run_into_duckdb(project: Project, some_seconds: list[Path]) -> None:
    project.tpch("lineitem")
    project.link(some_seconds, copies=12)
    project.run().succeeded()
    metrics = metrics_of(project)
    check(metrics, "load_lineitem", "duckdb")
    assert metrics.destinations[-1].members["file_bytes"] > metrics.destinations[0].members["file_bytes"]
    assert metrics.machine[-1].members["process"]["cpu_seconds"] > 0
    assert project.leftovers() == []


def test_a_short_run_and_one_that_fails(project: Project) -> None:
    """Both have a beginning and an end; nobody is told anything."""
    project.file("orders.tbl.1")
    project.run().succeeded()
    project.file("orders.tbl.2", "damaged\n")
    ended = project.run()
    assert ended.exit_code == 1
    for path in project.runs.glob("*/metrics.jsonl"):
        metrics = read_metrics(path)
        assert len(metrics.machine) >= 1
        assert len(metrics.destinations) == len(metrics.flows) == 2
        assert metrics.damaged == 0
    assert not [event for event in project.events() if "metrics" in str(event.get("text"))]


def test_a_role_with_few_sessions_keeps_them_for_its_writers(warehouse: PostgresProject) -> None:
    """A control session and four writers: a fifth one, for watching, would have kept one of them out."""
    warehouse.file("orders.tbl.1")
    warehouse.sales()
    warehouse.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 5")
    try:
        warehouse.run().succeeded()
    finally:
        warehouse.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
    last = metrics_of(warehouse).destinations[-1].members
    assert last["denied"] == [
        "what the server does: 4 sessions are left over for the load, and so none for watching it"
    ]
    told = [event["text"] for event in warehouse.events() if event["event"] == "notice"]
    assert len([text for text in told if text.startswith("what the server of warehouse does is not looked at")]) == 1


def test_the_lines_of_a_resumed_run_go_behind_the_first_ones(
    warehouse: PostgresProject, some_seconds: list[Path]
) -> None:
    """Also behind one that was cut off when the process was killed."""
    warehouse.tpch("lineitem")
    warehouse.link(some_seconds, copies=4)
    with warehouse.started(warehouse.arguments()) as running:
        warehouse.wait_for_event(running, "progress")
        running.end()
    [path] = warehouse.runs.glob("*/metrics.jsonl")
    with path.open("ab") as file:
        file.write(b'{"kind":"mach')
    ended = warehouse.resume()
    assert ended.exit_code == 0, ended.stderr
    metrics = read_metrics(path)
    assert (metrics.attempts, metrics.damaged, metrics.out_of_order) == ([1, 2], 1, 0)
    for attempt in metrics.attempts:
        assert metrics.of("machine", attempt)[0].t < 10
    assert json.loads(ended.stdout)["rows_loaded"] > 0
