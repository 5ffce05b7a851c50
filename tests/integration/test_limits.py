"""Verdicts about loads whose limit was made to happen, from the engine's counters to what the user reads.

Only limits that neighbours cannot move, so that these run beside other tests: `make limits` makes all of them happen.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Ended
from tests.metrics_file import read_metrics
from tests.provoked.cases import CASES, Place, limit_of
from tests.servers.farm import Farm


def provoked(name: str, folder: Path, files: Path, farm: Farm) -> tuple[Ended, dict[str, Any], list[dict[str, Any]]]:
    """Makes it happen: the run, the verdict about it, and its events."""
    missing = CASES[name].missing()
    if missing is not None:
        pytest.skip(missing)
    ended = CASES[name].run(Place(folder, files, farm, random.Random(name)))
    verdict = limit_of(ended)
    assert verdict is not None
    assert verdict["limit"] in CASES[name].expected, verdict["sentence"]
    (events,) = (folder / "project").rglob("events.jsonl")
    return ended, dict(verdict), [json.loads(line) for line in events.read_text().splitlines()]


@pytest.mark.parametrize("name", ["a_slow_pipe_into_duckdb", "a_lock", "a_small_window"])
def test_a_limit_that_was_made_to_happen_is_named(name: str, tmp_path: Path, small_files: Path, servers: Farm) -> None:
    ended, verdict, events = provoked(name, tmp_path, small_files, servers)
    assert verdict["evidence"] and verdict["remedy"]
    told = [event for event in events if event["event"] == "limit"]
    assert [event["is_final"] for event in told[-2:]] == [False, True], "live, and at the end"
    assert {event["limit"] for event in told if event["is_final"]} == {verdict["limit"]}
    assert f": limited by {verdict['limit']}: " in ended.stderr
    (metrics,) = (tmp_path / "project").rglob("metrics.jsonl")
    written = read_metrics(metrics).verdicts
    assert [sample.members["limit"] for sample in written] == [event["limit"] for event in told]


def test_a_slow_file_is_named_with_its_cause(tmp_path: Path, small_files: Path, servers: Farm) -> None:
    ended, verdict, events = provoked("one_slow_file_of_several", tmp_path, small_files, servers)
    (slow,) = verdict["slow"]
    assert slow["limit"] == "source_read"
    assert slow["file"].endswith(".tbl"), "the others have a number behind that"
    told = [event for event in events if event["event"] == "slow_streams"]
    assert told[0]["streams"][0]["file"] == slow["file"]
    assert f"stream {slow['number']} with {slow['file']} is " in ended.stderr
