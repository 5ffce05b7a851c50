"""Lines as a core and a server would make them."""

from __future__ import annotations

from typing import Any, Final


def stage(busy_seconds: float) -> dict[str, Any]:
    """The counters of one stage."""
    waits = {"wait_input_seconds": 0.25, "wait_output_seconds": 0.125}
    return {"rows": 1000, "bytes": 100_000, "busy_seconds": busy_seconds, **waits}


def stream(number: int) -> dict[str, Any]:
    """A stream that parses."""
    return {
        "number": number,
        "ended": False,
        "slice": number,
        "file": 0,
        "slice_bytes": 50_000,
        "slice_bytes_total": 100_000,
        "slices": 1,
        "rows": 1000,
        "bytes": 100_000,
        "cpu_seconds": 1.234567,
        "run_queue_seconds": 0.000123,
        "doing": "parse",
        "stages": {name: stage(0.5) for name in ("read", "parse", "transform", "write")},
    }


def writer(number: int) -> dict[str, Any]:
    """A connection over TCP."""
    seconds = dict.fromkeys(
        ("busy_seconds", "wait_input_seconds", "wait_output_seconds", "wait_answer_seconds"), 0.123456
    )
    tcp = dict.fromkeys(("busy_seconds", "receive_window_limited_seconds", "send_buffer_limited_seconds"), 0.123456)
    counted = dict.fromkeys(("retransmits", "not_sent_bytes", "unacknowledged", "congestion_window"), 12345)
    writer = {"number": number, "process_id": 4711 + number, "transport": "tcp", "bytes": 100_000, "frames": 12}
    return {**writer, **seconds, "tcp": {**tcp, **counted, "rtt_seconds": 0.0001, "delivery_rate_bytes": 1e9}}


def counters(streams: int) -> dict[str, Any]:
    """What a flow of so many streams, each with a writer, counts."""
    return {
        "bytes_read": 100_000 * streams,
        "source_bytes_read": 100_000 * streams,
        "rows_read": 1000 * streams,
        "rows_out": 1000 * streams,
        "rows_rejected": 0,
        "slices_done": streams,
        "slices_total": 2 * streams,
        "streams_active": streams,
        "streams": [stream(number) for number in range(1, streams + 1)],
        "writers": [writer(number) for number in range(1, streams + 1)],
        "sink": None,
        "blocks_used": 1,
        "blocks_total": 2 * streams,
    }


FLOW: Final = {
    "kind": "flow",
    "at": "2026-11-23T01:02:03.004+00:00",
    "t": 1.5,
    "attempt": 1,
    "task": "load",
} | counters(2)
