"""Makes run folders without running anything: what a load would have written, shaped as docs/spec/metrics.md says.

A `Flow` is simulated second by second: streams take slices, largest first, at a speed and with shares of their time
that the scenario gives; counters are what the core would count.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Shares = Mapping[str, float]
START = datetime(2026, 11, 20, 1, 0, 0, tzinfo=UTC)
ROW_BYTES = 120
MB = 1_000_000
_STAGE_OF = {
    "read": ("read", "busy_seconds"),
    "parse": ("parse", "busy_seconds"),
    "transform": ("transform", "busy_seconds"),
    "write": ("write", "busy_seconds"),
    "wait_destination": ("write", "wait_output_seconds"),
    "wait_block": ("read", "wait_output_seconds"),
}
_NO_STAGES = {
    stage: {"busy_seconds": 0.0, "wait_input_seconds": 0.0, "wait_output_seconds": 0.0}
    for stage in ("read", "parse", "transform", "write")
}


@dataclass
class Flow:
    """A data flow of a scenario. `speed`: bytes per second of a stream that works; `shares`: of its time."""

    task: str
    table: str
    files: Sequence[int]
    slice_bytes: int
    streams: int
    speed: Callable[[float, int, int], float]
    shares: Callable[[float, int], Shares]
    connection: str = "warehouse"
    type: str = "duckdb"
    rejected_share: float = 0.0
    begin: float = 1.0
    until: float | None = None
    waits: Callable[[float], Shares] = field(default=lambda _time: {"cpu": 1.0})

    def slices(self) -> list[tuple[int, int]]:
        """File and size of each, largest first."""
        cut = [
            (file, min(self.slice_bytes, size - begin))
            for file, size in enumerate(self.files)
            for begin in range(0, size, self.slice_bytes)
        ]
        return sorted(cut, key=lambda item: -item[1])


@dataclass
class _Stream:
    number: int
    slice: int | None = None
    file: int | None = None
    done: float = 0.0
    size: float = 0.0
    slices: int = 0
    bytes: float = 0.0
    cpu: float = 0.0
    queued: float = 0.0
    waited: float = 0.0
    ended: bool = False
    doing: str = "wait_slice"
    stages: dict[str, dict[str, float]] = field(default_factory=lambda: {k: dict(v) for k, v in _NO_STAGES.items()})

    def line(self) -> dict[str, Any]:
        size, rows = int(self.bytes), int(self.bytes / ROW_BYTES)
        return {
            "number": self.number,
            "ended": self.ended,
            "slice": self.slice,
            "file": self.file,
            "slice_bytes": int(self.done),
            "slice_bytes_total": int(self.size),
            "slices": self.slices,
            "rows": rows,
            "bytes": size,
            "cpu_seconds": round(self.cpu, 3),
            "run_queue_seconds": round(self.queued, 3),
            "wait_slice_seconds": round(self.waited, 3),
            "doing": self.doing,
            "stages": {
                name: {"rows": rows, "bytes": size, **{key: round(value, 3) for key, value in seconds.items()}}
                for name, seconds in self.stages.items()
            },
        }


@dataclass
class _Writer:
    number: int
    bytes: float = 0.0
    busy: float = 0.0
    input: float = 0.0
    output: float = 0.0
    answer: float = 0.0
    found: dict[str, int] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "process_id": 40_000 + self.number,
            "transport": "tcp",
            "bytes": int(self.bytes),
            "frames": int(self.bytes / 65_536),
            "busy_seconds": round(self.busy, 3),
            "wait_input_seconds": round(self.input, 3),
            "wait_output_seconds": round(self.output, 3),
            "wait_answer_seconds": round(self.answer, 3),
            "tcp": {
                "busy_seconds": round(self.busy + self.output, 3),
                "receive_window_limited_seconds": round(self.output * 0.8, 3),
                "send_buffer_limited_seconds": 0.0,
                "retransmits": 0,
                "rtt_seconds": 0.0004,
                "least_rtt_seconds": 0.0002,
                "delivery_rate_bytes": 118_000_000,
                "not_sent_bytes": 0,
                "unacknowledged": 12,
                "congestion_window": 80,
                "segment_bytes": 1_448,
            },
        }


class Simulation:
    """Plays one flow; `ended_at` is known when all lines were taken."""

    def __init__(self, flow: Flow, attempt: int = 1, seed: int = 7) -> None:
        self.flow = flow
        self.attempt = attempt
        self.ended_at = flow.begin
        self.bytes = 0
        self.slices_done = 0
        self.final: list[dict[str, Any]] = []
        self._random = random.Random(seed)
        self._queue = flow.slices()
        self._taken = 0
        self._streams = [_Stream(number + 1) for number in range(flow.streams)]
        has_writers = flow.type == "postgres"
        self._writers = [_Writer(number + 1) for number in range(flow.streams)] if has_writers else []
        self._samples = 0

    def lines(self, step: float = 1.0) -> Iterator[dict[str, Any]]:
        """The lines `flow` and `destination`, until all is read or `flow.until`."""
        time = self.flow.begin
        while not all(stream.ended for stream in self._streams) and (self.flow.until is None or time < self.flow.until):
            for stream in self._streams:
                self._work(stream, time, step)
            time = round(time + step, 3)
            self._look(time, step)
            yield self._flow_line(time)
            yield self._destination_line(time)
        self.ended_at = time
        self.final = [stream.line() for stream in self._streams]

    @property
    def rejected(self) -> int:
        """Rows that were rejected."""
        return int(self.bytes / ROW_BYTES * self.flow.rejected_share)

    def _work(self, stream: _Stream, time: float, step: float) -> None:
        left = step
        shares = self.flow.shares(time, stream.number)
        while left > 1e-6 and not stream.ended:
            if stream.slice is None and not self._next(stream):
                break
            assert stream.file is not None
            speed = self.flow.speed(time, stream.number, stream.file) * self._random.uniform(0.85, 1.15)
            worked = min(left, (stream.size - stream.done) / speed)
            left -= worked
            stream.done += worked * speed
            stream.bytes += worked * speed
            self._spend(stream, shares, worked)
            if stream.done >= stream.size - 0.5:
                stream.slice = stream.file = None
                stream.slices += 1
                self.slices_done += 1
        if stream.ended:
            stream.stages["write"]["wait_output_seconds"] += left
            stream.waited += left
        self.bytes = int(sum(item.bytes for item in self._streams))

    def _next(self, stream: _Stream) -> bool:
        if self._taken == len(self._queue):
            stream.ended, stream.doing = True, "wait_slice"
            return False
        stream.slice = self._taken
        stream.file, stream.size = self._queue[self._taken]
        stream.done = 0.0
        self._taken += 1
        return True

    def _spend(self, stream: _Stream, shares: Shares, seconds: float) -> None:
        for state, share in shares.items():
            own = share * seconds * self._random.uniform(0.8, 1.2)
            stage, counter = _STAGE_OF[state]
            stream.stages[stage][counter] += own
            if state in ("parse", "transform", "write"):
                stream.cpu += own * 0.97
                stream.queued += own * 0.03
        stream.doing = max(shares, key=lambda state: shares[state])

    def _look(self, time: float, step: float) -> None:
        for stream, writer in zip(self._streams, self._writers, strict=False):
            writer.bytes = stream.bytes * 1.2
            write, sends = stream.stages["write"], not stream.ended
            writer.output = write["wait_output_seconds"] if sends else writer.output
            writer.busy += step * 0.12 * sends
            writer.answer += step * (0.01 if sends else 0.0)
            writer.input = max(writer.input, time - self.flow.begin - writer.busy - writer.output - writer.answer)
            waits = self.flow.waits(time) if sends else {"idle": 1.0}
            for name in self._random.choices(list(waits), weights=list(waits.values()), k=max(1, round(5 * step))):
                writer.found[name] = writer.found.get(name, 0) + 1
        self._samples += 5

    def _head(self, kind: str, time: float) -> dict[str, Any]:
        return {
            "kind": kind,
            "at": stamp(time),
            "t": time,
            "attempt": self.attempt,
            "task": self.flow.task,
        }

    def _flow_line(self, time: float) -> dict[str, Any]:
        rows = int(self.bytes / ROW_BYTES)
        streams = [stream.line() for stream in self._streams]
        return {
            **self._head("flow", time),
            "bytes_read": self.bytes,
            "source_bytes_read": self.bytes,
            "rows_read": rows,
            "rows_out": rows - self.rejected,
            "rows_rejected": self.rejected,
            "slices_done": self.slices_done,
            "slices_total": len(self._queue),
            "streams_active": sum(not stream.ended for stream in self._streams),
            "streams": streams,
            "writers": [writer.line() for writer in self._writers],
            "sink": {
                "wait_input_seconds": 0.1 * time,
                "busy_seconds": 0.9 * time,
                "batches": rows // 2048,
                "rows": rows,
            },
            "blocks_used": 12,
            "blocks_total": 20,
        }

    def _destination_line(self, time: float) -> dict[str, Any]:
        head = {
            **self._head("destination", time),
            "connection": self.flow.connection,
            "type": self.flow.type,
            "denied": [],
        }
        if self.flow.type == "duckdb":
            return {**head, "file_bytes": int(self.bytes * 0.31), "wal_bytes": int(2e5), "spill_bytes": 0}
        return {
            **head,
            "is_local": False,
            "samples": self._samples,
            "sessions": [
                {
                    "process_id": 40_000 + writer.number,
                    "found": dict(writer.found),
                    "blocked_by": [],
                    "tuples": int(writer.bytes / 1.2 / ROW_BYTES),
                    "cpu_seconds": None,
                    "run_queue_seconds": None,
                    "io_seconds": None,
                }
                for writer in self._writers
            ],
            "checkpointer": {"idle": self._samples},
            "checkpoints_timed": 3 + int(time // 300),
            "checkpoints_requested": 17 + int(time // 140),
            "checkpoint_write_seconds": 100 + 0.4 * time,
            "checkpoint_sync_seconds": 3 + 0.01 * time,
            "wal_bytes": int(self.bytes * 1.1),
        }


def machine_lines(
    until: float, cpu: Callable[[float], Shares], *, attempt: int = 1, cpus: int = 8
) -> Iterator[dict[str, Any]]:
    """The lines `machine`, one a second. `cpu`: shares of all CPUs in each state; the rest is idle."""
    chance = random.Random(11)
    total = dict.fromkeys(("user", "system", "idle", "iowait", "steal"), 0.0)
    read = written = sent = 0.0
    for second in range(1, int(until) + 1):
        shares = cpu(float(second))
        busy = 0.0
        for name, share in shares.items():
            own = share * cpus * chance.uniform(0.9, 1.1)
            total[name] += own
            busy += own
        total["idle"] += max(0.0, cpus - busy)
        read += chance.uniform(380, 520) * MB
        written += (900 if second % 37 < 8 else 140) * MB * chance.uniform(0.8, 1.2)
        sent += chance.uniform(410, 540) * MB
        yield {
            "kind": "machine",
            "at": stamp(float(second)),
            "t": float(second),
            "attempt": attempt,
            "cpus": cpus,
            "cpu": {name: round(value, 2) for name, value in total.items()},
            "process": {
                "cpu_seconds": round(0.8 * total["user"], 2),
                "run_queue_seconds": round(0.02 * second, 3),
                "throttled_seconds": 0.0,
                "disk_read_bytes": int(read),
                "disk_written_bytes": int(written),
                "resident_bytes": int((620 + 60 * chance.random()) * MB),
                "major_faults": 12,
            },
            "memory": {"total_bytes": 64_000 * MB, "available_bytes": int((41_000 - second) * MB), "swapped_bytes": 0},
            "disks": {
                "nvme0n1": {"read_bytes": int(read), "written_bytes": int(written), "busy_seconds": second * 0.6}
            },
            "network": {
                "lo": {"received_bytes": 1_000, "sent_bytes": 1_000},
                "eth0": {"received_bytes": int(0.02 * sent), "sent_bytes": int(sent)},
            },
            "pressure": {
                "cpu_some": 5.0 + 0.2 * second,
                "io_some": 1.0 + 0.05 * second,
                "io_full": 0.2,
                "memory_some": 0.0,
                "memory_full": 0.0,
            },
        }


def verdict_line(time: float, task: str, begin: float, limit: str, sentence: str, **members: Any) -> dict[str, Any]:
    """A line `verdict`; `members` take the place of its own ones."""
    return {
        "kind": "verdict",
        "at": stamp(time),
        "t": time,
        "attempt": 1,
        "task": task,
        "from": begin,
        "to": time,
        "limit": limit,
        "sentence": sentence,
        "evidence": {},
        "next_limit": None,
        "next_megabytes_per_second": None,
        "remedy": None,
        "streams": [],
        "slow": [],
        **members,
    }


def stamp(time: float, start: datetime = START) -> str:
    """The time of day of a moment of the run."""
    return (start + timedelta(seconds=time)).isoformat(timespec="milliseconds")


def event(name: str, time: float, **members: Any) -> dict[str, Any]:
    """A line of events.jsonl."""
    return {"event": name, "at": stamp(time), **members}


def write_lines(path: Path, lines: Iterator[dict[str, Any]] | Sequence[dict[str, Any]]) -> None:
    """Adds lines to a file."""
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def table_summary(simulation: Simulation, seconds: float, **members: Any) -> dict[str, Any]:
    """The member of `tables` of summary.json."""
    flow, rows = simulation.flow, int(simulation.bytes / ROW_BYTES)
    return {
        "task": flow.task,
        "table": flow.table,
        "connection": flow.connection,
        "target": "replace",
        "load": "staged" if flow.type == "postgres" else "single",
        "status": "success",
        "seconds": seconds,
        "cpu_seconds": round(sum(stream["cpu_seconds"] for stream in simulation.final), 3),
        "bytes_read": simulation.bytes,
        "lines": rows + len(flow.files),
        "rows_skipped": len(flow.files),
        "rows_read": rows,
        "rows_rejected": simulation.rejected,
        "rows_loaded": rows - simulation.rejected,
        "values_ignored": 0,
        "ignored": {},
        "mb_per_second": round(simulation.bytes / MB / seconds, 3),
        "rows_per_second": round(rows / seconds, 1),
        "streams": flow.streams,
        "slices": len(flow.slices()),
        "switch_seconds": 0.06,
        "partitions": [],
        "rejects": {"count": 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0},
        "columns": None,
        "memory": {"total_bytes": 1_000_000_000, "flow_bytes": 480_000_000, "peak_blocks": 17},
        "notes": [],
        **members,
    }


def run_summary(
    run_id: str, package: str, seconds: float, tables: Sequence[dict[str, Any]], **members: Any
) -> dict[str, Any]:
    """summary.json."""
    sums = {
        name: sum(table[name] for table in tables)
        for name in ("bytes_read", "rows_read", "rows_skipped", "rows_loaded", "rows_rejected")
    }
    return {
        "run_id": run_id,
        "package": package,
        "status": "success",
        "seconds": seconds,
        "phases": {"plan": 0.4, "start": 0.3, "load": seconds - 1.5, "commit": 0.6, "finish": 0.2},
        **sums,
        "rows_filtered": 0,
        "tables": list(tables),
        "skipped": [],
        "tasks": [],
        "tasks_failed": 0,
        "streams": [],
        "limit": None,
        "peak_resident_bytes": 684_000_000,
        "error": None,
        "run_folder": f"runs/{run_id}",
        **members,
    }


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """One document."""
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
