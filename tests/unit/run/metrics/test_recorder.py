"""When a run measures what, and what becomes of it when measuring fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.run.metrics import MetricsFile, MetricsRecorder, WatchedPlace
from headrace.run.metrics.places import MakeWatcher
from headrace.run.redact import Redactor
from tests.metrics_file import Metrics, read_metrics
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS
from tests.unit.executors.fake_flow import FakeFlow, plan
from tests.unit.run.metrics.lines import counters

PLAN = plan()


def to(make_watcher: MakeWatcher) -> list[WatchedPlace]:
    """The one connection that rows go to."""
    return [WatchedPlace(PLAN.connection, make_watcher)]


class CountingFlow(FakeFlow):
    """A flow that counts, as the core does."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__({})
        self.error_of_measure = error
        self.asked = 0

    def measure(self) -> dict[str, Any]:
        self.asked += 1
        if self.error_of_measure is not None:
            raise self.error_of_measure
        return {**counters(2), "rows_read": self.asked}


class Watcher:
    """A destination that is looked at, until it is closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.looks = 0
        self.closed_at: int | None = None

    def look(self) -> dict[str, Any]:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return {"type": "duckdb", "denied": [], "file_bytes": self.looks}

    def close(self) -> None:
        self.closed_at = self.looks


class Recording:
    """A recorder that writes into a folder."""

    def __init__(self, folder: Path, machine: Any = None, period_seconds: float = 0.02) -> None:
        self.path = folder / "metrics.jsonl"
        self.notices: list[str] = []
        file = MetricsFile(self.path, Redactor(()), self.notices.append)
        self.recorder = MetricsRecorder(
            file, self.notices.append, machine or (lambda: {"cpus": 2.0}), period_seconds=period_seconds
        )

    def metrics(self) -> Metrics:
        return read_metrics(self.path)


def members(samples: list[Any], name: str) -> list[Any]:
    return [sample.members[name] for sample in samples]


def test_a_short_flow_has_a_beginning_and_an_end(tmp_path: Path) -> None:
    recording = Recording(tmp_path, period_seconds=FOR_EVER_SECONDS)
    recording.recorder.start(attempt=3)
    watcher = Watcher()
    with recording.recorder.measuring(PLAN, CountingFlow(), to(lambda: watcher)):
        time.sleep(0.15)
    recording.recorder.stop()
    metrics = recording.metrics()
    assert members(metrics.flows, "rows_read") == [1, 2]
    assert members(metrics.destinations, "file_bytes") == [1, 2]
    assert watcher.closed_at == 1  # and then it tells what it has seen last
    assert len(metrics.machine) >= 2
    assert metrics.attempts == [3]
    assert set(members(metrics.flows, "task")) == {PLAN.task}
    assert set(members(metrics.destinations, "connection")) == {PLAN.connection}
    assert metrics.flows[1].t - metrics.flows[0].t >= 0.15


class NamedFlow(CountingFlow):
    """A flow with several destinations."""

    def measure(self) -> dict[str, Any]:
        writers = [{"destination": "one", "number": 1}, {"destination": "two", "number": 1}]
        sinks = [{"destination": "three", "rows": 1}]
        return {**super().measure(), "writers": writers, "sinks": sinks}


def places(**watchers: MakeWatcher) -> list[WatchedPlace]:
    """Of `one` and `two` in `server`, `three` in `file`, and one that takes nothing in."""
    return [
        WatchedPlace("server", watchers.get("server", Watcher), ["one", "two"]),
        WatchedPlace("file", watchers.get("file", Watcher), ["three"]),
        WatchedPlace("nowhere", lambda: None, ["none"]),
    ]


def test_each_connection_is_watched_and_says_what_is_its_own(tmp_path: Path) -> None:
    recording = Recording(tmp_path, period_seconds=FOR_EVER_SECONDS)
    recording.recorder.start(1)
    server, file = Watcher(), Watcher()
    with recording.recorder.measuring(PLAN, NamedFlow(), places(server=lambda: server, file=lambda: file)):
        pass
    recording.recorder.stop()
    metrics = recording.metrics()
    assert members(metrics.destinations, "connection") == ["server", "file"] * 2
    assert members(metrics.destinations, "file_bytes") == [1, 1, 2, 2]
    assert (server.closed_at, file.closed_at) == (1, 1)
    for line in metrics.flows:
        writers = [(own["connection"], own["destination"]) for own in line.members["writers"]]
        assert writers == [("server", "one"), ("server", "two")]
        assert line.members["sinks"] == [{"connection": "file", "destination": "three", "rows": 1}]


def test_of_one_connection_writers_need_not_say_whose_they_are(tmp_path: Path) -> None:
    """Also beside a query over all rows: it is judged as ever."""
    recording = Recording(tmp_path, period_seconds=FOR_EVER_SECONDS)
    recording.recorder.start(1)
    server, file, _ = places()
    query = replace(file, connection="server", make_watcher=lambda: None)
    with recording.recorder.measuring(PLAN, NamedFlow(), [server, query]):
        pass
    recording.recorder.stop()
    (line, _) = recording.metrics().flows
    assert not any("connection" in own for own in (*line.members["writers"], *line.members["sinks"]))


@pytest.mark.parametrize("broken", ["server", "file"])
@pytest.mark.parametrize("looks", [False, True])
def test_a_watcher_that_fails_does_not_disturb_the_others(tmp_path: Path, broken: str, looks: bool) -> None:
    error = OSError("no such thing")

    def watch() -> Watcher:
        if not looks:
            raise error
        return Watcher(error)

    recording = Recording(tmp_path)
    recording.recorder.start(1)
    with recording.recorder.measuring(PLAN, NamedFlow(), places(**{broken: watch})):
        time.sleep(0.05)
    recording.recorder.stop()
    assert recording.notices == [f"lines of kind `destination` are missing in the metrics of the run: {error!r}"]
    assert set(members(recording.metrics().destinations, "connection")) == {"server", "file"} - {broken}


def test_lines_come_while_a_flow_runs_and_not_behind_it(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.start(1)
    flow = CountingFlow()
    with recording.recorder.measuring(PLAN, flow, ()):
        deadline = time.monotonic() + HANG_SECONDS
        while flow.asked < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
    asked = flow.asked
    time.sleep(0.1)
    recording.recorder.stop()
    metrics = recording.metrics()
    assert members(metrics.flows, "rows_read") == list(range(1, asked + 1)) == list(range(1, flow.asked + 1))
    assert metrics.destinations == []
    assert metrics.machine[-1].t > metrics.flows[-1].t
    assert metrics.out_of_order == metrics.damaged == 0


def test_a_flow_that_does_not_count(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.start(1)
    with recording.recorder.measuring(PLAN, FakeFlow({}), to(Watcher)):
        time.sleep(0.05)
    recording.recorder.stop()
    assert recording.metrics().flows == []
    assert len(recording.metrics().destinations) >= 2
    assert recording.notices == []


@pytest.mark.parametrize("broken", ["machine", "flow", "destination", "watcher"])
def test_what_fails_is_left_out_and_told_once(tmp_path: Path, broken: str) -> None:
    error = OSError("no such thing")

    def machine() -> Mapping[str, Any]:
        if broken == "machine":
            raise error
        return {"cpus": 2.0}

    def watch() -> Watcher:
        if broken == "watcher":
            raise error
        return Watcher(error if broken == "destination" else None)

    recording = Recording(tmp_path, machine)
    recording.recorder.start(1)
    with recording.recorder.measuring(PLAN, CountingFlow(error if broken == "flow" else None), to(watch)):
        time.sleep(0.1)
    recording.recorder.stop()
    kind = "destination" if broken == "watcher" else broken
    assert recording.notices == [f"lines of kind `{kind}` are missing in the metrics of the run: {error!r}"]
    found = set(recording.metrics().by_kind)
    assert found == {"machine", "flow", "destination"} - {kind}


def test_an_error_of_the_load_goes_through(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.start(1)
    flow, watcher = CountingFlow(), Watcher()
    with pytest.raises(KeyError), recording.recorder.measuring(PLAN, flow, to(lambda: watcher)):
        raise KeyError("load")
    recording.recorder.stop()
    assert flow.asked == 2
    assert watcher.closed_at is not None


def test_it_stops_at_once(tmp_path: Path) -> None:
    """Whatever the period is; and what was never started can be stopped."""
    recording = Recording(tmp_path, period_seconds=FOR_EVER_SECONDS)
    recording.recorder.start(1)
    threads = {thread.name for thread in threading.enumerate()}
    started = time.monotonic()
    recording.recorder.stop()
    assert time.monotonic() - started < HANG_SECONDS
    assert "metrics of the run" in threads - {thread.name for thread in threading.enumerate()}
    Recording(tmp_path).recorder.stop()


def test_loops_of_tiny_flows_do_not_look_at_the_machine_each_time(tmp_path: Path) -> None:
    looks: list[int] = []

    def machine() -> Mapping[str, Any]:
        looks.append(1)
        return {"cpus": 2.0}

    recording = Recording(tmp_path, machine, period_seconds=FOR_EVER_SECONDS)
    started = time.monotonic()
    for _ in range(50):
        with recording.recorder.measuring(PLAN, CountingFlow(), to(lambda: None)):
            pass
    assert len(looks) <= 2 + (time.monotonic() - started) / 0.1
    recording.recorder.stop()
    assert len(recording.metrics().flows) == 100


def test_a_full_disk_does_not_disturb_the_load(tmp_path: Path) -> None:
    notices: list[str] = []
    recorder = MetricsRecorder(MetricsFile(Path("/dev/full"), Redactor(()), notices.append), notices.append)
    recorder.start(1)
    with recorder.measuring(PLAN, CountingFlow(), to(Watcher)):
        pass
    recorder.stop()
    assert len(notices) == 1
