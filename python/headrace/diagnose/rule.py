"""What limits a data flow, from what happened in a window: one pure function.

**The law.** In a pipeline with bounded queues the limit is the part that hardly ever waits for another one. So the
parts are compared by how busy they are, and only inside the busiest one the largest share of its time counts. How busy:

- *streams*: 1 - (waiting for the destination, waiting for a block) / their time. Without a slice they have no time.
- *an embedded engine*: busy / (busy + waiting for rows).
- *a server*: its sessions, each as important as the waiting for it: 1 - share of looks that found them waiting for
  rows.
- *of several destinations* the busiest one counts: the others wait for the streams as these wait for it.
- *the CPUs*: when they are full, and both sides use a good part of them, they are the limit, unless one side waits for
  something else than a CPU.

**Starving.** A thread that could run and has no CPU is "busy" by the clock. The system tells how long it waited for
one: then the CPUs are the limit, and who has them says which one.

The sentence always holds the numbers that led to the verdict, so that it can be doubted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.diagnose.busiest import Judged, busiest
from headrace.diagnose.capacity import next_limit
from headrace.diagnose.destination import destination_evidence
from headrace.diagnose.machine import CpuShares, cpu_shares
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import StreamTime, Window

MINIMUM_SECONDS: Final = 0.5
# Less waiting than this does not make a destination the limit, however busy it is.
_WAITING_SHARE: Final = 0.10
# Waiting for a destination of which nothing else is known.
_WAITING_SHARE_ALONE: Final = 0.25
_STARVING_SHARE: Final = 0.25
_SIDE_SHARE: Final = 0.25
_EXPLAINED_SHARE: Final = 0.5
_MANY_STREAMS_PER_CPU: Final = 16
_IDLE: Final = "it was found waiting for rows most of its time"


def judge(window: Window) -> Verdict | None:
    """The verdict; None if too little happened, or too little of it is explained."""
    time = _StreamTimes.of(window)
    if window.seconds < MINIMUM_SECONDS or time is None:
        return None
    cpus = cpu_shares(window)
    there = busiest(window, cpus)
    found = _limit(window, time, cpus, there)
    if found is None:
        return None
    name, number = next_limit(window, found.limit, there.time)
    return found.with_evidence(_evidence(window, time, cpus, there)).with_next(name, number)


def judge_streams(window: Window) -> dict[int, Verdict]:
    """The verdict of each stream alone, by its number."""
    verdicts = {}
    for stream in window.streams:
        alone = window.of_stream(stream)
        time = _StreamTimes.of(alone)
        if time is None or time.all < MINIMUM_SECONDS:
            continue
        cpus = cpu_shares(window)
        there = busiest(alone, cpus)
        found = _limit(alone, time, cpus, there)
        if found is not None:
            verdicts[stream.number] = found.with_evidence(_evidence(alone, time, cpus, there))
    return verdicts


@dataclass(frozen=True)
class _StreamTimes:
    """Seconds of all streams together. `source`: reading, off the CPU; `stages`: at work, by stage."""

    all: float
    waiting: float
    source: float
    starving: float
    stages: Mapping[str, float]

    @staticmethod
    def of(window: Window) -> _StreamTimes | None:
        streams = [stream for stream in window.streams if stream.active > 0]
        total = sum(stream.active for stream in streams)
        explained = sum(stream.busy + stream.wait_block + stream.wait_destination for stream in streams)
        if total <= 0 or explained < _EXPLAINED_SHARE * total:
            return None
        return _StreamTimes(
            all=total,
            waiting=sum(stream.wait_block + stream.wait_destination for stream in streams),
            source=sum(map(_off_cpu, streams)),
            starving=sum(min(stream.run_queue or 0.0, stream.busy) for stream in streams),
            stages={
                stage: sum(stream.work[stage] for stream in streams)
                for stage in ("read", "parse", "transform", "encode")
            },
        )

    @property
    def busy_share(self) -> float:
        return max(0.0, 1 - self.waiting / self.all)

    @property
    def waiting_share(self) -> float:
        return min(1.0, self.waiting / self.all)


def _off_cpu(stream: StreamTime) -> float:
    """Time in which a stream neither computed nor waited for a CPU: it waited for its source."""
    if stream.cpu is None:
        return 0.0
    return max(0.0, min(stream.read, stream.busy - stream.cpu - (stream.run_queue or 0.0)))


def _limit(window: Window, time: _StreamTimes, cpus: CpuShares | None, there: Judged) -> Verdict | None:
    waited = f"the streams waited for {_all(window)} {time.waiting_share:.0%} of their time"
    destination, how_busy = there.verdict, there.how_busy
    behind = f"{waited}, {there.time.words} was the busiest of them" if window.has_several else waited
    crowd = _crowd(window, time, cpus)
    if crowd is not None:
        return crowd
    is_waiting = time.waiting_share >= (_WAITING_SHARE if how_busy is not None else _WAITING_SHARE_ALONE)
    is_destination = destination is not None and is_waiting and (how_busy is None or how_busy >= time.busy_share)
    if destination is not None and is_destination and destination.limit not in ("destination_cpu", "shared_cpu"):
        return destination.behind(behind).at(there.time.connection)
    if cpus is not None and cpus.are_shared and not (time.source / time.all >= _SIDE_SHARE):
        by = f"{cpus.streams:.0%} of it by the streams and {cpus.destination:.0%} by {_all(window)}"
        sentence = f"{waited}, and the CPUs were {cpus.busy:.0%} busy, {by}"
        return Verdict("shared_cpu", sentence)
    if destination is not None and is_destination:
        return destination.behind(behind).at(there.time.connection)
    if time.waiting_share > time.busy_share:
        return _turns(window, waited)
    return _own(window, time, cpus)


def _all(window: Window) -> str:
    return "the destinations" if window.has_several else "the destination"


def _turns(window: Window, waited: str) -> Verdict | None:
    """The streams wait most of their time, and nobody is seen at work on what they wait for."""
    if not any(own.engine is not None or own.writers for own in window.destinations):
        return None  # somebody takes the rows of whom nothing is known
    idle = "they were found waiting for rows most of their time" if window.has_several else _IDLE
    is_far = any(own.is_far for own in window.destinations)
    return Verdict("network" if is_far else "destination_cpu", f"{waited}, but {idle}: they take turns")


def _crowd(window: Window, time: _StreamTimes, cpus: CpuShares | None) -> Verdict | None:
    """Many more threads than CPUs, all of which want to run."""
    if cpus is None or window.side_by_side <= _MANY_STREAMS_PER_CPU * cpus.cpus:
        return None
    queued = time.starving / time.all
    servers = [own.server for own in window.destinations if own.server is not None]
    behind = max((server.queued_share for server in servers), default=0.0)
    if max(queued, behind) < 2 * _STARVING_SHARE:
        return None
    sentence = f"{window.side_by_side} streams took turns on {cpus.cpus:g} CPUs: they waited {queued:.0%} for one"
    if behind > queued:
        sentence += f", and their sessions in {'a' if window.has_several else 'the'} server {behind:.0%}"
    return Verdict("too_many_streams", sentence)


def _own(window: Window, time: _StreamTimes, cpus: CpuShares | None) -> Verdict:
    """The streams hardly wait for anybody."""
    shares = {stage: seconds / time.all for stage, seconds in time.stages.items()}
    queued = time.starving / max(sum(time.stages.values()), 1e-9)
    largest = max(shares, key=lambda stage: shares[stage])
    spent = f"the streams spent {shares['read']:.0%} of their time reading and {shares['parse']:.0%} parsing"
    waited = f"waited for {_all(window)} only {time.waiting_share:.0%}"
    off_cpu = time.source / time.all
    if off_cpu >= max(_SIDE_SHARE, *(share - queued * share for stage, share in shares.items() if stage != "read")):
        return Verdict("source_read", f"{spent}, and waited for the source {off_cpu:.0%}")
    if cpus is not None and queued >= _STARVING_SHARE and cpus.is_full:
        starved = f"the streams could have worked and had no CPU {time.starving / time.all:.0%} of their time"
        if cpus.taken_away is not None:
            return Verdict("client_cpu", f"{starved}: {cpus.taken_away}")
        if cpus.others >= _SIDE_SHARE:
            return Verdict("client_cpu", f"{starved}: other programs used {cpus.others:.0%} of the CPUs")
    if largest == "read":
        on_cpu = 1 - min(1.0, off_cpu / max(shares["read"], 1e-9))
        how = f"{on_cpu:.0%} of the reading on a CPU (decompressing or copying)"
        return Verdict("source_read", f"{spent}, {how}")
    words = {"parse": "parsing", "transform": "transforming", "encode": "encoding"}
    own = f"{spent}, and {waited}"
    if largest != "parse":
        own = f"{spent}, {shares[largest]:.0%} {words[largest]}, and {waited}"
    return Verdict(largest, own)


def _evidence(window: Window, time: _StreamTimes, cpus: CpuShares | None, there: Judged) -> dict[str, float]:
    evidence = {
        "waiting_for_destination": time.waiting_share,
        "waiting_for_source": time.source / time.all,
        "waiting_for_cpu": time.starving / time.all,
        **{f"in_{stage}": seconds / time.all for stage, seconds in time.stages.items()},
    }
    if cpus is not None:
        evidence |= {
            "cpus_busy": cpus.busy,
            "cpus_by_streams": cpus.streams,
            "cpus_by_destination": cpus.destination,
            "cpus_by_others": cpus.others,
        }
    return evidence | destination_evidence(window, there.time)
