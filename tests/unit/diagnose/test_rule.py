"""The rule on loads that are told in numbers. Loads whose limits are made happen: tests/integration/test_limits.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.diagnose import LIMITS, judge, window
from tests.unit.diagnose.lines import Load

PARSING = Load()
DUCKDB = Load(engine_busy=1.0, waits=0.5, engine_cpu=0.9)
POSTGRES = Load(writers=2, waits=0.5, writer_waits=0.8, encode=0.2, found={"cpu": 5})
FAR = replace(POSTGRES, transport="tcp")

CASES = {
    "parsing": ("parse", PARSING),
    "parsing beside a server that waits": ("parse", replace(PARSING, writers=2, found={"Client:ClientRead": 5})),
    "more streams than CPUs, nobody else": ("parse", replace(PARSING, streams=6, on_cpu=1 / 3, queued=2 / 3)),
    "finding partitions": ("transform", replace(PARSING, transform=0.6)),
    "encoding": ("encode", replace(PARSING, writers=2, encode=0.7, found={"client": 5})),
    "a slow disk": ("source_read", replace(PARSING, read=0.8, on_cpu=0.25)),
    "a compressed file": ("source_read", replace(PARSING, read=0.8)),
    "a slow disk beside busy programs": ("source_read", replace(PARSING, read=0.8, on_cpu=0.2, others_cpu=1.6)),
    "other programs": ("client_cpu", replace(PARSING, on_cpu=0.5, queued=0.5, others_cpu=1.0)),
    "a quota": ("client_cpu", replace(PARSING, on_cpu=0.5, queued=0.5, throttled=0.5)),
    "a large quota that is reached now and then": (
        "parse",
        replace(PARSING, cpus=32, on_cpu=0.5, queued=0.5, throttled=0.5),
    ),
    "a host": ("client_cpu", replace(PARSING, on_cpu=0.6, queued=0.4, steal=0.8)),
    "an engine that computes": ("destination_cpu", replace(DUCKDB, waits=0.9, engine_cpu=1.8)),
    "an engine with one thread": ("destination_cpu", replace(DUCKDB, waits=0.9, engine_cpu=0.95)),
    "an engine with one thread among many CPUs": (
        "destination_cpu",
        replace(DUCKDB, cpus=8, waits=0.9, engine_cpu=0.95),
    ),
    "an engine that waits now and then": ("destination_io", replace(DUCKDB, cpus=8, waits=0.9, engine_cpu=0.85)),
    "an engine beside the streams": ("shared_cpu", DUCKDB),
    "an engine that is nearly always at work": ("shared_cpu", replace(DUCKDB, waits=0.2, engine_cpu=0.8)),
    "an engine and other programs": (
        "client_cpu",
        replace(DUCKDB, waits=0.8, engine_cpu=0.6, engine_queued=0.5, others_cpu=1.0),
    ),
    "an engine that waits for its disk": ("destination_io", replace(DUCKDB, waits=0.9, engine_cpu=0.1)),
    "an engine that waits for its disk beside busy programs": (
        "destination_io",
        replace(DUCKDB, waits=0.9, engine_cpu=0.1, engine_queued=0.2, others_cpu=1.7),
    ),
    "an engine that spills": ("memory", replace(DUCKDB, waits=0.9, engine_cpu=0.5, spilled=10**9)),
    "a machine without memory": ("memory", replace(DUCKDB, waits=0.9, engine_cpu=0.3, pressure=0.4)),
    "a server that computes": ("destination_cpu", POSTGRES),
    "a server here, with CPUs to spare": ("destination_cpu", replace(POSTGRES, cpus=8, server_cpu=2.0)),
    "a server on the same CPUs": ("shared_cpu", replace(POSTGRES, server_cpu=1.0)),
    "a server among other programs": (
        "client_cpu",
        replace(POSTGRES, waits=0.9, encode=0.05, server_cpu=0.5, server_queued=0.8, others_cpu=1.3),
    ),
    "a server that has no CPU while it is at its log": (
        "client_cpu",
        replace(
            POSTGRES,
            waits=0.9,
            encode=0.05,
            found={"LWLock:WALInsert": 4, "cpu": 1},
            server_cpu=0.4,
            server_queued=0.6,
            others_cpu=1.4,
        ),
    ),
    "sessions that wait for one that has no CPU": (
        "client_cpu",
        replace(
            POSTGRES,
            waits=0.9,
            encode=0.05,
            found={"LWLock:WALWrite": 3, "Lock:extend": 1, "cpu": 1},
            server_cpu=0.3,
            server_queued=0.5,
            others_cpu=1.2,
        ),
    ),
    "sessions of which always one has no CPU": (
        "client_cpu",
        replace(
            POSTGRES,
            waits=0.9,
            encode=0.05,
            writers=4,
            found={"LWLock:WALWrite": 4, "cpu": 1},
            server_cpu=0.3,
            server_queued=0.15,
            others_cpu=1.4,
        ),
    ),
    "the same, and nobody else is there": (
        "destination_cpu",
        replace(
            POSTGRES,
            waits=0.9,
            encode=0.05,
            found={"LWLock:WALWrite": 3, "Lock:extend": 1, "cpu": 1},
            server_cpu=0.3,
            server_queued=0.5,
        ),
    ),
    "locks of somebody else": ("locks", replace(POSTGRES, found={"Lock:relation": 5}, blocked_by=[7])),
    "a lock of somebody else that is gone again": (
        "locks",
        replace(POSTGRES, found={"Lock:transactionid": 4, "cpu": 1}, blocked_by=[]),
    ),
    "a wait that nobody knows": ("destination_cpu", replace(POSTGRES, found={"IPC:CheckpointDone": 5})),
    "a socket here that is full while the server waits": (
        "destination_cpu",
        replace(POSTGRES, waits=0.9, found={"client": 5}),
    ),
    "a link and many connections that are idle": (
        "network",
        replace(FAR, writers=56, writer_waits=0.03, waits=0.9, found={"client": 5}),
    ),
    "locks of our own, and nobody who works": ("locks", replace(POSTGRES, found={"Lock:extend": 5}, blocked_by=[101])),
    "a lock of our own, whose holder writes": (
        "destination_io",
        replace(POSTGRES, found={"Lock:extend": 4, "IO:DataFileExtend": 1}, blocked_by=[101]),
    ),
    "the log": ("log", replace(POSTGRES, found={"IO:WALWrite": 2, "LWLock:WALInsert": 2, "cpu": 1})),
    "the log of version 17": ("log", replace(POSTGRES, found={"IO:WalSync": 4, "cpu": 1})),
    "a standby": ("log", replace(POSTGRES, found={"IPC:SyncRep": 4, "cpu": 1})),
    "data files": ("destination_io", replace(POSTGRES, found={"IO:DataFileExtend": 4, "cpu": 1})),
    "checkpoints": (
        "checkpoint",
        replace(
            POSTGRES, found={"IO:DataFileExtend": 4, "cpu": 1}, checkpointer={"IO:DataFileSync": 5}, checkpoints=0.3
        ),
    ),
    "checkpoints that only tell what they have done": (
        "checkpoint",
        replace(
            POSTGRES, found={"IO:DataFileExtend": 4, "cpu": 1}, checkpointer={}, checkpoints=0.3, checkpointing=0.7
        ),
    ),
    "a link": ("network", replace(FAR, found={"client": 4, "cpu": 1})),
    "a window": ("receive_window", replace(FAR, found={"client": 5}, window_limited=0.9)),
    "a server that closes its window": ("destination_cpu", replace(FAR, window_limited=0.9)),
    "a link to a server that tells nothing": ("network", replace(FAR, found=None)),
    "a server that tells nothing": ("destination_cpu", replace(FAR, found=None, window_limited=0.9)),
    "too many": (
        "too_many_streams",
        replace(POSTGRES, streams=64, writers=64, server_cpu=1.8, server_queued=0.9, on_cpu=0.004, queued=0.9),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_limits(case: str) -> None:
    expected, load = CASES[case]
    verdict = judge(window(load.at(3), load.at(8)))
    assert verdict is not None
    assert (verdict.limit, verdict.sentence) == (expected, verdict.sentence)
    assert "nan" not in verdict.sentence


def test_a_link_is_told_with_what_it_carried() -> None:
    """Not with the delivery rate of TCP, which is that of the last packets."""
    load = replace(FAR, found={"client": 5}, megabytes_per_second=23.8)
    verdict = judge(window(load.at(3), load.at(8)))
    assert verdict is not None
    assert verdict.sentence.endswith("a round trip took 20.0 ms and the connections carried 23.8 MB/s")
    assert verdict.evidence["carried_megabytes_per_second"] == pytest.approx(23.8)


def test_every_limit_has_a_case() -> None:
    assert {expected for expected, _ in CASES.values()} == set(LIMITS)


@given(
    read=st.floats(0, 1),
    waits=st.floats(0, 1),
    encode=st.floats(0, 1),
    on_cpu=st.floats(0, 1),
    engine=st.none() | st.floats(0, 1),
    writers=st.integers(0, 3),
    has_machine=st.booleans(),
)
def test_never_unknown_when_something_takes_most_of_the_time(
    read: float, waits: float, encode: float, on_cpu: float, engine: float | None, writers: int, has_machine: bool
) -> None:
    total = read + waits + encode + 0.01
    load = Load(
        read=read / total,
        waits=waits / total,
        encode=encode / total,
        on_cpu=on_cpu,
        queued=1 - on_cpu,
        engine_busy=engine,
        writers=writers,
        writer_waits=min(0.9, waits / total),
        has_machine=has_machine,
    )
    verdict = judge(window(load.at(1), load.at(6)))
    if max(load.read, load.encode, 1 - load.read - load.encode - load.waits) > 0.8:
        assert verdict is not None
    assert verdict is None or verdict.limit in LIMITS


def test_what_the_server_counted_before_the_first_look_is_not_ours() -> None:
    """Checkpoints since its start, of which the first line tells nothing yet."""
    load = replace(POSTGRES, found={"IO:DataFileExtend": 4, "cpu": 1}, checkpointer={}, checkpoints=500)
    before, after = load.at(0), load.at(8)
    before = replace(before, destinations=[{**line, "checkpoints_requested": None} for line in before.destinations])
    verdict = judge(window(before, after))
    assert verdict is not None and verdict.limit == "destination_io"
