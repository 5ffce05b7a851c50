"""The verdict about the limit follows from the counters, and says which."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headrace.diagnose import judge
from headrace.diagnose.limit import LIMITS
from headrace.run import FlowCounters
from tests.snapshots import assert_snapshot


def counters(
    *,
    read: float,
    parse: float,
    waiting: float,
    stream_cpu: float,
    process_cpu: float,
    streams: int = 2,
    seconds: float = 10.0,
    consuming: float = 9.0,
    transforming: float = 0.0,
) -> FlowCounters:
    """`read`, `parse`, `transforming`, `waiting` and `stream_cpu` are seconds of each stream; 10 s on 2 CPUs.

    `consuming`: seconds that a consumer in this process worked.
    """

    def stage(busy: float, wait_output: float = 0.0) -> dict[str, float]:
        return {"busy_seconds": busy, "wait_input_seconds": 0.0, "wait_output_seconds": wait_output}

    stream: dict[str, Any] = {
        "cpu_seconds": stream_cpu,
        "stages": {
            "read": stage(read),
            "parse": stage(parse),
            "transform": stage(transforming),
            "write": stage(0.0, waiting),
        },
    }
    return FlowCounters(
        seconds=seconds,
        cpu_seconds=process_cpu,
        cpu_count=2,
        stream_seconds=seconds * streams,
        streams=[stream] * streams,
        sink_wait_seconds=0.0,
        sink_busy_seconds=consuming,
    )


CASES = {
    "destination_cpu": counters(read=0.2, parse=1.8, waiting=8.0, stream_cpu=2.0, process_cpu=17.5),
    "destination_cpu_not_full": counters(read=0.2, parse=1.8, waiting=8.0, stream_cpu=2.0, process_cpu=14.0),
    "shared_cpu": counters(read=0.5, parse=4.5, waiting=5.0, stream_cpu=4.0, process_cpu=19.5),
    "destination_io": counters(read=0.1, parse=0.9, waiting=9.0, stream_cpu=1.0, process_cpu=4.0),
    "source_read": counters(read=8.0, parse=1.0, waiting=1.0, stream_cpu=1.5, process_cpu=4.0),
    "parse": counters(read=1.0, parse=8.5, waiting=0.5, stream_cpu=9.0, process_cpu=19.0),
    "transform": counters(read=1.0, parse=3.5, transforming=5.0, waiting=0.5, stream_cpu=9.0, process_cpu=19.0),
    "shared_cpu_without_waiting": counters(read=1.0, parse=8.0, waiting=1.0, stream_cpu=5.0, process_cpu=19.5),
    "reading_from_memory": counters(read=6.0, parse=3.0, waiting=1.0, stream_cpu=9.0, process_cpu=18.5),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_verdict(case: str) -> None:
    verdict = judge(CASES[case])
    assert verdict is not None
    assert verdict.limit in LIMITS
    assert_snapshot(f"limit_{case}", f"{verdict.limit}: {verdict.sentence}")


def test_without_counters_there_is_no_verdict() -> None:
    assert judge(counters(read=0, parse=0, waiting=0, stream_cpu=0, process_cpu=0)) is None
    assert judge(counters(read=1, parse=1, waiting=1, stream_cpu=1, process_cpu=1, streams=0)) is None


def test_what_the_stages_leave_out_could_be_the_limit() -> None:
    assert judge(counters(read=0.5, parse=4.0, waiting=0.0, stream_cpu=9.0, process_cpu=18.0)) is None
    assert judge(counters(read=0.5, parse=4.6, waiting=0.0, stream_cpu=9.0, process_cpu=18.0)) is not None


def test_a_short_load_has_no_verdict() -> None:
    assert judge(counters(read=0.01, parse=0.4, waiting=0, stream_cpu=0.4, process_cpu=0.8, seconds=0.45)) is None


def test_no_share_is_above_the_whole() -> None:
    """Clocks are read one after the other, and the CPU time of a thread may be counted in ticks."""
    verdict = judge(counters(read=0.5, parse=9.9, waiting=0.0, stream_cpu=12.0, process_cpu=21.0))
    assert verdict is not None
    percents = [int(text) for text in re.findall(r"(\d+)%", verdict.sentence)]
    assert percents and max(percents) <= 100
    verdict = judge(counters(read=9.9, parse=0.5, waiting=0.0, stream_cpu=12.0, process_cpu=21.0))
    assert verdict is not None
    assert "100%" in verdict.sentence


def test_a_server_is_not_judged_by_the_cpu_time_of_this_process() -> None:
    waiting = counters(read=0.1, parse=0.9, waiting=9.0, stream_cpu=1.0, process_cpu=2.0, consuming=0.0)
    assert judge(waiting) is None
    reading = counters(read=8.0, parse=1.0, waiting=0.5, stream_cpu=2.0, process_cpu=4.0, consuming=0.0)
    verdict = judge(reading)
    assert verdict is not None and verdict.limit == "source_read"
