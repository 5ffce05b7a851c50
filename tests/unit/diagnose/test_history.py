"""Verdicts over the life of a data flow: steady ones live, each second one vote at the end, and the long tail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from headrace.diagnose import History, RunJudge, Sample, Verdict
from headrace.diagnose.window import SERVER_COUNTERS
from tests.unit.diagnose.lines import Load

PARSING = Load()
READING = replace(PARSING, read=0.9, on_cpu=0.1)


def behind(first: Iterable[Sample], load: Load, seconds: int) -> list[Sample]:
    """Samples of a load, and then of one that behaves differently: its counters go on where the others ended."""
    samples = list(first)
    begin = samples[-1]
    for second in range(1, seconds + 1):
        now = load.at(second)
        samples.append(Sample(_sum(begin.flow, now.flow), _sum(begin.machine or {}, now.machine or {})))
    return samples


def _sum(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    def one(name: str, before: object, now: object) -> object:
        if name in ("number", "file", "cpus", "streams_active", "ended") or before is None:
            return now
        if isinstance(now, dict) and isinstance(before, dict):
            return _sum(before, now)
        if isinstance(now, list) and isinstance(before, list):
            return [_sum(*pair) for pair in zip(before, now, strict=True)]
        if isinstance(now, int | float) and isinstance(before, int | float):
            return before + now
        return now

    return {name: one(name, old.get(name), value) for name, value in new.items()}


def _add(history: History, sample: Sample) -> Verdict | None:
    return history.add(sample.flow, sample.machine, sample.destinations)


def test_the_live_verdict_changes_only_when_it_stays() -> None:
    history = History()
    shown = []
    for sample in behind([PARSING.at(second) for second in range(11)], READING, 12):
        verdict = _add(history, sample)
        shown.append(None if verdict is None else verdict.limit)
    assert shown[:3] == [None, None, "parse"], "found twice"
    changes = [(old, new) for old, new in pairwise(shown[2:]) if old != new]
    assert changes == [("parse", "source_read")]
    assert shown.index("source_read") >= 13  # a window of 5 s, of which more than half must be so, and 2 s more


def test_each_second_has_one_vote() -> None:
    history = History()
    for sample in behind([PARSING.at(second) for second in range(21)], READING, 6):
        _add(history, sample)
    whole = history.whole()
    assert whole is not None and whole.limit == "parse"
    parts = (history.to_dict() or {})["seconds_by_limit"]
    assert set(parts) == {"parse", "source_read"} and 24 <= sum(parts.values()) <= 26


def test_the_long_tail_is_named_with_its_file_and_its_limit() -> None:
    load = replace(READING, streams=4, ends={1: 10.0, 2: 11.0, 4: 10.0})
    history = History(["a.tbl", "b.tbl", "c.tbl"])
    for second in range(31):
        _add(history, load.at(second))
    assert [(own["number"], own["limit"]) for own in history.streams()] == [(3, "source_read")], "only one works"
    (slow,) = history.slow()
    assert (slow.number, slow.file, slow.is_open) == (3, "c.tbl", True)
    assert 19 <= slow.behind_seconds <= 21
    assert slow.verdict is not None and slow.verdict.limit == "source_read"
    document = history.to_dict()
    assert document is not None and document["slow"][0]["number"] == 3


def test_streams_that_end_together_are_no_tail() -> None:
    load = replace(PARSING, streams=4, ends={1: 29.0, 2: 30.0, 3: 30.0, 4: 29.0})
    history = History()
    for second in range(31):
        _add(history, load.at(second))
    assert history.slow() == []


@pytest.mark.rotates
def test_memory_of_a_long_load_is_bounded() -> None:
    history = History()
    for second in range(30_000):
        _add(history, PARSING.at(second))
    assert len(history._tail._samples) <= 64 and len(history._recent) < 10
    whole = history.whole()
    assert whole is not None and whole.limit == "parse"


def test_counters_of_a_server_are_known_from_the_first_look_on() -> None:
    """The session that asks begins behind the load."""
    load = Load(
        writers=2,
        waits=0.9,
        writer_waits=0.8,
        found={"IO:DataFileExtend": 4, "cpu": 1},
        checkpointer={},
        checkpoints=0.3,
        checkpointing=0.9,
    )
    history = History()
    for second in range(12):
        sample = load.at(second)
        if second == 0:
            counters = dict.fromkeys(SERVER_COUNTERS)
            sample = replace(sample, destinations=[{**line, **counters} for line in sample.destinations])
        _add(history, sample)
    whole = history.whole()
    assert whole is not None and whole.limit == "checkpoint", whole


def test_streams_of_a_whole_run_are_counted_although_none_is_there_at_its_ends() -> None:
    load = Load(
        streams=64,
        writers=64,
        waits=0.5,
        writer_waits=0.8,
        encode=0.2,
        found={"cpu": 5},
        server_cpu=1.8,
        server_queued=0.9,
        on_cpu=0.004,
        queued=0.9,
        ends=dict.fromkeys(range(1, 65), 9.5),
    )
    first = load.at(0)
    history = History()
    for sample in [replace(first, flow={**first.flow, "streams": []}), *(load.at(second) for second in range(1, 11))]:
        _add(history, sample)
    whole = history.whole()
    assert whole is not None and whole.limit == "too_many_streams"
    assert whole.sentence.startswith("64 streams took turns"), "of the sums, not of the longest stretch"


def test_too_little() -> None:
    history = History()
    assert _add(history, PARSING.at(0)) is None
    assert history.whole() is None and history.to_dict() is None and history.streams() == []
    assert _add(history, PARSING.at(0.2)) is None
    assert history.whole() is None
    assert RunJudge().whole() is None


def test_the_verdict_of_a_run_is_that_of_the_longest_limit() -> None:
    judge = RunJudge()
    for load, seconds in ((PARSING, 8), (PARSING, 10), (READING, 12)):
        flow = judge.flow()
        for second in range(seconds + 1):
            _add(flow, load.at(second))
        assert judge.ended(flow) is not None
    whole = judge.whole()
    assert whole is not None
    assert (whole["limit"], whole["flow_seconds_by_limit"]) == ("parse", {"parse": 18.0, "source_read": 12.0})
