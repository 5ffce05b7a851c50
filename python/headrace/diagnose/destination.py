"""Which part of a destination is its limit, if the destination is the limit at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.diagnose.machine import CpuShares
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import DestinationTime, EngineTime, ServerTime, Window

_SIDE_SHARE: Final = 0.25
_HALF: Final = 0.5
# TCP does not count the time between two segments of a window that is as good as closed.
_CLOSED_SHARE: Final = 0.3
_PRESSURE_SHARE: Final = 0.10
# An engine that has one thread at work, on CPUs that have room; below the other one its threads mostly wait.
_ONE_CORE: Final = 0.9
_IDLE_CORE: Final = 0.5
_LEAST_SAMPLES: Final = 3
# Less is the noise of an engine that has everything in memory.
_SPILLED_BYTES: Final = 16_000_000
# Of the time in which a session did anything.
_WANTED_SHARE: Final = 0.6
_CHECKPOINTER_SHARE: Final = 0.5
# Sessions that could compute, on the average: the CPUs of a server hold it up only if there is always one.
_RUNNABLE: Final = 0.8

# What a session of a server was found at, by the beginning of the word in lower case; the first that fits counts.
# Names of waits: "Wait Events" in the manual of PostgreSQL; 17 writes WalWrite where others have WALWrite.
FOUND: Final[tuple[tuple[str, str], ...]] = (
    ("cpu", "cpu"),
    ("client", "client"),
    ("idle", "client"),
    # Pages are added to a table by one session at a time: the others wait for whatever that one is at.
    ("lock:extend", "turns"),
    ("lock:", "locks"),
    ("io:wal", "log"),
    ("lwlock:wal", "log"),
    ("ipc:syncrep", "log"),
    ("io:", "io"),
    ("lwlock:buffer", "io"),
    ("bufferpin", "io"),
    ("lwlock:", "cpu"),
    ("", "other"),
)


def embedded(window: Window, own: DestinationTime, engine: EngineTime, cpus: CpuShares | None) -> Verdict:
    """The limit of an engine inside this process."""
    machine = window.machine
    if machine is not None:
        pressure = (machine.memory_pressure or 0.0) / machine.seconds
        if (engine.spilled_bytes or 0) >= _SPILLED_BYTES:
            return Verdict("memory", f"its engine has put {(engine.spilled_bytes or 0) / 1e6:,.0f} MB aside on disk")
        if pressure >= _PRESSURE_SHARE:
            return Verdict("memory", f"everybody on this machine waited for memory {pressure:.0%} of the time")
    if cpus is None or machine is None:
        return Verdict("destination_cpu", "it was at work all the time")
    busy = f"the CPUs were {cpus.busy:.0%} busy"
    used = cpus.engines * engine.cpu_share if window.has_several else cpus.destination
    by = f"{busy}, {used:.0%} of it by {own.words}"
    cores = used * machine.busy / max(engine.busy, 1e-9)
    queued = None if machine.run_queue is None else (machine.run_queue - _queued_streams(window)) * engine.cpu_share
    # Whatever others do: most of its time none of its threads wanted a CPU.
    if queued is not None and cores + max(0.0, queued) / max(engine.busy, 1e-9) <= _IDLE_CORE:
        return Verdict("destination_io", f"it computed only on {cores:.1f} CPUs while it was at work; {busy}")
    if cpus.is_full:
        if cpus.taken_away is not None:
            return Verdict("client_cpu", cpus.taken_away)
        if cpus.others >= _SIDE_SHARE:
            return Verdict("client_cpu", f"other programs used {cpus.others:.0%} of the CPUs")
        return Verdict("destination_cpu", by)
    if cores >= _ONE_CORE:
        return Verdict("destination_cpu", f"it computed on {cores:.1f} CPUs while it was at work; {busy}")
    if cores <= _IDLE_CORE or cpus.busy <= _HALF:
        return Verdict("destination_io", f"it computed only on {cores:.1f} CPUs while it was at work; {busy}")
    return Verdict("destination_cpu", by)


def _queued_streams(window: Window) -> float:
    """How long the streams waited for a CPU."""
    return sum(stream.run_queue or 0.0 for stream in window.streams)


def server_limit(window: Window, own: DestinationTime, cpus: CpuShares | None) -> tuple[Verdict | None, float | None]:
    """The limit of a server, and how busy it was, 0 to 1; None if nobody could look, or for neither."""
    server = own.server
    if server is None or server.samples < _LEAST_SAMPLES:
        return _from_outside(window, own), None
    found = _by_kind(server.weighted(_waits(own)))
    busy = 1 - found.get("client", 0.0)
    working = {kind: share for kind, share in found.items() if kind != "client"}
    link = _link(window, own)
    if link is not None and busy < _HALF:
        return link, 1 - busy
    if not working:
        return None, 0.0
    if len(working) > 1:
        working.pop("turns", None)
    if server.is_local and cpus is not None and server.queued_share >= _HALF:
        runnable = ((server.cpu or 0.0) + (server.run_queue or 0.0)) / max(window.seconds, 1e-9)
        if runnable >= _RUNNABLE:
            return _starving(server, runnable, cpus), busy
    wanted = server.wanted_cpu_share(window.seconds) if server.is_local else None
    if wanted is not None and wanted >= _WANTED_SHARE * busy:
        return _working(window, server, {"cpu": wanted}, "cpu", cpus), busy
    return _working(window, server, found, max(working, key=lambda kind: working[kind]), cpus), busy


def _working(
    window: Window, server: ServerTime, found: Mapping[str, float], largest: str, cpus: CpuShares | None
) -> Verdict:
    """A server that hardly waits for rows."""
    share = found[largest]
    what = f"at {_most(server)}" if largest == "other" else _WORDS[largest]
    at = f"its sessions were found {what} {share:.0%} of the time"
    if largest == "turns":
        return Verdict("locks", f"{at}, for each other")
    if largest == "locks":
        others = _blockers(server)
        if others:
            return Verdict("locks", f"{at}, blocked by process {', '.join(others)}")
        return Verdict("locks", f"{at}, for each other")
    if largest in ("io", "log"):
        if server.checkpoints_requested and _checkpoints_share(window, server) >= _CHECKPOINTER_SHARE:
            how_many = f"{server.checkpoints_requested} checkpoints because its log was full"
            return Verdict("checkpoint", f"{at}, and it made {how_many}")
        return Verdict({"io": "destination_io", "log": "log"}[largest], at)
    if server.is_local and cpus is not None and server.queued_share >= _SIDE_SHARE and cpus.others >= _SIDE_SHARE:
        starved = f"they had no CPU {server.queued_share:.0%} of the time: other programs used {cpus.others:.0%}"
        return Verdict("client_cpu", f"{at}; {starved}")
    return Verdict("destination_cpu", at)


def _starving(server: ServerTime, runnable: float, cpus: CpuShares) -> Verdict:
    """Somebody always wants a CPU and mostly has none: what the others wait for is held by those who want one."""
    at = f"its sessions wanted {runnable:.1f} CPUs at any time and had none {server.queued_share:.0%} of it"
    if cpus.others >= _SIDE_SHARE:
        return Verdict("client_cpu", f"{at}: other programs used {cpus.others:.0%}")
    return Verdict("destination_cpu", at)


def _blockers(server: ServerTime) -> list[str]:
    """Processes of somebody else for which our sessions wait now."""
    return [str(process) for process in server.blocked_by if process not in server.by_process]


def _most(server: ServerTime) -> str:
    """The most frequent wait of which nobody knows what it stands for."""
    unknown = {word: count for word, count in server.found.items() if _kind(word) == "other"}
    return max(unknown, key=lambda word: unknown[word])


def _checkpoints_share(window: Window, server: ServerTime) -> float:
    """Of the time, that in which the checkpointer wrote: as it was seen, or as it tells when it has done it."""
    looks = sum(server.checkpointer.values())
    if looks:
        return 1 - server.checkpointer.get("idle", 0) / looks
    return server.checkpoint_seconds / max(window.seconds, 1e-9)


_WORDS: Final = {
    "cpu": "computing",
    "turns": "waiting for locks",
    "locks": "waiting for locks",
    "log": "waiting for the log",
    "io": "waiting for data files",
}


def destination_evidence(window: Window, own: DestinationTime) -> dict[str, float]:
    """Shares of the time of sessions or of an engine, and what the system knows of the connections."""
    evidence: dict[str, float] = {}
    engine, server = own.engine, own.server
    if engine is not None and engine.busy_share is not None:
        evidence["destination_busy"] = engine.busy_share
        evidence["destination_put_aside_bytes"] = engine.spilled_bytes or 0
    if server is not None and server.samples:
        shares = _by_kind(server.weighted(_waits(own)))
        evidence |= {_EVIDENCE[kind]: share for kind, share in shares.items()}
        if server.is_local and server.cpu is not None:
            evidence["sessions_waiting_for_cpu"] = server.queued_share
    tcp = [writer.tcp for writer in own.writers if writer.tcp is not None]
    busy = sum(known.busy for known in tcp)
    if busy > 0:
        evidence["held_up_by_window"] = sum(known.receive_window_limited for known in tcp) / busy
        evidence["round_trip_seconds"] = max(known.rtt or 0.0 for known in tcp)
        evidence["carried_megabytes_per_second"] = _carried(window, own)
    return evidence


_EVIDENCE: Final = {
    "cpu": "sessions_computing",
    "client": "sessions_waiting_for_rows",
    "turns": "sessions_waiting_for_each_other",
    "locks": "sessions_waiting_for_locks",
    "log": "sessions_waiting_for_log",
    "io": "sessions_waiting_for_files",
    "other": "sessions_waiting_otherwise",
}


def _waits(own: DestinationTime) -> dict[int, float]:
    """How long somebody waited for each session of the server, by process id."""
    return {writer.process_id: writer.waiting for writer in own.writers if writer.process_id is not None}


def _link(window: Window, own: DestinationTime) -> Verdict | None:
    """Whether rows were on their way, or waited to be sent, while the server waited for them."""
    tcp = [writer.tcp for writer in own.writers if writer.tcp is not None]
    waiting = sum(writer.wait_output for writer in own.writers)
    # Of many connections most are idle at any moment: what counts is the waiting of those who give them rows.
    if not tcp or waiting < _SIDE_SHARE * sum(stream.wait_destination for stream in window.streams):
        return None
    busy = sum(known.busy for known in tcp)
    closed = sum(known.receive_window_limited for known in tcp) / max(busy, 1e-9)
    rtt = max((known.rtt or 0.0 for known in tcp), default=0.0)
    there = f"a round trip took {rtt * 1e3:.1f} ms and the connections carried {_carried(window, own):,.1f} MB/s"
    if closed >= _CLOSED_SHARE:
        return Verdict(
            "receive_window",
            f"its window held them up {closed:.0%} of the time although it waited for rows; {there}",
        )
    full = sum(known.send_buffer_limited for known in tcp) / max(busy, 1e-9)
    again = sum(known.retransmits for known in tcp)
    parts = [
        there,
        f"{again:,} packets were sent again" if again else "",
        f"the send buffer was too small {full:.0%}" if full > _SIDE_SHARE else "",
    ]
    return Verdict(
        "network", "the server waited for rows while these waited to be sent; " + ", ".join(filter(None, parts))
    )


def _carried(window: Window, own: DestinationTime) -> float:
    """MB/s of all connections: what was handed to them. What TCP calls their delivery rate is that of its last packets,
    many times as much where they leave in bursts.
    """
    return sum(writer.bytes for writer in own.writers) / 1e6 / max(window.seconds, 1e-9)


def _from_outside(window: Window, own: DestinationTime) -> Verdict | None:
    """Nobody could look into the server: what its connections tell."""
    waiting = sum(writer.waiting for writer in own.writers)
    total = sum(writer.all for writer in own.writers)
    if total <= 0 or waiting < _SIDE_SHARE * sum(stream.wait_destination for stream in window.streams):
        return None
    tcp = [writer.tcp for writer in own.writers if writer.tcp is not None]
    busy = sum(known.busy for known in tcp)
    if tcp and busy > 0:
        closed = sum(known.receive_window_limited for known in tcp) / busy
        if closed < _SIDE_SHARE and busy >= _HALF * waiting:
            return _link(window, own)
    return Verdict("destination_cpu", "it took rows no faster; nobody could look into the server")


def _kind(word: str) -> str:
    return next(kind for beginning, kind in FOUND if word.lower().startswith(beginning))


def _by_kind(shares: Mapping[str, float]) -> dict[str, float]:
    kinds: dict[str, float] = {}
    for word, share in shares.items():
        kind = _kind(word)
        kinds[kind] = kinds.get(kind, 0.0) + share
    return kinds
