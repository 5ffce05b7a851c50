"""What is taken from a run folder, whatever is missing or damaged in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.report.measures import Measures
from headrace.report.run_files import RunFiles, is_run_folder, read_run
from headrace.report.sections import destination, limits
from headrace.report.sections.figures import accounts
from headrace.report.tails import tails_of
from headrace.report.timeline import Attempt, Timeline
from headrace.report.values import number, text
from headrace.run.metrics import Sample
from tests.report.scenarios import postgres_hour
from tests.report.synthetic import event, write_lines


@pytest.fixture(scope="module")
def tailed(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """The hour with a long tail, in 90 seconds."""
    return read_run(postgres_hour(tmp_path_factory.mktemp("tailed"), seconds=90, streams=24))


def test_what_is_not_a_number() -> None:
    values = [True, "3", None, [], float("nan"), float("inf"), -float("inf"), 10**400]
    assert [number({"a": value}, "a") for value in values] == [None] * len(values)
    assert number({"a": {"b": 3}}, "a", "b") == 3
    assert number({"a": 3}, "a", "b") is None
    assert text({"a": ""}, "a") is None


def test_states_are_all_of_the_time(run_folder: Callable[[str], Path]) -> None:
    run = read_run(run_folder("duckdb"))
    flow = next(iter(run.measures.flows.values()))
    for stream in flow.streams.values():
        assert sum(stream.state_seconds().values()) == pytest.approx(flow.end - flow.begin + 1, rel=0.1)
    assert run.notes == ()
    assert [account.difference() for account in accounts(run)] == [0, 0]


def test_states_of_a_stream_that_has_ended(tailed: RunFiles) -> None:
    """It waits for slices, which stands in the counter of waiting for the destination too: both are rounded."""
    (flow,) = tailed.measures.flows.values()
    for stream in flow.streams.values():
        assert sum(stream.state_seconds().values()) == pytest.approx(flow.end - flow.begin + 1, rel=0.1)
        waited = stream.state_curves()["wait_destination"]
        assert waited.growth([flow.end - 4, flow.end])[0] == pytest.approx(0, abs=0.01) or stream.number == 1


def test_the_long_tail_is_named(tailed: RunFiles) -> None:
    tail = tails_of(tailed)[0]
    assert (tail.stream, tail.file, tail.limit) == (1, "orders_01.csv", "source_read")
    assert tail.behind_seconds > 2


def test_slices_of_a_stream(run_folder: Callable[[str], Path]) -> None:
    run = read_run(run_folder("many_slices"))
    (flow,) = run.measures.flows.values()
    assert sum(int(stream.last("slices") or 0) for stream in flow.streams.values()) == 2_000
    for stream in flow.streams.values():
        assert all(before.end <= behind.begin for before, behind in zip(stream.spans, stream.spans[1:], strict=False))


def test_attempts_stand_behind_one_another(run_folder: Callable[[str], Path]) -> None:
    run = read_run(run_folder("two_attempts"))
    first, second = run.timeline.attempts
    assert (first.number, second.number) == (1, 2)
    assert second.offset == first.seconds
    assert run.timeline.seconds < 60, "the two hours between them are left out"
    assert [key[0] for key in run.measures.flows] == [1, 2]


def test_damaged_lines_cost_one_point_each(run_folder: Callable[[str], Path]) -> None:
    damaged, whole = read_run(run_folder("damaged")), read_run(run_folder("rejects"))
    assert "7 lines of metrics.jsonl were damaged and left out." in damaged.notes
    (flow,), (other,) = damaged.measures.flows.values(), whole.measures.flows.values()
    assert flow.curve("bytes_read").total == other.curve("bytes_read").total


def test_a_run_that_goes_on(run_folder: Callable[[str], Path]) -> None:
    run = read_run(run_folder("running"))
    assert run.status is None
    assert run.notes[0].startswith("The run has not ended, or was killed")
    (account,) = accounts(run)
    assert (account.table, account.status, account.loaded) == ("orders", "not ended", None)


def test_a_clock_that_is_changed(tmp_path: Path) -> None:
    task = {"task": "load", "kind": "data_flow"}
    for name, late in (("put_on", 3_600.0), ("put_back", -3_600.0)):
        folder = tmp_path / name
        folder.mkdir()
        lines = [
            event("run_started", 0, run_id="x", package="p"),
            event("task_started", 1, **task),
            event("task_finished", late, **task, status="success", seconds=4, error=None),
            event("run_finished", late + 1, run_id="x", status="success", seconds=6.0, error=None),
        ]
        write_lines(folder / "events.jsonl", lines)
        run = read_run(folder)
        assert run.timeline.seconds == 6
        assert any(note.startswith("The clock was changed during attempt 1") for note in run.notes)
        span = run.events.attempts[0].tasks["load"]
        assert span.end is not None
        assert 0 <= span.begin <= span.end <= 6


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, b"[" * 100_000, b'{"tables": 3, "limit": [], "error": "x"}'])
def test_any_document(tmp_path: Path, damage: bytes) -> None:
    for name in ("summary.json", "request.json", "environment.json", "sources.json", "events.jsonl", "metrics.jsonl"):
        (tmp_path / name).write_bytes(damage)
    assert accounts(read_run(tmp_path)) == []


def test_folders_of_runs(tmp_path: Path) -> None:
    assert not is_run_folder(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    assert is_run_folder(tmp_path)


def test_a_flow_that_is_tried_again_goes_on() -> None:
    measures = Measures()
    for time, size in ((1, 100), (2, 300), (3, 50), (4, 250)):
        line = {"task": "load", "bytes_read": size, "streams": [], "writers": []}
        assert measures.take(Sample("flow", 1, time, line))
    measures.close()
    curve = measures.flows[1, "load"].curve("bytes_read")
    assert curve.at(4.0) == 550


def test_writers_of_several_destinations_are_told_apart() -> None:
    """Each has a writer 1: one counter behind the other would be seconds that nobody spent."""
    measures = Measures()
    for time in (1.0, 2.0, 3.0):
        writers: list[dict[str, Any]] = [
            {"destination": "orders", "connection": "warehouse", "number": 1, "busy_seconds": 0.9 * time},
            {"destination": "kept", "connection": "archive", "number": 1, "busy_seconds": 0.1 * time},
        ]
        assert measures.take(Sample("flow", 1, time, {"task": "load", "streams": [], "writers": writers}))
    measures.close()
    found = measures.flows[1, "load"].writers
    assert {key: writer.place for key, writer in found.items()} == {("orders", 1): "warehouse", ("kept", 1): "archive"}
    assert [writer.state_seconds()["send"] for writer in found.values()] == pytest.approx([2.7, 0.3])


def test_each_connection_has_charts_of_its_own(tmp_path: Path) -> None:
    folder = postgres_hour(tmp_path, seconds=30, streams=2)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    watched = [line for line in lines if line["kind"] == "destination"]
    alone = destination.section(read_run(folder))
    assert alone is not None and 'id="destination-log"' in str(alone.body)
    archive = [{**line, "connection": "archive"} for line in watched]
    files = [
        {**line, "connection": "files", "type": "duckdb", "file_bytes": 10**6, "wal_bytes": 0, "spill_bytes": 0}
        for line in watched
    ]
    write_lines(folder / "metrics.jsonl", [*archive, *files])
    section = destination.section(read_run(folder))
    assert section is not None
    titles = re.findall(r"<title id=\"(destination-[\w-]+)-title\">([^<]*)", str(section.body))
    own = watched[0]["connection"]
    assert titles == [
        ("destination-waits-0", f"What the sessions of the server were found at: {own}"),
        ("destination-log-0", f"Write-ahead log: {own}"),
        ("destination-waits-1", "What the sessions of the server were found at: archive"),
        ("destination-log-1", "Write-ahead log: archive"),
        ("destination-files-2", "Files of DuckDB: files"),
    ]
    log = re.search(r"[\d.]+ GB in all|[\d.]+ MB in all", str(alone.body))
    assert log is not None and str(section.body).count(log[0]) == 2, "not twice as much of one of them"


def test_a_limit_that_moves_to_another_connection_is_another_band() -> None:
    lines: list[dict[str, Any]] = [
        {"t": 3.0, "limit": "locks", "connection": "one", "sentence": "at_one", "is_final": False},
        {"t": 7.5, "limit": "locks", "connection": "two", "sentence": "at_two", "is_final": False},
        {"t": 20.0, "limit": "locks", "connection": "two", "sentence": "at_two", "is_final": True},
    ]
    measures = Measures()
    for line in lines:
        assert measures.take(Sample("verdict", 1, line["t"], {**line, "task": "load"}))
    run = replace(read_run(Path("nowhere")), measures=measures, timeline=Timeline([Attempt(1, 0.0, 25.0)]))
    section = limits.section(run)
    assert section is not None
    assert re.findall(r"<title>(\w+), (\d+:\d+) to (\d+:\d+): (\w+)", section.body) == [
        ("locks", "0:00", "0:08", "at_one"),
        ("locks", "0:08", "0:20", "at_two"),
    ]


def test_bands_of_verdicts_without_a_window() -> None:
    """As a run writes them: when the limit is another one, and at the end, which is about all of it."""
    lines: list[dict[str, Any]] = [
        {"t": 3.0, "limit": "parse", "is_final": False},
        {"t": 7.5, "limit": "network", "is_final": False},
        {"t": 20.0, "limit": "network", "is_final": True, "remedy": "Use a faster link."},
    ]
    measures = Measures()
    for line in lines:
        assert measures.take(Sample("verdict", 1, line["t"], {**line, "task": "load"}))
    assert [(verdict.limit, verdict.at, verdict.is_final) for verdict in measures.verdicts] == [
        ("parse", 3.0, False),
        ("network", 7.5, False),
        ("network", 20.0, True),
    ]
    run = replace(read_run(Path("nowhere")), measures=measures, timeline=Timeline([Attempt(1, 0.0, 25.0)]))
    section = limits.section(run)
    assert section is not None
    assert re.findall(r"<title>(\w+), (\d+:\d+) to (\d+:\d+):", section.body) == [
        ("parse", "0:00", "0:08"),
        ("network", "0:08", "0:20"),
    ]
    verdict = run.verdict()
    assert verdict is not None and verdict.remedy == "Use a faster link."
