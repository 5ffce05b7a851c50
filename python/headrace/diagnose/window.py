"""What happened between two moments of a data flow: differences of the counters that docs/spec/metrics.md describes.

All times are seconds. A number that was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.run.metrics import growth

Line = Mapping[str, Any]

# Where the time of a stream goes. Waiting for the destination is a part of `write`, waiting for a block of `read`.
WORK: Final = ("read", "parse", "transform", "write")
_CHECKPOINT_TIMES: Final = ("checkpoint_write_seconds", "checkpoint_sync_seconds")
# Those that began with the server, not with the load.
SERVER_COUNTERS: Final = ("checkpoints_requested", *_CHECKPOINT_TIMES)


@dataclass(frozen=True)
class Sample:
    """What was measured at one moment; `machine` is None where nothing was. `destinations`: the lines of all
    connections that were looked at, in the order of the data flow.
    """

    flow: Line
    machine: Line | None = None
    destinations: Sequence[Line] = ()

    @property
    def t(self) -> float:
        """Seconds since the run began."""
        return _number(self.flow, "t")


@dataclass(frozen=True)
class StreamTime:
    """Where the time of one stream went. `active`: the time it had, without what it spent without a slice to take."""

    number: int
    active: float
    read: float
    parse: float
    transform: float
    encode: float
    wait_block: float
    wait_destination: float
    cpu: float | None
    run_queue: float | None
    bytes: int
    rows: int

    @property
    def work(self) -> Mapping[str, float]:
        """Time at work by stage."""
        return {"read": self.read, "parse": self.parse, "transform": self.transform, "encode": self.encode}

    @property
    def busy(self) -> float:
        """Time at work, on a CPU or not."""
        return self.read + self.parse + self.transform + self.encode


@dataclass(frozen=True)
class TcpTime:
    """Differences of TCP_INFO, and its present values."""

    busy: float
    receive_window_limited: float
    send_buffer_limited: float
    retransmits: int
    rtt: float | None


@dataclass(frozen=True)
class WriterTime:
    """Where the time of one connection went."""

    number: int
    process_id: int | None
    busy: float
    wait_input: float
    wait_output: float
    wait_answer: float
    bytes: int
    tcp: TcpTime | None

    @property
    def all(self) -> float:
        """The time that is explained."""
        return self.busy + self.wait_input + self.waiting

    @property
    def waiting(self) -> float:
        """How long somebody waited for the server."""
        return self.wait_output + self.wait_answer


@dataclass(frozen=True)
class MachineTime:
    """CPU seconds of the machine and of this process. `cpus` may be a fraction: a quota."""

    seconds: float
    cpus: float
    busy: float
    steal: float
    process: float
    run_queue: float | None
    throttled: float
    memory_pressure: float | None

    @property
    def busy_share(self) -> float:
        """Of all CPUs that this process may use, whoever used them; 0 to 1."""
        return min(1.0, (self.busy + self.steal) / max(self.seconds * self.cpus, 1e-9))


@dataclass(frozen=True)
class ServerTime:
    """What the sessions of a server were found at: samples by words such as `cpu`, `client`, `Lock:extend`."""

    found: Mapping[str, int]
    by_process: Mapping[int, Mapping[str, int]]
    is_local: bool
    cpu: float | None
    run_queue: float | None
    checkpointer: Mapping[str, int]
    checkpoints_requested: int
    checkpoint_seconds: float
    blocked_by: Sequence[int]

    @property
    def samples(self) -> int:
        """How often a session was looked at."""
        return sum(self.found.values())

    def wanted_cpu_share(self, seconds: float) -> float | None:
        """Of the time of the sessions that did anything, that in which they computed or waited for a CPU; None where
        nobody tells. Exact, where looks are samples: who has no CPU is found at whatever it was at.
        """
        working = sum(1 for counts in self.by_process.values() if any(word != "client" for word in counts))
        if self.cpu is None or not working:
            return None
        return min(1.0, (self.cpu + (self.run_queue or 0.0)) / max(seconds * working, 1e-9))

    @property
    def queued_share(self) -> float:
        """Of the time in which sessions wanted to compute, that in which they had no CPU; 0 where nobody tells."""
        return (self.run_queue or 0.0) / max((self.run_queue or 0.0) + (self.cpu or 0.0), 1e-9)

    def weighted(self, weights: Mapping[int, float]) -> dict[str, float]:
        """Shares of the words, 0 to 1; sessions weighted by process id, by how long somebody waited for each."""
        shares: dict[str, float] = {}
        known = {process: counts for process, counts in self.by_process.items() if counts}
        total = sum(weights.get(process, 0.0) for process in known)
        for process, counts in known.items():
            weight = weights.get(process, 0.0) / total if total > 0 else 1 / len(known)
            samples = sum(counts.values())
            for word, count in counts.items():
                shares[word] = shares.get(word, 0.0) + weight * count / samples
        return shares


@dataclass(frozen=True)
class EngineTime:
    """The embedded database. `busy`: it was not asking for rows; `spilled_bytes`: what it has put aside. `cpu_share`:
    of the CPU time of all engines in this process, which nobody can tell apart, by how long each was busy.
    """

    busy: float
    wait_input: float
    spilled_bytes: int | None
    cpu_share: float = 1.0

    @property
    def busy_share(self) -> float | None:
        """Of its time; None if it had none."""
        return self.busy / (self.busy + self.wait_input) if self.busy + self.wait_input > 0 else None


@dataclass(frozen=True)
class DestinationTime:
    """One connection of the package that takes rows; `connection` is its name, if there are several."""

    connection: str | None = None
    writers: Sequence[WriterTime] = ()
    server: ServerTime | None = None
    engine: EngineTime | None = None

    @property
    def words(self) -> str:
        """What a sentence calls it."""
        return "the destination" if self.connection is None else f"`{self.connection}`"

    @property
    def is_far(self) -> bool:
        """Whether rows go there over a network."""
        return any(writer.tcp is not None for writer in self.writers)


@dataclass(frozen=True)
class Window:
    """A data flow between two moments. `destinations`: at least one, in the order of the data flow."""

    seconds: float
    bytes: int
    rows: int
    streams: Sequence[StreamTime]
    machine: MachineTime | None = None
    destinations: Sequence[DestinationTime] = (DestinationTime(),)

    def of_stream(self, stream: StreamTime) -> Window:
        """The same with one stream only. Its writers are not known, so all of them stay."""
        return replace(self, streams=[stream])

    @property
    def has_several(self) -> bool:
        """Whether it has destinations of several connections."""
        return len(self.destinations) > 1

    @property
    def engines(self) -> Sequence[EngineTime]:
        """Of all destinations."""
        return [own.engine for own in self.destinations if own.engine is not None]

    @property
    def local_servers(self) -> Sequence[ServerTime]:
        """Those whose processes can be looked at."""
        return [own.server for own in self.destinations if own.server is not None and own.server.is_local]

    @property
    def side_by_side(self) -> int:
        """Streams that had slices at least half of the time."""
        return sum(stream.active >= self.seconds / 2 for stream in self.streams)

    @property
    def megabytes_per_second(self) -> float:
        """Source text, MB/s."""
        return self.bytes / 1e6 / self.seconds if self.seconds > 0 else 0.0


def window(before: Sample, after: Sample) -> Window:
    """The differences. Counters of streams, writers and sessions that were not there before began at 0."""
    seconds = max(0.0, _number(after.flow, "t") - _number(before.flow, "t"))
    streams = _pairs(before.flow.get("streams"), after.flow.get("streams"), "number")
    return Window(
        seconds=seconds,
        bytes=round(_grown(before.flow, after.flow, "bytes_read")),
        rows=round(_grown(before.flow, after.flow, "rows_read")),
        streams=[_stream(old, new, seconds) for old, new in streams],
        machine=_machine(before.machine, after.machine),
        destinations=_destinations(before, after),
    )


def _destinations(before: Sample, after: Sample) -> Sequence[DestinationTime]:
    """Each connection by itself, if the flow says which of its writers and consumers are of which one."""
    takers = [taker for name in ("writers", "sinks") for taker in after.flow.get(name) or ()]
    names = list(dict.fromkeys(line.get("connection") for line in [*after.destinations, *takers]))
    if len(names) < 2 or not any(taker.get("connection") for taker in takers):
        return [_destination(_of_one(before), _of_one(after))]
    times = [replace(_destination(_of(before, name), _of(after, name)), connection=name) for name in names]
    engines = sum(own.engine.busy for own in times if own.engine is not None)
    return [_with_cpu_share(own, engines) for own in times]


def _with_cpu_share(own: DestinationTime, engines: float) -> DestinationTime:
    """`engines`: how long all of them were busy."""
    if own.engine is None or engines <= 0:
        return own
    return replace(own, engine=replace(own.engine, cpu_share=own.engine.busy / engines))


@dataclass(frozen=True)
class _Taken:
    """What was measured of one destination at one moment. `sinks`: its consumers, if it has any."""

    writers: Sequence[Line]
    sinks: Sequence[Line]
    line: Line | None


def _of_one(sample: Sample) -> _Taken:
    sink = sample.flow.get("sink")
    line = sample.destinations[0] if sample.destinations else None
    return _Taken(sample.flow.get("writers") or (), [sink] if sink else (), line)


def _of(sample: Sample, connection: str | None) -> _Taken:
    def own(lines: Iterable[Line] | None) -> list[Line]:
        return [line for line in lines or () if line.get("connection") == connection]

    line = next(iter(own(sample.destinations)), None)
    return _Taken(own(sample.flow.get("writers")), own(sample.flow.get("sinks")), line)


def _destination(before: _Taken, after: _Taken) -> DestinationTime:
    writers = _pairs(before.writers, after.writers, "destination", "number", "process_id")
    is_server = after.line is not None and after.line.get("type") == "postgres"
    return DestinationTime(
        writers=[_writer(old, new) for old, new in writers],
        server=_server(before.line or {}, after.line) if is_server and after.line is not None else None,
        engine=_engine(before, after) if after.sinks else None,
    )


def _stream(old: Line, new: Line, seconds: float) -> StreamTime:
    def stage(name: str, counter: str) -> float:
        return _grown(_inner(old, "stages", name), _inner(new, "stages", name), counter)

    idle = _grown(old, new, "wait_slice_seconds")
    waited = max(0.0, stage("write", "wait_output_seconds") - idle)
    parts = {name: stage(name, "busy_seconds") for name in WORK}
    block = stage("read", "wait_output_seconds")
    explained = sum(parts.values()) + block + waited
    return StreamTime(
        number=int(_number(new, "number")),
        # Clocks that are read one after the other can make the parts a little more than the whole.
        active=explained if new.get("ended") else max(explained, seconds - idle if old else explained),
        read=parts["read"],
        parse=parts["parse"],
        transform=parts["transform"],
        encode=parts["write"],
        wait_block=block,
        wait_destination=waited,
        cpu=_maybe_grown(old, new, "cpu_seconds"),
        run_queue=_maybe_grown(old, new, "run_queue_seconds"),
        bytes=round(_grown(old, new, "bytes")),
        rows=round(_grown(old, new, "rows")),
    )


def _writer(old: Line, new: Line) -> WriterTime:
    tcp, tcp_before = new.get("tcp"), old.get("tcp") or {}
    return WriterTime(
        number=int(_number(new, "number")),
        process_id=_maybe_int(new, "process_id"),
        busy=_grown(old, new, "busy_seconds"),
        wait_input=_grown(old, new, "wait_input_seconds"),
        wait_output=_grown(old, new, "wait_output_seconds"),
        wait_answer=_grown(old, new, "wait_answer_seconds"),
        bytes=round(_grown(old, new, "bytes")),
        tcp=None
        if not tcp
        else TcpTime(
            busy=_grown(tcp_before, tcp, "busy_seconds"),
            receive_window_limited=_grown(tcp_before, tcp, "receive_window_limited_seconds"),
            send_buffer_limited=_grown(tcp_before, tcp, "send_buffer_limited_seconds"),
            retransmits=round(_grown(tcp_before, tcp, "retransmits")),
            rtt=_maybe(tcp, "rtt_seconds"),
        ),
    )


def _machine(old: Line | None, new: Line | None) -> MachineTime | None:
    if old is None or new is None or new is old:
        return None
    seconds = _number(new, "t") - _number(old, "t")
    cpu, cpu_before = _inner(new, "cpu"), _inner(old, "cpu")
    process, process_before = _inner(new, "process"), _inner(old, "process")
    if seconds <= 0 or not cpu:
        return None
    return MachineTime(
        seconds=seconds,
        cpus=_number(new, "cpus") or 1.0,
        busy=_grown(cpu_before, cpu, "user") + _grown(cpu_before, cpu, "system"),
        steal=_grown(cpu_before, cpu, "steal"),
        process=_grown(process_before, process, "cpu_seconds"),
        run_queue=_maybe_grown(process_before, process, "run_queue_seconds"),
        throttled=_grown(process_before, process, "throttled_seconds"),
        memory_pressure=_maybe_grown(_inner(old, "pressure"), _inner(new, "pressure"), "memory_full"),
    )


def _server(old: Line, new: Line) -> ServerTime:
    sessions = _pairs(old.get("sessions"), new.get("sessions"), "process_id")
    by_process = {
        int(_number(now, "process_id")): _counts(_inner(was, "found"), _inner(now, "found")) for was, now in sessions
    }
    return ServerTime(
        found=_added(by_process.values()),
        by_process=by_process,
        is_local=bool(new.get("is_local")),
        cpu=_sum(_maybe_grown(was, now, "cpu_seconds") for was, now in sessions),
        run_queue=_sum(_maybe_grown(was, now, "run_queue_seconds") for was, now in sessions),
        checkpointer=_counts(_inner(old, "checkpointer"), _without_time(_inner(new, "checkpointer"))),
        checkpoints_requested=round(_grown(old, new, "checkpoints_requested"))
        if _maybe(old, "checkpoints_requested") is not None
        else 0,
        checkpoint_seconds=sum(_grown(old, new, name) for name in _CHECKPOINT_TIMES if _maybe(old, name) is not None),
        blocked_by=sorted({int(process) for _, now in sessions for process in now.get("blocked_by") or ()}),
    )


def _engine(before: _Taken, after: _Taken) -> EngineTime:
    """Of several tables of one engine the one that has worked most tells."""
    pairs = _pairs(before.sinks, after.sinks, "destination")
    old, new = max(pairs, key=lambda pair: _number(pair[1], "busy_seconds"))
    spills = [_maybe(taken.line or {}, "spill_bytes") for taken in (before, after)]
    spilled = max((size for size in spills if size is not None), default=None)
    return EngineTime(
        busy=_grown(old, new, "busy_seconds"),
        wait_input=_grown(old, new, "wait_input_seconds"),
        spilled_bytes=None if spilled is None else round(spilled),
    )


def _pairs(old: Sequence[Line] | None, new: Sequence[Line] | None, *keys: str) -> list[tuple[Line, Line]]:
    """Each of the new ones with its old self, or with nothing."""

    def key(line: Line) -> tuple[object, ...]:
        return tuple(line.get(name) for name in keys)

    known = {key(line): line for line in old or ()}
    return [(known.get(key(line), {}), line) for line in new or ()]


def _inner(line: Line, *names: str) -> Line:
    found: Any = line
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(line: Line, name: str) -> float:
    value = line.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _maybe(line: Line, name: str) -> float | None:
    return _number(line, name) if isinstance(line.get(name), int | float) else None


def _maybe_int(line: Line, name: str) -> int | None:
    value = _maybe(line, name)
    return None if value is None else int(value)


def _grown(old: Line, new: Line, name: str) -> float:
    return growth(_number(old, name), _number(new, name))


def _maybe_grown(old: Line, new: Line, name: str) -> float | None:
    return None if _maybe(new, name) is None else _grown(old, new, name)


def _counts(old: Line, new: Line) -> dict[str, int]:
    grown = {name: round(_grown(old, new, name)) for name in new}
    return {name: count for name, count in grown.items() if count > 0}


def _without_time(counts: Line) -> Line:
    """Of the checkpointer: how often it was found at what stands beside its CPU time."""
    return {name: count for name, count in counts.items() if name != "cpu_seconds"}


def _added(all_counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in all_counts:
        for word, count in counts.items():
            total[word] = total.get(word, 0) + count
    return total


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
