"""Lines of metrics.jsonl for tests: a data flow of one second per step, told by where its time goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.diagnose import Sample


def several(load: Load, t: float, **places: Load) -> Sample:
    """What is measured of a load whose rows go to several connections: streams and machine are those of `load`, and
    what each of the others has beside them is that of a connection.
    """
    alone = load.at(t)
    samples = {name: place.at(t) for name, place in places.items()}

    def named(kind: str) -> list[dict[str, Any]]:
        takers = [(name, taker) for name, sample in samples.items() for taker in sample.flow[kind]]
        return [{"connection": name, "destination": f"to_{name}", **taker} for name, taker in takers]

    sinks = [
        {"connection": name, "destination": f"to_{name}", **sample.flow["sink"]}
        for name, sample in samples.items()
        if sample.flow["sink"]
    ]
    # As the core has it: of the one that has worked most.
    sink = max(sinks, key=lambda own: own["busy_seconds"], default=None)
    flow = {**alone.flow, "writers": named("writers"), "sink": sink, "sinks": sinks}
    lines = [{"connection": name, **line} for name, sample in samples.items() for line in sample.destinations]
    return Sample(flow, alone.machine, lines)


@dataclass
class Load:
    """A load that behaves evenly. Shares of time are 0 to 1; what is left of a stream's time is parsing."""

    streams: int = 2
    cpus: float = 2
    megabytes_per_second: float = 100
    read: float = 0.1
    transform: float = 0.0
    encode: float = 0.0
    waits: float = 0.0
    wait_block: float = 0.0
    # Of the time at work: on a CPU, and waiting for one.
    on_cpu: float = 1.0
    queued: float = 0.0
    # CPU seconds a second, beside those of the streams.
    engine_cpu: float = 0.0
    engine_queued: float = 0.0
    others_cpu: float = 0.0
    engine_busy: float | None = None
    spilled: int = 0
    pressure: float = 0.0
    steal: float = 0.0
    throttled: float = 0.0
    # Each writer: where its time goes.
    writers: int = 0
    writer_waits: float = 0.0
    transport: str = "unix"
    window_limited: float = 0.0
    tcp_busy: float = 1.0
    # Looks a second at each session, by what it was found at; None: nobody could look.
    found: Mapping[str, int] | None = None
    server_cpu: float | None = None
    server_queued: float = 0.0
    blocked_by: list[int] = field(default_factory=list)
    checkpointer: Mapping[str, int] = field(default_factory=lambda: {"idle": 5})
    checkpoints: float = 0.0
    checkpointing: float = 0.0
    has_machine: bool = True
    ends: Mapping[int, float] = field(default_factory=dict)

    def at(self, t: float) -> Sample:
        """What is measured `t` seconds behind the start."""
        line = self._destination(t)
        return Sample(self._flow(t), self._machine(t) if self.has_machine else None, [line] if line else [])

    def _flow(self, t: float) -> dict[str, Any]:
        return {
            "kind": "flow",
            "task": "load",
            "t": t,
            "bytes_read": self.megabytes_per_second * 1e6 * t,
            "rows_read": self.megabytes_per_second * 1e4 * t,
            "streams_active": sum(1 for number in range(1, self.streams + 1) if self.ends.get(number, t) >= t),
            "streams": [self._stream(number, t) for number in range(1, self.streams + 1)],
            "writers": [self._writer(number, t) for number in range(1, self.writers + 1)],
            "sink": None
            if self.engine_busy is None
            else {"busy_seconds": self.engine_busy * t, "wait_input_seconds": (1 - self.engine_busy) * t},
        }

    def _stream(self, number: int, now: float) -> dict[str, Any]:
        t = min(now, self.ends.get(number, now))
        parse = 1 - self.read - self.transform - self.encode - self.waits - self.wait_block
        work = 1 - self.waits - self.wait_block
        return {
            "number": number,
            "ended": number in self.ends and now >= self.ends[number],
            "file": number - 1,
            "bytes": self.megabytes_per_second * 1e6 * t / self.streams,
            "cpu_seconds": work * self.on_cpu * t,
            "run_queue_seconds": work * self.queued * t,
            "wait_slice_seconds": 0.0,
            "stages": {
                "read": {"busy_seconds": self.read * t, "wait_output_seconds": self.wait_block * t},
                "parse": {"busy_seconds": parse * t},
                "transform": {"busy_seconds": self.transform * t},
                "write": {"busy_seconds": self.encode * t, "wait_output_seconds": self.waits * t},
            },
        }

    def _writer(self, number: int, t: float) -> dict[str, Any]:
        tcp = {
            "busy_seconds": self.tcp_busy * t,
            "receive_window_limited_seconds": self.window_limited * t,
            "rtt_seconds": 0.02,
            "delivery_rate_bytes": 2e7,
        }
        return {
            "number": number,
            "process_id": 100 + number,
            "bytes": self.megabytes_per_second * 1e6 * t / self.writers,
            "busy_seconds": 0.1 * t,
            "wait_input_seconds": (0.9 - self.writer_waits) * t,
            "wait_output_seconds": self.writer_waits * t,
            "tcp": None if self.transport == "unix" else tcp,
        }

    def _machine(self, t: float) -> dict[str, Any]:
        work = 1 - self.waits - self.wait_block
        streams = work * self.on_cpu * self.streams
        own = streams + self.engine_cpu
        busy = own + self.others_cpu + (self.server_cpu or 0.0)
        return {
            "t": t,
            "cpus": self.cpus,
            "cpu": {"user": busy * t, "system": 0.0, "steal": self.steal * t},
            "process": {
                "cpu_seconds": own * t,
                "run_queue_seconds": (work * self.queued * self.streams + self.engine_queued) * t,
                "throttled_seconds": self.throttled * t,
            },
            "pressure": {"memory_full": self.pressure * t},
        }

    def _destination(self, t: float) -> dict[str, Any] | None:
        if not self.writers:
            return {"type": "duckdb", "spill_bytes": self.spilled}
        if self.found is None:
            return None
        cpu = None if self.server_cpu is None else self.server_cpu / self.writers
        return {
            "type": "postgres",
            "is_local": cpu is not None,
            "checkpoints_requested": int(self.checkpoints * t),
            "checkpoint_write_seconds": self.checkpointing * t,
            "checkpointer": {word: round(count * t) for word, count in self.checkpointer.items()},
            "sessions": [
                {
                    "process_id": 100 + number,
                    "found": {word: count * t for word, count in self.found.items()},
                    "blocked_by": self.blocked_by,
                    "cpu_seconds": None if cpu is None else cpu * t,
                    "run_queue_seconds": None if cpu is None else self.server_queued * t,
                }
                for number in range(1, self.writers + 1)
            ],
        }
